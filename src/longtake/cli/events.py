"""``longtake events``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from longtake._util.timecode import clock
from longtake.algorithms.partition import Partition
from longtake.cli.options import COUNT, common, film_path, plot
from longtake.cli.output import check_place, emit_json, plot_kind, progress, say
from longtake.config import Settings
from longtake.index.film import Film, partition
from longtake.methods.a4vl.method import A4VL
from longtake.methods.base import configure
from longtake.plots.film import check_plot_path, draw_events
from longtake.runner.films import open_film


@click.command()
@film_path
@click.option("--max-blocks", type=COUNT, metavar="B", help="Most blocks.  [default: 6]")
@plot("Draw the signals, the cuts and a picture of each block")
@common
def events(
    path: Path, max_blocks: int | None, plot: Path | None, settings: Settings, as_json: bool
) -> None:
    """Divide a film into blocks where its content changes.

    At most 200 frames are analysed, once. The strength of a change says how far it stands out from
    the rest of the film; the names after it are the detectors that found it. The settings are those
    of a4vl.events.

    \b
    Example:
      longtake events holiday.mp4 --max-blocks 8 --plot holiday.png
    """
    if plot is not None:
        check_plot_path(plot)
        check_place(plot, plot_kind(plot), inputs=(path,))
    # this is the partition that A4VL uses, so its settings apply
    chosen = configure(A4VL, settings.methods.get("a4vl", {})).events
    if max_blocks is not None:
        chosen = dataclasses.replace(chosen, max_blocks=max_blocks)
    film = open_film(path, settings)
    with progress(f"analysing {path.name}") as advance:
        divided = partition(film, chosen, advance)
    if plot is not None:
        _draw(film, divided, plot)
    blocks = _blocks(divided)
    if as_json:
        emit_json(
            {
                "film": str(path),
                "duration": divided.duration,
                "blocks": blocks,
                "plot": None if plot is None else str(plot),
            }
        )
        return
    for number, block in enumerate(blocks, start=1):
        line = f"{number:>2}  {clock(block['start'])} – {clock(block['end'])}"
        if block["heads"]:
            line += f"  strength {block['strength']:.2f}  {', '.join(block['heads'])}"
        click.echo(line)
    if plot is not None:
        say(f"plot: {plot}")


def _blocks(divided: Partition) -> list[dict[str, Any]]:
    """Each block with the cut at its start; the first block has none."""
    starts = [None, *divided.cuts]
    blocks = []
    for block, cut in zip(divided.blocks, starts, strict=True):
        strength = None if cut is None else round(cut.strength, 4)
        heads = [] if cut is None else list(cut.heads)
        blocks.append(
            {"start": block.start, "end": block.end, "strength": strength, "heads": heads}
        )
    return blocks


def _draw(film: Film, divided: Partition, path: Path) -> None:
    middles = [block.middle for block in divided.blocks]
    draw_events(divided, film.at(middles, width=192), path, title=film.name)
