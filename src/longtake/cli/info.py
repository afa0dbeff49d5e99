"""``longtake info``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
import numpy as np

from longtake.cli.options import common, film, full_hash
from longtake.cli.output import emit_json, human_bytes, rows
from longtake.config import Settings
from longtake.index.film import Film
from longtake.media.video import StreamInfo
from longtake.session.films import open_film
from longtake.timecode import clock


@click.command()
@film
@full_hash
@common
def info(film: Path, full_hash: bool, settings: Settings, as_json: bool) -> None:
    """What a film is: length, picture, sound, subtitles.

    The length is counted from the packets that are really there, so a cut-off file shows its true length.

    \b
    Example:
      longtake info holiday.mp4
    """
    footage = open_film(film, settings, full_hash=full_hash)
    facts = _facts(footage)
    if as_json:
        emit_json(facts)
        return
    video = footage.video
    shape = f"{video.info.width}×{video.info.height}"
    rows(
        [
            ("file", str(film)),
            (
                "length",
                clock(video.duration, millis=True)
                + (
                    f" (cut off: the header claims {clock(video.info.claimed_duration or 0)})"
                    if video.truncated
                    else ""
                ),
            ),
            (
                "picture",
                f"{shape}, {video.info.codec}, {len(video.table):,} frames, about {video.info.fps:.4g} a second"
                + (f", turned by {video.info.rotation}°" if video.info.rotation else ""),
            ),
            (
                "keyframes",
                f"every {facts['keyframe_seconds']:.2f} s (median)"
                if video.table.timed
                else "time stamps unusable; frames are told apart by their order",
            ),
            ("sound", _tracks(video.info.audio)),
            ("subtitles", _tracks(video.info.subtitles, footage.subtitle_file)),
            ("format", f"{video.info.format}, {human_bytes(video.info.size)}"),
            ("fingerprint", footage.fingerprint),
        ]
    )


def _facts(footage: Film) -> dict[str, object]:
    video = footage.video
    keys = video.table.pts[video.table.keys] * video.table.tick
    return {
        "film": str(footage.path),
        "fingerprint": footage.fingerprint,
        "duration": video.duration,
        "truncated": video.truncated,
        "frames": len(video.table),
        "timed": video.table.timed,
        "keyframe_seconds": float(np.median(np.diff(keys))) if len(keys) > 1 else video.duration,
        **{k: v for k, v in dataclasses.asdict(video.info).items() if k != "metadata"},
        "subtitle_file": str(footage.subtitle_file) if footage.subtitle_file else None,
    }


def _tracks(tracks: tuple[StreamInfo, ...], file: Path | None = None) -> str:
    beside = [f"{file.name} beside the film"] if file is not None else []
    inside = [
        t.codec + (f" ({t.language})" if t.language not in ("", "und") else "") for t in tracks
    ]
    return ", ".join(beside + inside) or "none"
