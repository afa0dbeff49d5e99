"""Playing any film that can be read.

``direct``: the file itself, with ranges, if browsers can play it. ``remux``: H.264 in a container
that browsers cannot play, repacked as fragmented MP4 from the keyframe before the wanted time.
``transcode``: everything else, decoded and encoded from the wanted time on. Nothing is written to
disk. Streams count from zero; ``start`` says which time of the film their zero is, so that the page
shows presentation times whatever the file's own time stamps are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from longtake.types import Segment
from longtake.video.audio import RATE, Sound, listen
from longtake.video.container import open_container, packets_of, readable_packets, video_stream
from longtake.video.packets import UNKNOWN
from longtake.video.video import Video

Mode: TypeAlias = Literal["direct", "remux", "transcode"]

_FREE = {"vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d"}
DIRECT = {
    "mov,mp4,m4a,3gp,3g2,mj2": ({"h264", *_FREE}, {"aac", "mp3", "opus", ""}),
    "matroska,webm": (_FREE, {"opus", "vorbis", ""}),
}
"""Codecs of picture and sound that browsers play, by container."""
PIECE = 1.0
"""Seconds of sound that are encoded between pictures."""


@dataclass(frozen=True)
class Plan:
    """How a film is played."""

    mode: Mode
    codecs: str
    """For ``MediaSource``; empty for ``direct``."""


def plan(video: Video) -> Plan:
    """The cheapest way that browsers can play."""
    info, table = video.info, video.table
    sound = info.audio[0].codec if info.audio else ""
    pictures, sounds = DIRECT.get(info.format, (set(), set()))
    # a file whose clock does not begin at zero shows other times in a player
    on_time = table.timed and abs(video.origin) < 0.001
    profile = _avc_profile(video) if info.codec == "h264" else ""
    playable = info.codec != "h264" or profile
    if info.codec in pictures and sound in sounds and on_time and playable and _is_webm(video):
        return Plan("direct", "")
    audio_codec = ", mp4a.40.2" if info.audio else ""
    if info.codec == "h264" and profile and table.timed:
        return Plan("remux", f"avc1.{profile}{audio_codec}")
    # High profile at level 4.0, which covers what the encoder is asked for
    return Plan("transcode", f"avc1.640028{audio_codec}")


def _is_webm(video: Video) -> bool:
    """Matroska with any other ending is not offered as it is: some browsers refuse it."""
    return not video.info.format.startswith("matroska") or video.path.suffix.lower() == ".webm"


def _avc_profile(video: Video) -> str:
    """The profile, constraints and level of H.264 as in ``avc1.PPCCLL``; empty if unusable."""
    with open_container(video.path, video.limits) as container:
        stream = video_stream(video.path, container)
        context = stream.codec_context
        if context.pix_fmt not in ("yuv420p", "yuvj420p"):
            return ""  # browsers do not decode 10 bits or 4:2:2
        extra = context.extradata or b""
    # in MP4 and Matroska the extradata is an avcC box, elsewhere it is a start code and an SPS
    if len(extra) > 3 and extra[0] == 1:
        return extra[1:4].hex()
    for code in (b"\x00\x00\x01\x67", b"\x00\x00\x01\x27"):
        place = extra.find(code)
        if place >= 0 and len(extra) >= place + 7:
            return extra[place + 4 : place + 7].hex()
    return ""


class _Pipe:
    """A file to write to that hands its bytes on."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Everything written since the last call."""
        data, self._pieces = b"".join(self._pieces), []
        return data


def _fragmented(pipe: _Pipe) -> OutputContainer:
    flags = "frag_keyframe+empty_moov+default_base_moof+skip_trailer"
    # half a second in microseconds: with short fragments, playing begins soon
    options = {"movflags": flags, "frag_duration": "500000", "use_editlist": "0"}
    opened: Any = av.open(pipe, "w", format="mp4", options=options)
    assert isinstance(opened, OutputContainer)
    return opened


class Playback:
    """One stream from a time on; closing it ends the work."""

    def __init__(self, video: Video, how: Plan, start: float) -> None:
        self._video, self._how = video, how
        wanted = min(max(0.0, start), video.duration)
        self._key = _keyframe(video, wanted) if how.mode == "remux" else -1
        self.start = _first_stamp(video, self._key) if how.mode == "remux" else wanted
        """The time of the film that is the stream's zero."""

    def __iter__(self) -> Iterator[bytes]:
        return self._remuxed() if self._how.mode == "remux" else self._transcoded()

    def _remuxed(self) -> Iterator[bytes]:
        video, table, pipe = self._video, self._video.table, _Pipe()
        base = round(self.start / table.tick) + table.origin
        with open_container(video.path, video.limits) as source, _fragmented(pipe) as out:
            stream = video_stream(video.path, source)
            copy = out.add_stream_from_template(stream)
            sound = _SoundTrack(video, out, Segment(self.start, video.duration))
            # seeking in MPEG-TS often overshoots
            early = round(1 / table.tick) if source.format.name == "mpegts" else 0
            key_pts = int(table.pts[self._key]) + table.origin
            if self._key > 0:
                source.seek(max(0, key_pts - early), stream=stream, backward=True)
            begun, last = False, -1
            for packet in readable_packets(packets_of(source, stream)):
                begun = begun or (packet.is_keyframe and packet.pts == key_pts)
                if not begun or packet.pts is None:
                    continue
                # Matroska gives no decoding times for the first packets; they only have to ascend
                last = last + 1 if packet.dts is None else max(last + 1, packet.dts - base)
                packet.stream = copy
                packet.pts, packet.dts = packet.pts - base, min(last, packet.pts - base)
                yield from sound.until(float(packet.dts * table.tick), pipe)
                out.mux(packet)
                yield pipe.take()
            yield from sound.until(float("inf"), pipe)
        yield pipe.take()

    def _transcoded(self) -> Iterator[bytes]:
        video, pipe = self._video, _Pipe()
        # bounded, because it is encoded while somebody watches
        rate = min(30.0, video.info.fps or 30.0)
        grid = video.grid(rate, Segment(self.start, max(video.duration, self.start + 0.04)))
        # the frame on screen at the start appeared before the first time of the grid
        times = [self.start, *(float(time) for time in grid if time > self.start)]
        with _fragmented(pipe) as out:
            stream: VideoStream | None = None
            sound = _SoundTrack(video, out, Segment(self.start, max(self.start, video.duration)))
            for time, frame in zip(times, video.frames(times, width=1280), strict=False):
                pixels = np.ascontiguousarray(_even(frame.pixels))
                stream = stream or _x264(out, pixels, rate)
                picture = VideoFrame.from_ndarray(pixels, format="rgb24")
                picture.pts = round((time - self.start) * 90_000)
                picture.time_base = Fraction(1, 90_000)
                yield from sound.until(time - self.start, pipe)
                out.mux(stream.encode(picture))
                yield pipe.take()
            if stream is not None:
                out.mux(stream.encode(None))
            yield from sound.until(float("inf"), pipe)
        yield pipe.take()


def _keyframe(video: Video, time: float) -> int:
    """Position of the last keyframe that is shown at or before a time."""
    table = video.table
    keys = table.keys
    # decoding can only begin at a keyframe
    shown = keys[table.pts[keys] * table.tick <= time + 1e-6]
    return int(shown[-1]) if len(shown) else int(keys[0])


def _first_stamp(video: Video, position: int) -> float:
    """The earliest time stamp of a packet: with B-frames it is decoded before it is shown."""
    table = video.table
    dts, pts = int(table.dts[position]), int(table.pts[position])
    return float((pts if dts == UNKNOWN else min(dts, pts)) * table.tick)


def _even(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Without an odd last row or column, which 4:2:0 cannot hold."""
    height, width = pixels.shape[:2]
    return pixels[: height - height % 2, : width - width % 2]


def _x264(out: OutputContainer, pixels: np.ndarray[Any, Any], rate: float) -> VideoStream:
    stream = out.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001))
    assert isinstance(stream, VideoStream)
    stream.height, stream.width = pixels.shape[:2]
    stream.pix_fmt = "yuv420p"
    stream.codec_context.time_base = Fraction(1, 90_000)
    stream.codec_context.gop_size = round(2 * rate)
    stream.codec_context.options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "23"}
    return stream


class _SoundTrack:
    """The sound of a film, encoded as AAC, written up to a time at each call."""

    def __init__(self, video: Video, out: OutputContainer, within: Segment) -> None:
        self._out = out
        self._stream: AudioStream | None = None
        self._sounds: Iterator[Sound] = iter(())
        self._done, self._written = 0.0, 0
        if video.info.audio:
            stream = out.add_stream("aac", rate=RATE)
            assert isinstance(stream, AudioStream)
            stream.layout = "mono"
            self._stream = stream
            self._sounds = listen(
                video.path,
                origin=video.origin,
                slice_seconds=PIECE,
                within=Segment(max(0.0, within.start), within.end),
                limits=video.limits,
            )

    def until(self, time: float, pipe: _Pipe) -> Iterator[bytes]:
        """Encode and write the sound before a time, a little ahead of the picture."""
        while self._stream is not None and self._done <= time:
            sound = next(self._sounds, None)
            if sound is None:
                self._out.mux(self._stream.encode(None))
                self._stream = None
                break
            # the encoder takes 16 bits, and louder samples would wrap around
            samples = (np.clip(sound.samples, -1, 1) * 32767).astype(np.int16)[None]
            frame = AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate, frame.pts = RATE, self._written
            frame.time_base = Fraction(1, RATE)
            self._out.mux(self._stream.encode(frame))
            self._written += samples.shape[1]
            self._done += PIECE
            yield pipe.take()


class PlaybackStreams:
    """At most one stream per viewer: a new one ends the one before."""

    def __init__(self, max_streams: int = 8) -> None:
        self._max_streams = max_streams
        self._lock = threading.Lock()
        self._streams: dict[str, object] = {}

    def play(self, viewer: str, playback: Playback) -> Iterator[bytes]:
        """The stream, until the viewer asks for another."""
        mine = object()
        with self._lock:
            self._streams[viewer] = mine
            # the viewer who has waited longest makes room
            while len(self._streams) > self._max_streams:
                self._streams.pop(next(iter(self._streams)))
        try:
            for piece in playback:
                # checked between pieces, so that an abandoned stream ends within a fragment
                if self._streams.get(viewer) is not mine:
                    return
                if piece:
                    yield piece
        finally:
            with self._lock:
                if self._streams.get(viewer) is mine:
                    del self._streams[viewer]
