"""``longtake train-retriever``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtake.cli.options import FOLDER, PATH, check_models, common
from longtake.cli.output import Kind, Output, check_place, human_seconds, on_terminal, progress, say
from longtake.config import Settings
from longtake.perception.retriever import CARD, WEIGHTS, Shape
from longtake.perception.torch_encoder import TorchImageTextEncoder, TrainableEncoder
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench.cli.options import number
from longtake_bench.training.data import CaptionRules, held_out, prepare
from longtake_bench.training.fit import (
    Schedule,
    Tell,
    TrainingProgress,
    device_of,
    encoded,
    export,
    fit,
    need_torch,
)

_KINDS = {WEIGHTS: Kind("a head", (b"PK",)), CARD: Kind("a head's card", (b"{",))}
"""The files of the head, which must not overwrite other files."""
DEFAULT = Schedule()
ENCODER = "encoder"
"""The folder of the trained encoder below that of the head."""


@click.command("train-retriever")
@click.argument("data", type=PATH)
@click.option(
    "--out", type=FOLDER, required=True, help="The head's folder, for perception.retriever."
)
@click.option(
    "--videos", type=PATH, metavar="DIR", help="Folder of the films.  [default: beside DATA]"
)
@number("--epochs", default=DEFAULT.epochs)
@number("--batch", kind=click.IntRange(2), default=DEFAULT.batch, hidden=True)
@number(
    "--rate",
    kind=click.FloatRange(0, min_open=True),
    default=DEFAULT.rate,
    help="Initial learning rate; it falls along a cosine.",
)
@number(
    "--encoder-rate",
    kind=click.FloatRange(0),
    default=DEFAULT.encoder_rate,
    help="Learning rate of the encoder, which must be perception.images=transformers; 1e-7 in the"
    " paper. 0 does not train it.",
)
@number("--group", default=DEFAULT.group, hidden=True)
@number("--frames", default=16, hidden=True)
@number("--layers", default=4, hidden=True)
@number("--heads", default=8, hidden=True)
@number("--least-tokens", kind=click.IntRange(0), default=CaptionRules.least_tokens, hidden=True)
@click.option(
    "--rewrite",
    metavar="MODEL",
    help="Let a model rewrite captions that are too long for the encoder.  [default: cut them]",
)
@number(
    "--held-out", "share", kind=click.FloatRange(0, 0.9, min_open=True), default=0.1, hidden=True
)
@number("--seed", kind=click.INT, default=DEFAULT.seed)
@click.option("--device", default="auto", help="cpu, cuda, or auto.")
@click.option("--resume", is_flag=True, help="Continue from the checkpoint in DIR.")
@click.option(
    "--dry-run",
    "only_prepare",
    is_flag=True,
    help="Show what is kept and dropped, and stop; needs no torch.",
)
@common
def train_retriever(
    data: Path,
    out: Path,
    videos: Path | None,
    frames: int,
    layers: int,
    heads: int,
    least_tokens: int,
    rewrite: str | None,
    share: float,
    device: str,
    resume: bool,
    only_prepare: bool,
    settings: Settings,
    **given: Any,
) -> Output:
    """Train a head that finds the part of a film that a text describes.

    DATA lists captioned segments of films: JSON Lines, JSON or CSV with video, start, end and
    caption. Frames and captions are encoded by perception.images; the head learns the order of
    frames in time. Training needs the extra 'train', using the head does not. With --encoder-rate,
    the encoder is trained in memory as well, and saved beside the head.

    \b
    Example:
      longtake train-retriever clips.jsonl --videos films --out head
      longtake ask film.mp4 "Who scores?" --method lvagent --set perception.retriever=head
    """
    for name, kind in _KINDS.items():
        if (out / name).exists():
            check_place(out / name, kind, inputs=(data,))
    # before encoding, which takes long
    if not only_prepare:
        need_torch()
    rules, schedule = CaptionRules(least_tokens=least_tokens), Schedule(**given)
    folder, raw = videos or data.parent, schedule.encoder_rate > 0
    session, run = Session(settings, ModelAssignment((rewrite,) if rewrite else ())), None
    if rewrite:
        check_models(session, ("llm",))
        # caches replies, so that an interrupted run does not pay for them again
        run = session.reader(folder=out)
    with session.under_way(), progress("encoding the clips") as advance:
        pairs, notes, encoder = prepare(
            data, folder, settings, rules, frames, advance, raw=raw, run=run
        )
    for line in notes:
        say(line)
    if only_prepare:
        return Output({"kept": len(pairs), "report": notes})
    train, test = held_out(pairs, share, schedule.seed)
    shape = Shape(encoder.dim, layers, heads, frames)
    tuned = None
    if isinstance(encoder, TorchImageTextEncoder) and raw:
        tuned = TrainableEncoder(encoder, device_of(device))
    tell = _tell(len(train))
    weights, made = fit(
        shape, train, test, schedule, out, device=device, resume=resume, tell=tell, encoder=tuned
    )
    use = f"--set perception.retriever={out}"
    if tuned is not None:
        test, encoder = encoded(tuned, test), tuned.save(out / ENCODER)
        use += (
            f" --set perception.images=transformers --set perception.images_folder={out / ENCODER}"
        )
    export(out, shape, weights, test, made, encoder, schedule)
    report = {
        "head": out,
        "trained_on": len(train),
        "tested_on": len(test),
        "device": made.device,
        "pairs_per_second": made.pairs_per_second,
        "losses": made.losses,
        "recall": made.recalls,
        "mean_pooling": made.pooled,
        "report": notes,
    }
    lines = [
        f"trained on {len(train)} clips, tested on {len(test)}",
        f"{made.device}, {made.pairs_per_second:.0f} pairs/s",
        f"{'':<14}" + "".join(f"recall@{rank:<6}" for rank in made.pooled),
    ]
    for name, recall in (("head", made.recalls[-1]), ("mean pooling", made.pooled)):
        lines.append(f"{name:<14}" + "".join(f"{value:<13.3f}" for value in recall.values()))
    return Output(report, [*lines, f"use it with {use}"])


def _tell(clips: int) -> Tell:
    """Print a line per epoch, and on a terminal one per tenth of an epoch."""
    shown = -1

    def tell(epoch: int, share: float, made: TrainingProgress) -> None:
        nonlocal shown
        pace = f"{made.pairs_per_second:.0f} pairs/s"
        tenth = 10 * epoch + int(10 * share)
        if share == 1.0 and len(made.recalls) > epoch:
            recalls = [f"@{rank} {value:.3f}" for rank, value in made.recalls[epoch].items()]
            recall = ", ".join(recalls)
            say(f"epoch {epoch + 1}: loss {made.losses[epoch]:.4f}, recall {recall}, {pace}")
        elif on_terminal() and tenth > shown:
            shown = tenth
            left = human_seconds((1 - share) * clips / max(made.pairs_per_second, 1e-9))
            say(f"epoch {epoch + 1}: {share:.0%}, {left} left in it, {pace} on {made.device}")

    return tell
