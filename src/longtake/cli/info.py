"""``longtake info``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from longtake._util.timecode import clock
from longtake.algorithms.partition import Partition
from longtake.cli.options import common, film_path
from longtake.cli.output import Output, human_bytes, in_columns, progress
from longtake.config import Settings
from longtake.index.film import Film, partition
from longtake.methods.a4vl.method import A4VL
from longtake.methods.base import configure
from longtake.runner.films import open_film
from longtake.video.video import StreamInfo, Video


@click.command()
@film_path
@click.option("--blocks", is_flag=True, help="Also divide the film where its content changes.")
@common
def info(path: Path, blocks: bool, settings: Settings) -> Output:
    """Show a film's length, picture, sound and subtitles.

    The length is that of the packets that are present, so a truncated file shows its true length.

    With --blocks, at most 200 frames are analysed, once. The strength of a change is how far it
    stands out from the rest of the film; the names after it are the detectors that found it. The
    settings are a4vl.events.

    \b
    Example:
      longtake info holiday.mp4
      longtake info holiday.mp4 --blocks --set a4vl.events.max_blocks=8
    """
    film = open_film(path, settings)
    divided = block_data(blocks_of(film, settings)) if blocks else []
    facts = _facts(film) | ({"blocks": divided} if blocks else {})
    return Output(facts, _lines(film, divided))


def _facts(film: Film) -> dict[str, Any]:
    video = film.video
    stream = dataclasses.asdict(video.info)
    # arbitrary text, written by whoever made the file
    del stream["metadata"]
    return {
        "film": film.path,
        "fingerprint": film.fingerprint,
        "duration": video.duration,
        "truncated": video.truncated,
        "frames": len(video.table),
        "timed": video.table.timed,
        "keyframe_seconds": _keyframe_seconds(video),
        **stream,
        "subtitle_file": film.subtitle_file,
    }


def _lines(film: Film, blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    video = film.video
    keyframes = "timestamps are unusable; frames are identified by their order"
    if video.table.timed:
        keyframes = f"every {_keyframe_seconds(video):.2f} s (median)"
    yield from in_columns(
        [
            ("file", str(film.path)),
            ("length", _length(video)),
            ("picture", _picture(video)),
            ("keyframes", keyframes),
            ("sound", _tracks(video.info.audio)),
            ("subtitles", _tracks(video.info.subtitles, film.subtitle_file)),
            ("format", f"{video.info.format}, {human_bytes(video.info.size)}"),
            ("fingerprint", film.fingerprint),
        ]
    )
    for number, block in enumerate(blocks, start=1):
        line = f"{number:>2}  {clock(block['start'])} – {clock(block['end'])}"
        if block["heads"]:
            line += f"  strength {block['strength']:.2f}  {', '.join(block['heads'])}"
        yield line


def blocks_of(film: Film, settings: Settings) -> Partition:
    """The film divided as A4VL divides it."""
    rule = configure(A4VL, settings.methods.get("a4vl", {})).events
    with progress(f"analysing {film.name}") as advance:
        return partition(film, rule, advance)


def block_data(divided: Partition) -> list[dict[str, Any]]:
    """Each block with the cut at its start; the first block has none."""
    blocks = []
    for block, cut in zip(divided.blocks, [None, *divided.cuts], strict=True):
        strength, heads = None, []
        if cut is not None:
            strength, heads = round(cut.strength, 4), list(cut.heads)
        times = {"start": block.start, "end": block.end}
        blocks.append({**times, "strength": strength, "heads": heads})
    return blocks


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


def _tracks(tracks: tuple[StreamInfo, ...], file: Path | None = None) -> str:
    names = []
    if file is not None:
        names.append(f"{file.name} beside the film")
    for track in tracks:
        known = track.language not in ("", "und")
        names.append(f"{track.codec} ({track.language})" if known else track.codec)
    return ", ".join(names) or "none"
