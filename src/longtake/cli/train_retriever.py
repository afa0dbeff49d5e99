"""``longtake train-retriever``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json, human_seconds, on_terminal, progress, say
from longtake.cli.places import PICTURE, Kind, check_place
from longtake.config import Settings
from longtake.errors import MissingExtra
from longtake.perception.headfile import Shape
from longtake.perception.retrieval import CARD, WEIGHTS
from longtake.plots import training as plots
from longtake.training.captions import Rules
from longtake.training.fit import Progress, Schedule, Tell, export, fit
from longtake.training.head import need_torch
from longtake.training.pairs import held_out
from longtake.training.sources import prepare

DEFAULT = Schedule()
CURVES = "curves.png"


@click.command("train-retriever")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The head's folder, for perception.retriever.",
)
@click.option(
    "--videos",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the films lie.  [default: beside DATA]",
)
@click.option("--epochs", type=click.IntRange(1), default=DEFAULT.epochs, show_default=True)
@click.option(
    "--batch",
    type=click.IntRange(2),
    default=DEFAULT.batch,
    show_default=True,
    help="Pairs in a step.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=DEFAULT.rate,
    show_default=True,
    help="Learning rate; falls along a cosine.",
)
@click.option(
    "--group",
    type=click.IntRange(1),
    default=DEFAULT.group,
    show_default=True,
    help="Neighbours in the list that share a batch.",
)
@click.option(
    "--frames",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    help="Frames of a clip, at most.",
)
@click.option("--layers", type=click.IntRange(1), default=4, show_default=True)
@click.option("--heads", type=click.IntRange(1), default=8, show_default=True)
@click.option(
    "--least-tokens",
    type=click.IntRange(0),
    default=Rules.least_tokens,
    show_default=True,
    help="Captions with fewer are dropped.",
)
@click.option(
    "--held-out",
    "share",
    type=click.FloatRange(0, 0.9, min_open=True),
    default=0.1,
    show_default=True,
    help="Share of clips, by whole films, to test on.",
)
@click.option("--seed", type=int, default=DEFAULT.seed, show_default=True)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, or what is there.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in DIR.")
@click.option(
    "--prepare",
    "only_prepare",
    is_flag=True,
    help="Say what is kept and dropped, and stop; needs no torch.",
)
@common
def train_retriever(
    data: Path,
    out: Path,
    videos: Path | None,
    epochs: int,
    batch: int,
    rate: float,
    group: int,
    frames: int,
    layers: int,
    heads: int,
    least_tokens: int,
    share: float,
    seed: int,
    device: str,
    resume: bool,
    only_prepare: bool,
    settings: Settings,
    as_json: bool,
) -> None:
    """Train a head that finds the part of a film that a text describes.

    DATA lists captioned stretches of films: JSON lines, JSON or CSV with video, start, end and caption. Frames and
    captions go through perception.images, which stays as it is; the head learns their order in time. It is written as
    ONNX, and runs without torch. Needs the extra train.

    \b
    Example:
      longtake train-retriever clips.jsonl --videos films --out head
      longtake ask film.mp4 "What happens after the goal?" --method lvagent --set perception.retriever=head
    """
    _check_files(out, data)
    if not only_prepare:
        need_torch()
    rules = Rules(least_tokens=least_tokens)
    with progress("looking at the clips") as advance:
        pairs, said, encoder = prepare(
            data, videos or data.parent, settings, rules, frames, out, advance
        )
    for line in said:
        say(line)
    if only_prepare:
        if as_json:
            emit_json({"kept": len(pairs), "report": said})
        return
    train, test = held_out(pairs, share, seed)
    shape = Shape(encoder.dim, layers, heads, frames)
    schedule = Schedule(epochs=epochs, batch=batch, rate=rate, group=group, seed=seed)
    weights, made = fit(
        shape, train, test, schedule, out, device=device, resume=resume, tell=_tell(len(train))
    )
    export(out, shape, weights, test, made, encoder, schedule)
    _draw(made, out / CURVES)
    if as_json:
        emit_json(
            {
                "head": str(out),
                "device": made.device,
                "pairs_per_second": made.pairs_per_second,
                "trained_on": len(train),
                "tested_on": len(test),
                "losses": made.losses,
                "recall": made.recalls,
                "mean_pooling": made.pooled,
                "report": said,
            }
        )
        return
    click.echo(
        f"{len(train)} clips trained on, {len(test)} held out; {made.device}, {made.pairs_per_second:.0f} pairs/s"
    )
    click.echo(f"{'':<14}" + "".join(f"recall@{k:<6}" for k in made.pooled))
    for name, found in (("head", made.recalls[-1]), ("mean pooling", made.pooled)):
        click.echo(f"{name:<14}" + "".join(f"{value:<13.3f}" for value in found.values()))
    click.echo(f"use it with --set perception.retriever={out}")


def _check_files(out: Path, data: Path) -> None:
    """Refuse a folder in which a file of the head would overwrite the data or something else."""
    kinds = {
        WEIGHTS: Kind("a head", (b"\x08",)),
        CARD: Kind("a head's card", (b"{",)),
        CURVES: PICTURE,
    }
    for name, kind in kinds.items():
        if (out / name).exists():
            check_place(out / name, kind, inputs=(data,))


def _draw(made: Progress, path: Path) -> None:
    try:
        plots.draw(made, path, title="retrieval head")
    except MissingExtra as error:
        say(f"no curves are drawn: {error}")


def _tell(clips: int) -> Tell:
    """A line per epoch, and on a terminal one for every tenth of it."""
    shown = -1

    def tell(epoch: int, share: float, made: Progress) -> None:
        nonlocal shown
        pace = f"{made.pairs_per_second:.0f} pairs/s"
        if share == 1.0 and len(made.recalls) > epoch:
            found = ", ".join(f"@{k} {value:.3f}" for k, value in made.recalls[epoch].items())
            say(f"epoch {epoch + 1}: loss {made.losses[epoch]:.4f}, recall {found}, {pace}")
        elif on_terminal() and (tenth := 10 * epoch + int(10 * share)) > shown:
            shown = tenth
            left = human_seconds((1 - share) * clips / max(made.pairs_per_second, 1e-9))
            say(f"epoch {epoch + 1}: {share:.0%}, {left} left in it, {pace} on {made.device}")

    return tell
