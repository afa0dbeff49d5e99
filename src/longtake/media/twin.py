"""An H.264 encoder whose packets can stand beside those of an existing film.

A player reads the parameter sets of a film (SPS and PPS) once, from the header of the file. New
packets decode there only if their encoder has the same parameter sets. x264 writes its settings
into the first packet of what it encodes, so an encoder can be set up the same way; whether its
parameter sets are equal, to the byte, is then compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import av
from av.video.codeccontext import VideoCodecContext

IDR, SPS, PPS, DELIMITER = 5, 7, 8, 9
"""Types of units: a picture that needs no other, the parameter sets, and what begins a picture."""
_WRITTEN = re.compile(rb"x264 - core \d+[^\0]*?options: ([^\0\x80]*)")
# films are untrusted, and some parameters of x264 name files: only numbers are taken over
_PLAIN = re.compile(r"(?<!\S)(\w+)=(-?\d{1,9}(?:\.\d{1,9})?|infinite)(?!\S)", re.ASCII)
_START = re.compile(rb"\0\0\0?\x01")
# x264's names in the film, and those of its parameters
_SETTINGS = {
    "cabac": "cabac",
    "ref": "ref",
    "8x8dct": "8x8dct",
    "constrained_intra": "constrained-intra",
    "chroma_qp_offset": "chroma-qp-offset",
    "bframes": "bframes",
    "weightb": "weightb",
    "weightp": "weightp",
    "keyint": "keyint",
    "keyint_min": "min-keyint",
    "bluray_compat": "bluray-compat",
    "stitchable": "stitchable",
    "crf": "crf",
    "qp": "qp",
}
_PYRAMIDS = {"0": "none", "1": "strict", "2": "normal"}
_FAST = {"subme": "2", "me": "dia", "psy": "0", "trellis": "0", "mixed-refs": "0"}
"""None of these has a part in the parameter sets, once the offset of the colours is set, which x264
otherwise changes for its psychovisual optimisations."""
_BITRATE_QUALITY = {"crf": "20", "stitchable": "1"}
"""For films with a bit rate: it would starve a piece this short. Stitchable headers do not depend
on the quality, as theirs do not."""


class Header(NamedTuple):
    """What an MP4 file says about its H.264 stream (avcC)."""

    level: int
    size_bytes: int
    """Bytes that hold the size of each unit in a packet."""
    sets: tuple[bytes, ...]
    """Parameter sets, the SPS first."""


def read_header(extradata: bytes | None) -> Header | None:
    """Parse the header of a stream; ``None`` if it is of another kind, as in MPEG-TS."""
    if not extradata or len(extradata) < 7 or extradata[0] != 1:
        return None
    sets: list[bytes] = []
    place, count = 6, extradata[5] & 31
    for kind in (SPS, PPS):
        if kind == PPS:
            count, place = extradata[place], place + 1
        for _ in range(count):
            end = place + 2 + int.from_bytes(extradata[place : place + 2], "big")
            sets.append(extradata[place + 2 : end])
            place = end
        if place >= len(extradata) and kind == SPS:
            return None
    return Header(extradata[3], (extradata[4] & 3) + 1, tuple(sets))


def units(packet: bytes, header: Header) -> Iterator[bytes]:
    """The units of a packet, as MP4 and Matroska store them: each after its size."""
    place = 0
    while place + header.size_bytes <= len(packet):
        begin = place + header.size_bytes
        place = begin + int.from_bytes(packet[place:begin], "big")
        if begin < place:
            yield packet[begin:place]


def kind_of(unit: bytes) -> int:
    """The type of a unit."""
    return unit[0] & 31


def with_sizes(packet: bytes, header: Header) -> bytes:
    """A packet of the encoder as the film stores them, without parameter sets."""
    kept = []
    for unit in _START.split(packet):
        if unit and kind_of(unit) not in (SPS, PPS, DELIMITER):
            kept.append(len(unit).to_bytes(header.size_bytes, "big") + unit)
    return b"".join(kept)


def twin(film: VideoCodecContext, header: Header, first: bytes) -> VideoCodecContext | None:
    """An encoder with the parameter sets of the film, if its first packet tells how.

    Each piece needs an encoder of its own.
    """
    told = _WRITTEN.search(first)
    if told is None or film.pix_fmt is None or not film.framerate:
        return None
    encoder = av.CodecContext.create("libx264", "w")
    assert isinstance(encoder, VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = film.width, film.height, film.pix_fmt
    encoder.framerate, encoder.time_base = film.framerate, 1 / film.framerate
    if film.sample_aspect_ratio:
        encoder.sample_aspect_ratio = film.sample_aspect_ratio
    encoder.color_range, encoder.colorspace = film.color_range, film.colorspace
    encoder.color_primaries, encoder.color_trc = film.color_primaries, film.color_trc
    settings = _settings(told[1].decode("ascii", "replace"))
    if settings is None:
        return None
    settings["level"] = f"{header.level / 10:.1f}"
    joined = ":".join(f"{name}={value}" for name, value in settings.items())
    encoder.options = {"x264-params": joined, "flags": "+global_header"}
    try:
        encoder.open()
    except av.error.FFmpegError:
        return None  # settings of a newer x264
    made = [unit for unit in _START.split(encoder.extradata or b"") if unit]
    sets = tuple(unit for unit in made if kind_of(unit) in (SPS, PPS))
    return encoder if sets == header.sets else None


def _settings(told: str) -> dict[str, str] | None:
    """Parameters for x264 from what it wrote; ``None`` for interlaced pictures."""
    written = dict(_PLAIN.findall(told))
    if written.get("interlaced") != "0":
        return None
    settings = {ours: written[theirs] for theirs, ours in _SETTINGS.items() if theirs in written}
    settings |= _FAST
    settings["b-pyramid"] = _PYRAMIDS.get(written.get("b_pyramid", "0"), "none")
    if "crf" not in settings and "qp" not in settings:
        settings |= _BITRATE_QUALITY
    return settings
