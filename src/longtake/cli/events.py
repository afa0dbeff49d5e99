"""``longtake events``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from longtake.algorithms.partition import Partition
from longtake.cli.options import common, film
from longtake.cli.output import emit_json, progress, say
from longtake.cli.places import check_place, plot_kind
from longtake.config import Settings
from longtake.index.blocks import partition
from longtake.index.film import Film
from longtake.methods.a4vl.method import A4VL
from longtake.methods.base import configure
from longtake.plots import events as plots
from longtake.session.films import open_film
from longtake.timecode import clock

THUMBNAIL = 192
"""Width of a block's picture in the plot."""


@click.command()
@film
@click.option(
    "--max-blocks", type=click.IntRange(min=1), metavar="B", help="Most blocks.  [default: 6]"
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the signals, the cuts and a picture of each block (extra plot).",
)
@common
def events(
    film: Path, max_blocks: int | None, plot: Path | None, settings: Settings, as_json: bool
) -> None:
    """Divide a film into blocks where what is to be seen changes.

    At most 200 frames are looked at, once. Strength says how far the change stands out from the film's other
    moments; the names behind it are the detectors that found it. Settings are those of a4vl.events.

    \b
    Example:
      longtake events holiday.mp4 --max-blocks 8 --plot holiday.png
    """
    if plot is not None:
        plots.check(plot)
        check_place(plot, plot_kind(plot), inputs=(film,))
    chosen = configure(A4VL, settings.methods.get("a4vl", {})).events
    if max_blocks is not None:
        chosen = dataclasses.replace(chosen, max_blocks=max_blocks)
    footage = open_film(film, settings)
    with progress(f"looking at {film.name}") as advance:
        found = partition(footage, chosen, advance)
    if plot is not None:
        _draw(footage, found, plot)
    if as_json:
        emit_json(
            {
                "film": str(film),
                "duration": found.duration,
                "blocks": _blocks(found),
                "plot": None if plot is None else str(plot),
            }
        )
        return
    for number, block in enumerate(_blocks(found), start=1):
        begins = (
            f"  strength {block['strength']:.2f}  {', '.join(block['heads'])}"
            if block["heads"]
            else ""
        )
        click.echo(f"{number:>2}  {clock(block['start'])} – {clock(block['end'])}{begins}")
    if plot is not None:
        say(f"plot: {plot}")


def _blocks(found: Partition) -> list[dict[str, Any]]:
    """Each block with the cut that it begins with; the first begins with the film."""
    begins = [None, *found.cuts]
    return [
        {
            "start": block.start,
            "end": block.end,
            "strength": None if cut is None else round(cut.strength, 4),
            "heads": [] if cut is None else list(cut.heads),
        }
        for block, cut in zip(found.blocks, begins, strict=True)
    ]


def _draw(footage: Film, found: Partition, path: Path) -> None:
    middles = [block.middle for block in found.blocks]
    plots.draw(found, footage.at(middles, width=THUMBNAIL), path, title=footage.name)
