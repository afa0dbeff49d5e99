"""``longtake info``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
import numpy as np

from longtake._util.timecode import clock
from longtake.cli.options import common, film_path
from longtake.cli.output import emit_json, human_bytes, rows
from longtake.config import Settings
from longtake.index.film import Film
from longtake.runner.films import open_film
from longtake.video.video import StreamInfo, Video


@click.command()
@film_path
@common
def info(path: Path, settings: Settings, as_json: bool) -> None:
    """Show a film's length, picture, sound and subtitles.

    The length is that of the packets that are present, so a truncated file shows its true length.

    \b
    Example:
      longtake info holiday.mp4
    """
    film = open_film(path, settings)
    if as_json:
        emit_json(_facts(film))
        return
    video = film.video
    rows(
        [
            ("file", str(path)),
            ("length", _length(video)),
            ("picture", _picture(video)),
            (
                "keyframes",
                f"every {_keyframe_seconds(video):.2f} s (median)"
                if video.table.timed
                else "timestamps are unusable; frames are identified by their order",
            ),
            ("sound", _tracks(video.info.audio)),
            ("subtitles", _tracks(video.info.subtitles, film.subtitle_file)),
            ("format", f"{video.info.format}, {human_bytes(video.info.size)}"),
            ("fingerprint", film.fingerprint),
        ]
    )


def _length(video: Video) -> str:
    length = clock(video.duration, millis=True)
    if not video.truncated:
        return length
    return f"{length} (truncated: the header claims {clock(video.info.claimed_duration or 0)})"


def _picture(video: Video) -> str:
    facts = video.info
    if not facts.codec:
        return "none: the file has sound only"
    size = f"{facts.width}×{facts.height}"
    rate = f"about {facts.fps:.4g} per second"
    turned = f", rotated by {facts.rotation}°" if facts.rotation else ""
    return f"{size}, {facts.codec}, {len(video.table):,} frames, {rate}{turned}"


def _keyframe_seconds(video: Video) -> float:
    keys = video.table.pts[video.table.keys] * video.table.tick
    return float(np.median(np.diff(keys))) if len(keys) > 1 else video.duration


def _facts(film: Film) -> dict[str, object]:
    video = film.video
    stream = dataclasses.asdict(video.info)
    # arbitrary text, written by whoever made the file
    del stream["metadata"]
    return {
        "film": str(film.path),
        "fingerprint": film.fingerprint,
        "duration": video.duration,
        "truncated": video.truncated,
        "frames": len(video.table),
        "timed": video.table.timed,
        "keyframe_seconds": _keyframe_seconds(video),
        **stream,
        "subtitle_file": str(film.subtitle_file) if film.subtitle_file else None,
    }


def _tracks(tracks: tuple[StreamInfo, ...], file: Path | None = None) -> str:
    names = []
    if file is not None:
        names.append(f"{file.name} beside the film")
    for track in tracks:
        known = track.language not in ("", "und")
        names.append(f"{track.codec} ({track.language})" if known else track.codec)
    return ", ".join(names) or "none"
