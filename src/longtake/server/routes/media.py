"""Pictures and sound of a film: frames, clips, playback, subtitles.

A film is played in one of three ways, and nothing is written to disk:

- ``direct``: the file itself, with ranges, if browsers can play it;
- ``remux``: H.264 in another container, repacked as fragmented MP4 from the last keyframe before
  the wanted time;
- ``transcode``: everything else, decoded and encoded from the wanted time on.

Streams begin at zero; ``X-Start`` is the time of the film at that moment.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Container, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from fastapi import APIRouter, Body, Header, HTTPException, Query, Request
from pydantic import BaseModel
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse

from longtake.agents.overview import (
    Chapter,
    CitedSentence,
    everything,
    legible,
    make_overview,
    suggested,
)
from longtake.algorithms.speakers import speaker, speakers
from longtake.runner.films import rename_speaker
from longtake.server.films import frame_at, jpeg
from longtake.server.state import StateParam
from longtake.types import Line, Segment
from longtake.video.audio import RATE, Sound, listen
from longtake.video.clip import LONGEST_CLIP, Encoding, add_picture, add_sound, even, sound_frame
from longtake.video.container import open_container, packets_of, readable_packets, video_stream
from longtake.video.packets import UNKNOWN
from longtake.video.subtitles import srt, vtt
from longtake.video.video import Video

router = APIRouter(tags=["media"])

Seconds = Annotated[float, Query(ge=0, allow_inf_nan=False)]
KINDS = {".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/mp4", ".webm": "video/webm"}


class TimedText(BaseModel):
    """A line of speech or of on-screen text."""

    start: float
    end: float
    text: str
    speaker: str = ""
    """Who says it, if that is known."""
    clear: bool = True
    """Whether on-screen text was read well enough to be shown."""


class Timeline(BaseModel):
    """What is known about a film over its length."""

    duration: float
    speech: list[TimedText]
    onscreen: list[TimedText]


@router.get("/films/{film}/frame")
def frame(
    film: str,
    state: StateParam,
    t: Seconds,
    width: Annotated[int, Query(ge=16, le=3840)] = 640,
    if_none_match: Annotated[str, Header()] = "",
) -> Response:
    """The frame on screen at a time; ``X-Frame-Time`` says when it appeared."""
    opened = state.catalog.open(film)
    # the picture depends on the content of the file, the time and the width alone
    tag = f'"{opened.fingerprint[:16]}-{t:.4f}-{width}"'
    headers = {"ETag": tag, "Cache-Control": "private, max-age=86400"}
    if tag in if_none_match:
        return Response(status_code=304, headers=headers)
    shown = frame_at(opened, t, width)
    headers["X-Frame-Time"] = f"{shown.time:.6f}"
    return Response(jpeg(shown), media_type="image/jpeg", headers=headers)


@router.get("/films/{film}/timeline")
def timeline(film: str, state: StateParam) -> Timeline:
    """Speech and on-screen text, as far as they are indexed."""
    opened = state.catalog.open(film)
    speech, onscreen = opened.known_lines()
    known = speakers(speech)
    read = frozenset(legible(onscreen))
    return Timeline(
        duration=opened.duration,
        speech=[_timed(line, known) for line in speech],
        onscreen=[_timed(line, (), line in read) for line in onscreen],
    )


def _timed(line: Line, known: Container[str], clear: bool = True) -> TimedText:
    name, words = speaker(line.text)
    if name not in known:
        name, words = "", line.text
    segment = line.segment
    return TimedText(start=segment.start, end=segment.end, text=words, speaker=name, clear=clear)


Name = Annotated[str, Body(max_length=100)]


@router.post("/films/{film}/speakers")
def name_speaker(film: str, speaker: Name, name: Name, state: StateParam) -> Timeline:
    """Rename a speaker wherever the film's lines are shown."""
    rename_speaker(state.catalog.open(film), speaker, name)
    return timeline(film, state)


class Overview(BaseModel):
    """What a film is about."""

    chapters: tuple[Chapter, ...] = ()
    summary: tuple[CitedSentence, ...] = ()
    questions: tuple[str, ...] = ()
    """Questions that the film answers."""


@router.get("/films/{film}/overview")
def overview(film: str, state: StateParam) -> Overview:
    """Chapters, a summary and questions, computed once; empty until the film is indexed."""
    opened = state.catalog.open(film)
    if not opened.indexed:
        return Overview()
    made = make_overview(opened)
    questions = suggested(made, [line.text for _, line in everything(opened)])
    return Overview(chapters=made.chapters, summary=made.summary, questions=questions)


@router.get("/films/{film}/subtitles.{ending}")
def subtitles(film: str, ending: str, state: StateParam) -> PlainTextResponse:
    """Speech as SRT or WebVTT."""
    speech, _ = state.catalog.open(film).known_lines()
    lines = [(line.segment.start, line.segment.end, line.text) for line in speech]
    return _texts(ending, lines)


@router.get("/films/{film}/chapters.{ending}")
def chapters(film: str, ending: str, state: StateParam) -> PlainTextResponse:
    """The chapters of a film, in SRT or WebVTT."""
    parts = overview(film, state).chapters
    return _texts(ending, [(part.start, part.end, part.title) for part in parts])


def _texts(ending: str, lines: list[tuple[float, float, str]]) -> PlainTextResponse:
    if ending == "vtt":
        return PlainTextResponse(vtt(lines), media_type="text/vtt")
    if ending == "srt":
        return PlainTextResponse(srt(lines), media_type="application/x-subrip")
    raise HTTPException(404, "only .srt and .vtt")


Mode: TypeAlias = Literal["direct", "remux", "transcode"]


@dataclass(frozen=True)
class Plan:
    """How a film is played."""

    mode: Mode
    codecs: str
    """The type for ``MediaSource``; empty for ``direct``."""


@router.get("/films/{film}/play")
def how_to_play(film: str, state: StateParam) -> Plan:
    """How browsers can play a film."""
    return plan(state.catalog.open(film).video)


@router.get("/films/{film}/file")
def file(film: str, state: StateParam) -> FileResponse:
    """The film's file, with ranges."""
    path = state.catalog.path(film)
    # a browser plays a file only if it knows its media type
    kind = KINDS.get(path.suffix.lower(), "application/octet-stream")
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "private, no-cache"})


@router.get("/films/{film}/stream")
def stream(
    film: str,
    state: StateParam,
    request: Request,
    start: Annotated[float, Query(alias="from", ge=0, allow_inf_nan=False)] = 0.0,
    viewer: Annotated[str, Query(max_length=64)] = "",
) -> StreamingResponse:
    """The film from a time on as fragmented MP4; ``X-Start`` is the time at which it begins.

    A further request of the same viewer ends the earlier stream.
    """
    video = state.catalog.open(film).video
    playback = Playback(video, plan(video), start)
    # without a name, all requests of a machine are one viewer
    who = viewer or (request.client.host if request.client else "")
    headers = {"X-Start": f"{playback.start:.6f}", "Cache-Control": "no-store"}
    pieces = viewers.play(who, playback)
    return StreamingResponse(pieces, media_type="video/mp4", headers=headers)


@router.get("/films/{film}/clip")
async def clip(
    film: str, state: StateParam, request: Request, start: Seconds, end: Seconds
) -> Response:
    """A stretch of a film as MP4, cut at the frame."""
    opened = await asyncio.to_thread(state.catalog.open, film)
    # bounded before anything is decoded
    if not start < end or start >= opened.duration or end - start > LONGEST_CLIP:
        raise HTTPException(422, f"a clip is up to {LONGEST_CLIP:g} s long and inside the film")
    name = f"clip-{start:.2f}-{end:.2f}.mp4"
    headers = {"Content-Disposition": f'inline; filename="{name}"'}
    content = await state.encode([(opened.video, Segment(start, end))], request)
    return Response(content, media_type="video/mp4", headers=headers)


_FREE = {"vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d"}
DIRECT = {
    "mov,mp4,m4a,3gp,3g2,mj2": ({"h264", *_FREE}, {"aac", "mp3", "opus", ""}),
    "matroska,webm": (_FREE, {"opus", "vorbis", ""}),
}
"""Codecs of picture and sound that browsers play, by container."""
TICK = Fraction(1, 90_000)
"""Time base of encoded pictures, in seconds."""
PIECE = 1.0
"""Seconds of sound that are encoded between pictures."""


def plan(video: Video) -> Plan:
    """The cheapest way in which browsers can play the film."""
    info, table = video.info, video.table
    sound = info.audio[0].codec if info.audio else ""
    pictures, sounds = DIRECT.get(info.format, (set(), set()))
    # if time stamps do not begin at zero, players show other times
    on_time = table.timed and abs(video.origin) < 0.001
    profile = _avc_profile(video) if info.codec == "h264" else ""
    playable = info.codec != "h264" or profile
    # some browsers refuse Matroska unless the file ends in .webm
    named = not info.format.startswith("matroska") or video.path.suffix.lower() == ".webm"
    if info.codec in pictures and sound in sounds and on_time and playable and named:
        return Plan("direct", "")
    audio_codec = ", mp4a.40.2" if info.audio else ""
    if info.codec == "h264" and profile and table.timed:
        return Plan("remux", f'video/mp4; codecs="avc1.{profile}{audio_codec}"')
    # High profile at level 4.0, which covers the encoder's settings
    return Plan("transcode", f'video/mp4; codecs="avc1.640028{audio_codec}"')


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
    """A writable file whose content is taken out while it is written."""

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
    # short fragments of half a second, in microseconds, let playing begin soon
    options = {"movflags": flags, "frag_duration": "500000", "use_editlist": "0"}
    opened: OutputContainer = av.open(pipe, "w", format="mp4", options=options)
    return opened


class Playback:
    """One stream from a time on; closing it ends the work."""

    def __init__(self, video: Video, how: Plan, start: float) -> None:
        self._video, self._how = video, how
        wanted = min(max(0.0, start), video.duration)
        self._key = _keyframe(video, wanted) if how.mode == "remux" else -1
        self.start = _first_stamp(video, self._key) if how.mode == "remux" else wanted
        """The time of the film at which the stream begins."""

    def __iter__(self) -> Iterator[bytes]:
        return self._remuxed() if self._how.mode == "remux" else self._transcoded()

    def _remuxed(self) -> Iterator[bytes]:
        video, table, pipe = self._video, self._video.table, _Pipe()
        base = round(self.start / table.tick) + table.origin
        with open_container(video.path, video.limits) as source, _fragmented(pipe) as out:
            stream = video_stream(video.path, source)
            copy = out.add_stream_from_template(stream)
            sound = _SoundTrack(video, out, self.start)
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
                # Matroska has no decoding times for the first packets; any that ascend will do
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
        # bounded, because encoding must keep up with playing
        rate = min(30.0, video.info.fps or 30.0)
        grid = video.grid(rate, Segment(self.start, max(video.duration, self.start + 0.04)))
        # the frame on screen at the start may have appeared before it
        times = [self.start, *(float(time) for time in grid if time > self.start)]
        live = {"preset": "ultrafast", "tune": "zerolatency", "crf": "23"}
        fps = Fraction(rate).limit_denominator(1001)
        encoding = Encoding(fps=fps, gop=round(2 * rate), options=live)
        with _fragmented(pipe) as out:
            stream: VideoStream | None = None
            sound = _SoundTrack(video, out, self.start)
            for time, frame in zip(times, video.frames(times, width=1280), strict=False):
                pixels = np.ascontiguousarray(even(frame.pixels))
                stream = stream or add_picture(out, encoding, pixels, TICK)
                picture = VideoFrame.from_ndarray(pixels, format="rgb24")
                picture.pts = round((time - self.start) / TICK)
                picture.time_base = TICK
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


class _SoundTrack:
    """The sound of a film, encoded as AAC, written up to a time at each call."""

    def __init__(self, video: Video, out: OutputContainer, start: float) -> None:
        self._out = out
        self._stream: AudioStream | None = None
        self._sounds: Iterator[Sound] = iter(())
        self._done, self._written = 0.0, 0
        if video.info.audio:
            self._stream = add_sound(out, "aac", RATE)
            self._sounds = listen(
                video.path,
                origin=video.origin,
                slice_seconds=PIECE,
                within=Segment(max(0.0, start), max(start, video.duration)),
                limits=video.limits,
            )

    def until(self, time: float, pipe: _Pipe) -> Iterator[bytes]:
        """Encode and write the sound up to a time, a little ahead of the picture."""
        while self._stream is not None and self._done <= time:
            sound = next(self._sounds, None)
            if sound is None:
                self._out.mux(self._stream.encode(None))
                self._stream = None
                break
            self._out.mux(self._stream.encode(sound_frame(sound.samples, RATE, self._written)))
            self._written += len(sound.samples)
            self._done += PIECE
            yield pipe.take()


class PlaybackStreams:
    """At most one stream per viewer: a new one ends the earlier one."""

    def __init__(self, max_streams: int = 8) -> None:
        self._max_streams = max_streams
        self._lock = threading.Lock()
        self._streams: dict[str, object] = {}

    def play(self, viewer: str, playback: Playback) -> Iterator[bytes]:
        """The stream, until the viewer asks for another."""
        mine = object()
        with self._lock:
            self._streams[viewer] = mine
            # the oldest stream ends
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


viewers = PlaybackStreams()
