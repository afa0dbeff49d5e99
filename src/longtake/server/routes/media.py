"""Pictures and sound of a film: frames, clips, playback, subtitles."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Query, Request
from pydantic import BaseModel
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse

from longtake.algorithms.partition import Partition
from longtake.index.film import Film, partition
from longtake.methods.a4vl.method import A4VL
from longtake.methods.base import configure
from longtake.server.films import frame_at, jpeg
from longtake.server.playback import Playback, PlaybackStreams, plan
from longtake.server.state import ServerState, StateParam
from longtake.types import Line, Segment
from longtake.video.clip import clip_bytes
from longtake.video.subtitles import srt, vtt

router = APIRouter(tags=["media"])
viewers = PlaybackStreams()

Seconds = Annotated[float, Query(ge=0, allow_inf_nan=False)]
LONGEST_CLIP = 600.0
"""Seconds of a clip."""
KINDS = {".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/mp4", ".webm": "video/webm"}


class TimedText(BaseModel):
    """A line of speech or of on-screen text."""

    start: float
    end: float
    text: str


class Block(BaseModel):
    """A stretch between two changes of what is visible."""

    start: float
    end: float
    strength: float | None


class Timeline(BaseModel):
    """What is known about a film over its length."""

    duration: float
    speech: list[TimedText]
    onscreen: list[TimedText]


class PlaybackCard(BaseModel):
    """How to play a film."""

    mode: str
    codecs: str
    """Type for ``MediaSource``; empty if the file is played as it is."""


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
    # the file's content, the moment and the size decide everything
    tag = f'"{opened.fingerprint[:16]}-{t:.4f}-{width}"'
    headers = {"ETag": tag, "Cache-Control": "private, max-age=86400"}
    if tag in if_none_match:
        return Response(status_code=304, headers=headers)
    shown = frame_at(opened, t, width)
    headers["X-Frame-Time"] = f"{shown.time:.6f}"
    return Response(jpeg(shown), media_type="image/jpeg", headers=headers)


@router.get("/films/{film}/timeline")
def timeline(film: str, state: StateParam) -> Timeline:
    """Speech and on-screen text, as far as they are known; nothing is computed."""
    opened = state.catalog.open(film)
    speech, onscreen = _lines(opened)
    return Timeline(duration=opened.duration, speech=speech, onscreen=onscreen)


def _lines(film: Film) -> tuple[list[TimedText], list[TimedText]]:
    # subtitles cost nothing, and then they are known
    film.words.subtitles.lines()
    speech, onscreen = film.known_lines()
    return _words(speech), _words(onscreen)


def _words(lines: list[Line]) -> list[TimedText]:
    return [
        TimedText(start=line.segment.start, end=line.segment.end, text=line.text) for line in lines
    ]


@router.get("/films/{film}/blocks")
def blocks(film: str, state: StateParam) -> list[Block]:
    """The film divided where its content changes; computed once, from up to 200 frames."""
    divided = _partition(state, film)
    # the first block begins with the film, not with a change
    strengths = [None, *(round(cut.strength, 4) for cut in divided.cuts)]
    return [
        Block(start=block.start, end=block.end, strength=strength)
        for block, strength in zip(divided.blocks, strengths, strict=True)
    ]


def _partition(state: ServerState, film: str) -> Partition:
    # this is the partition that A4VL uses, so its settings apply
    rule = configure(A4VL, state.options.settings.methods.get("a4vl", {})).events
    return partition(state.catalog.open(film), rule)


@router.get("/films/{film}/subtitles.{ending}")
def subtitles(film: str, ending: str, state: StateParam) -> PlainTextResponse:
    """Speech as SRT or WebVTT."""
    speech, _ = _lines(state.catalog.open(film))
    lines = [(line.start, line.end, line.text) for line in speech]
    return _texts(ending, lines)


@router.get("/films/{film}/chapters.{ending}")
def chapters(film: str, ending: str, state: StateParam) -> PlainTextResponse:
    """The blocks of a film as chapters, in SRT or WebVTT."""
    parts = _partition(state, film).blocks
    lines = [(part.start, part.end, f"Part {number}") for number, part in enumerate(parts, 1)]
    return _texts(ending, lines)


def _texts(ending: str, lines: list[tuple[float, float, str]]) -> PlainTextResponse:
    if ending == "vtt":
        return PlainTextResponse(vtt(lines), media_type="text/vtt")
    if ending == "srt":
        return PlainTextResponse(srt(lines), media_type="application/x-subrip")
    raise HTTPException(404, "only .srt and .vtt")


@router.get("/films/{film}/play")
def how_to_play(film: str, state: StateParam) -> PlaybackCard:
    """How browsers can play a film."""
    how = plan(state.catalog.open(film).video)
    kind = f'video/mp4; codecs="{how.codecs}"' if how.codecs else ""
    return PlaybackCard(mode=how.mode, codecs=kind)


@router.get("/films/{film}/file")
def file(film: str, state: StateParam) -> FileResponse:
    """The film's file, with ranges."""
    path = state.catalog.path(film)
    # a browser plays a file only by one of the types that it knows
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
    """The film from a time on as fragmented MP4; ``X-Start`` is the time of its zero.

    A viewer who asks again ends the stream before.
    """
    video = state.catalog.open(film).video
    playback = Playback(video, plan(video), start)
    # without a name, a machine is one viewer
    who = viewer or (request.client.host if request.client else "")
    headers = {"X-Start": f"{playback.start:.6f}", "Cache-Control": "no-store"}
    pieces = viewers.play(who, playback)
    return StreamingResponse(pieces, media_type="video/mp4", headers=headers)


@router.get("/films/{film}/clip")
def clip(film: str, state: StateParam, start: Seconds, end: Seconds) -> Response:
    """A stretch of a film as MP4, cut at the frame."""
    opened = state.catalog.open(film)
    # bounded before anything is decoded
    if not start < end or start >= opened.duration or end - start > LONGEST_CLIP:
        raise HTTPException(422, f"a clip is up to {LONGEST_CLIP:g} s long and inside the film")
    name = f"clip-{start:.2f}-{end:.2f}.mp4"
    headers = {"Content-Disposition": f'inline; filename="{name}"'}
    # encoded in memory: at most ten minutes
    content = clip_bytes(opened.video, Segment(start, end))
    return Response(content, media_type="video/mp4", headers=headers)
