"""Subtitles: read from files and streams, written as SRT and WebVTT."""

from __future__ import annotations

import codecs
import glob
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import av
from av.subtitles.stream import SubtitleStream

from longtake._util.timecode import clock, parse_time
from longtake.algorithms.speakers import turns
from longtake.config import MediaSettings
from longtake.errors import ConfigError, MediaError
from longtake.types import Line, Segment
from longtake.video.container import (
    FileVersion,
    check_plain_file,
    file_version,
    open_container,
    packets_of,
    readable_packets,
)
from longtake.video.remote import RemotePath

if TYPE_CHECKING:
    import pysubs2


TimedText = tuple[float, float, str]
"""Start, end, text."""
_PARSING = Lock()


def srt(lines: Sequence[TimedText]) -> str:
    """SubRip."""
    blocks = []
    for number, (start, end, text) in enumerate(lines, start=1):
        times = f"{clock(start, millis=True)} --> {clock(end, millis=True)}".replace(".", ",")
        blocks.append(f"{number}\n{times}\n{_plain(text)}\n")
    return "\n".join(blocks)


def vtt(lines: Sequence[TimedText]) -> str:
    """WebVTT."""
    blocks = ["WEBVTT\n"]
    for start, end, text in lines:
        times = f"{clock(start, millis=True)} --> {clock(end, millis=True)}"
        blocks.append(f"{times}\n{escaped(text)}\n")
    return "\n".join(blocks)


def _plain(text: str) -> str:
    """Without empty lines, which end a subtitle."""
    return "\n".join(line for line in text.splitlines() if line.strip()) or "…"


def escaped(text: str) -> str:
    """WebVTT has tags and arrows; text from a film is shown, never interpreted."""
    return _plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


Packet: TypeAlias = "av.Packet[SubtitleStream]"

SUFFIXES = (".srt", ".vtt", ".ass", ".ssa")
"""Suffixes of sidecar files, in order of preference."""

# HTML tags and ASS overrides; a match ends at the next bracket, so that stray ones stay cheap
_TAGS = re.compile(r"<[^<>]{0,1000}>|\{[^{}]*\}")
_EMPTY_LINES = re.compile(r"\n{3,}")
LONGEST = 1000
"""Letters of a line; a longer cue becomes several."""
# at a space where there is one
_PIECES = re.compile(rf".{{1,{LONGEST}}}(?:\s|$)|.{{{LONGEST}}}")
_BREAKS = re.compile(r"<br\s*/?>", re.IGNORECASE)


def sidecar(path: Path) -> Path | None:
    """Find the subtitle file beside a film: ``film.srt``, otherwise ``film.en.srt`` or similar."""
    if isinstance(path, RemotePath):
        return None  # files beside it are not looked for
    exact = [path.with_suffix(suffix) for suffix in SUFFIXES]
    for beside in (*exact, *sorted(path.parent.glob(f"{glob.escape(path.stem)}.*"))):
        if beside.suffix in SUFFIXES and beside.is_file() and _lies_beside(path, beside):
            return beside
    return None


def _lies_beside(film: Path, subtitles: Path) -> bool:
    """Whether a file, with all links followed, is in the film's folder.

    A folder from elsewhere may hold a link to a private file, which a server would then show.
    """
    return subtitles.resolve().parent in (film.parent.resolve(), film.resolve().parent)


def read_subtitles(
    path: Path, limits: MediaSettings | None = None, *, begin: float = 0.0
) -> list[Line]:
    """Read the lines of an SRT, VTT, ASS or JSON file, in time order.

    ``begin`` is the time in the file at which the film begins.
    """
    import pysubs2  # late: searching an indexed film does not need it

    _check_size(path, limits or MediaSettings())
    text = _decoded(path.read_bytes())
    if path.suffix.lower() == ".json":
        return _tidy(_benchmark_lines(path, text), begin)
    try:
        parsed = _parse(text, path.suffix.lower())
    except (pysubs2.exceptions.Pysubs2Error, ValueError, IndexError) as error:
        detail = "is not a subtitle file (SRT, VTT, ASS or JSON)"
        raise MediaError(path, "unreadable", detail) from error
    if not parsed.events:
        raise MediaError(path, "unreadable", "contains no subtitles")
    lines = []
    for event in parsed:
        if not event.is_comment:
            # ASS has a field for the speaker
            voice = f"<v {event.name}>" if event.name else ""
            lines.append((event.start / 1000, event.end / 1000, voice + _unescaped(event.text)))
    return _tidy(lines, begin)


def unusable(path: Path, limits: MediaSettings) -> str:
    """Why a file cannot be read; empty if it can. It is parsed once while it stays the same."""
    # the requests of a page ask at once
    with _PARSING:
        return _unusable(path, file_version(path), limits)


@lru_cache(maxsize=1000)
def _unusable(path: Path, _version: FileVersion, limits: MediaSettings) -> str:
    try:
        read_subtitles(path, limits)
    except MediaError as error:
        return str(error)
    return ""


def _check_size(path: Path, limits: MediaSettings) -> None:
    megabytes = check_plain_file(path) / 2**20
    if megabytes > limits.max_subtitle_mb:
        detail = (
            f"{megabytes:.1f} MB of subtitles exceed the limit of {limits.max_subtitle_mb:g} MB "
            f"(--set media.max_subtitle_mb={megabytes + 1:.0f} allows it)"
        )
        raise MediaError(path, "too_large", detail)


def _decoded(data: bytes) -> str:
    """Decode UTF-8 or UTF-16; an odd character is better than no subtitles."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    head = data[:1000]
    # text in Latin letters as UTF-16 without a byte order mark: every other byte is zero
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if zeros.count(0) > 0.8 * len(zeros):
            return data.decode(encoding, errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _parse(text: str, suffix: str) -> pysubs2.SSAFile:
    import pysubs2

    # the parser takes quadratic time on runs of empty lines, and on tags, which are kept for _tidy
    text = _EMPTY_LINES.sub("\n\n", text)
    name = _format(text, suffix)
    options = {} if name in ("ass", "ssa") else {"keep_html_tags": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd margin or style concerns nobody here
        return pysubs2.SSAFile.from_string(text, format_=name, **options)


def _format(text: str, suffix: str) -> str:
    """Return the format that the text is in, whatever the file's name says."""
    if "[Script Info]" in text or "[V4+ Styles]" in text or "[V4 Styles]" in text:
        return "ssa" if "[V4 Styles]" in text else "ass"
    if text.lstrip().startswith("WEBVTT"):
        return "vtt"
    # short times, which SRT does not have, need the parser for WebVTT
    return "vtt" if suffix == ".vtt" else "srt"


def _unescaped(text: str) -> str:
    """Replace the escapes of ASS by what they stand for."""
    return text.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", " ")


def embedded_subtitles(
    path: Path, *, origin: float, index: int | None = None, limits: MediaSettings | None = None
) -> list[Line]:
    """Read a subtitle stream inside the film: the first, or the one with the given ``index``.

    Bitmap streams yield no lines.
    """
    limits = limits or MediaSettings()
    room = limits.max_subtitle_mb * 2**20
    raw: list[tuple[float, float, str]] = []
    with open_container(path, limits) as container:
        streams = [s for s in container.streams.subtitles if index is None or s.index == index]
        if not streams:
            missing = f"subtitle stream {index}" if index else "subtitles"
            raise MediaError(path, "unreadable", f"has no {missing}")
        stream = streams[0]
        for packet in readable_packets(packets_of(container, stream)):
            if packet.pts is None or stream.time_base is None:
                continue
            start = float(packet.pts * stream.time_base) - origin
            end = start + float((packet.duration or 0) * stream.time_base)
            for subtitle in _decode(packet):
                text = _subtitle_text(subtitle)
                room -= len(text)
                if room < 0:
                    detail = f"contains more than {limits.max_subtitle_mb:g} MB of subtitles"
                    raise MediaError(path, "too_large", detail)
                raw.append((start, end, text))
    return _tidy(raw)


def _decode(packet: Packet) -> list[object]:
    """Decode one packet; a damaged one yields no subtitle."""
    try:
        return list(packet.decode())
    except (av.error.FFmpegError, UnicodeDecodeError):
        return []


def _subtitle_text(subtitle: object) -> str:
    """Return the text of a decoded subtitle; FFmpeg converts every text format to ASS."""
    if not isinstance(subtitle, av.subtitles.subtitle.AssSubtitle):
        return ""
    raw = subtitle.ass.decode("utf-8", errors="replace") if subtitle.ass else ""
    # eight fields come before the text of a decoded event
    return _unescaped(raw.split(",", 8)[-1])


def _benchmark_lines(path: Path, text: str) -> Iterable[tuple[float, float, str]]:
    """Parse the JSON of benchmarks: ``[{start, end, line}]`` or ``[{timestamp: [a, b], text}]``."""
    try:
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise TypeError("it must be a list")
        return [_benchmark_line(row) for row in rows]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, ConfigError) as error:
        detail = f"is not a list of subtitle lines ({error})"
        raise MediaError(path, "unreadable", detail) from error


def _benchmark_line(row: Mapping[str, Any]) -> tuple[float, float, str]:
    start, end = row["timestamp"] if "timestamp" in row else (row["start"], row["end"])
    text = row["line"] if "line" in row else row["text"]
    # LongVideoBench leaves the end of the last line open
    return _seconds(start), _seconds(start if end is None else end), str(text)


def _seconds(value: Any) -> float:
    seconds = parse_time(value) if isinstance(value, str) else float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"{seconds} is not a time")
    return seconds


def _tidy(raw: Iterable[tuple[float, float, str]], begin: float = 0.0) -> list[Line]:
    """Remove markup, empty lines and negative times and durations, and sort by time.

    A cue with several speakers becomes a line for each.
    """
    cues = list(raw)
    spoken = turns([_BREAKS.sub("\n", text) for _, _, text in cues])
    lines = []
    for (raw_start, raw_end, _), texts in zip(cues, spoken, strict=True):
        start, end = raw_start - begin, raw_end - begin
        for text in texts:
            plain = " ".join(_TAGS.sub("", text).split())
            if end >= 0:
                segment = Segment(max(0.0, start), max(start, end, 0.0))
                lines += [Line(segment, piece.strip()) for piece in _PIECES.findall(plain)]
    return sorted(lines, key=lambda line: line.segment)
