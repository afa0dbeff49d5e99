"""The retrieval head against mean pooling on clips whose meaning depends on order.

    python benchmarks/retriever.py [--clips 6000] [--epochs 10] [--out build/retriever]

Needs the extra ``train``. Each clip joins two deeds of a laboratory world; a second clip has them
in reverse order. Captions are generated: "First …, then …". Frame vectors come from the
laboratory's encoder. Its text side is a bag of words without order, so here words are also tagged
with their clause, as a text encoder that reads in order would do. Frames carry no such tag: the
mean over frames cannot distinguish a clip from its reverse and is right in half of the cases at
best. The test clips come from worlds that were not used for training.
"""

from __future__ import annotations

import argparse
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from longtake.lab.encoder import PAIR_WEIGHT, LabEncoder, _sum, _unit, bag
from longtake.lab.facts import Deed
from longtake.lab.profile import PROFILE
from longtake.lab.world import make_script
from longtake.perception.headfile import Shape
from longtake.plots import training as plots
from longtake.training.fit import Schedule, export, fit
from longtake.training.pairs import stack

DIM = 128
"""Half of the laboratory's dimensions, so that ten epochs take a minute or two on one core."""
SHOWN = 4
"""Frames per deed."""
CLAUSES = re.compile(r"^First (.*), then (.*)\.$")


class OrderedText(LabEncoder):
    """The laboratory's encoder, with a text side that is aware of order."""

    def __init__(self, noise: float) -> None:
        super().__init__(noise, profile=replace(PROFILE.encoder, dim=DIM))
        self.key = f"{self.key}|ordered|{DIM}"

    def _text(self, text):
        weights = bag(text)
        if match := CLAUSES.match(text):
            for clause, words in zip(("first", "then"), match.groups(), strict=True):
                weights |= {f"{clause}:{word}": PAIR_WEIGHT for word in bag(words)}
        return _unit(_sum(weights, self.dim))


def said(deed: Deed) -> str:
    return f"{deed.person} {deed.verb} {deed.thing} at the {deed.place}"


def clips_of(seeds, minutes, per_world, encoder, random):
    """Pairs of clips and captions; each clip is followed by its reverse."""
    frames, captions, videos = [], [], []
    for seed in seeds:
        script = make_script(seed, minutes)
        for _ in range(per_world // 2):
            chosen = random.choice(len(script.deeds), 2, replace=False)
            one, other = (script.deeds[n] for n in chosen)
            rows = []
            for happening in (one, other):
                span = np.arange(happening.start, happening.end)
                seconds = sorted(random.choice(span, SHOWN, replace=False))
                rows.append(encoder.moments(script, seconds))
            for first, second, order in ((one, other, rows), (other, one, rows[::-1])):
                frames.append(np.concatenate(order))
                captions.append(f"First {said(first.fact)}, then {said(second.fact)}.")
                videos.append(script.name)
    return stack(frames, encoder.texts(captions), videos, 2 * SHOWN)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", type=int, default=6000)
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--worlds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("build/retriever"))
    options = parser.parse_args()
    random, encoder = np.random.default_rng(options.first_seed), OrderedText(options.noise)
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    train = clips_of(seeds, options.minutes, options.clips // options.worlds, encoder, random)
    fresh = range(seeds.stop, seeds.stop + 4)
    test = clips_of(fresh, options.minutes, options.held_out // 4, encoder, random)
    shutil.rmtree(options.out, ignore_errors=True)
    shape = Shape(encoder.dim, frames=2 * SHOWN)
    # group=2 keeps a clip and its reverse in one batch
    schedule = Schedule(epochs=options.epochs, rate=options.rate, group=2)
    began = time.perf_counter()

    def tell(epoch, share, progress):
        if share == 1.0 and len(progress.recalls) > epoch:
            at = progress.recalls[epoch]
            recall = f"recall@1 {at['1']:.3f} @5 {at['5']:.3f} @10 {at['10']:.3f}"
            pace = f"{progress.pairs_per_second:.0f} pairs/s"
            print(
                f"epoch {epoch + 1}: loss {progress.losses[epoch]:.3f}, {recall}, {pace}",
                flush=True,
            )

    clips = f"{len(train)} clips of {options.worlds} worlds, {len(test)} held out from 4 others"
    print(f"lab {PROFILE.hash}, {clips}, noise {options.noise:g}")
    weights, progress = fit(
        shape, train, test, schedule, options.out, device=options.device, tell=tell
    )
    seconds = time.perf_counter() - began
    head = export(options.out, shape, weights, test, progress, encoder, schedule)
    pooled = progress.pooled
    print(f"mean pooling: recall@1 {pooled['1']:.3f} @5 {pooled['5']:.3f} @10 {pooled['10']:.3f}")
    texts = np.asarray(test.texts, np.float32)
    own = np.array([head.scores(test.clip(n), texts[[n, n ^ 1]]) for n in range(len(test))])
    print(f"distinguishes a clip from its reverse: {np.mean(own[:, 0] > own[:, 1]):.3f}")
    print(f"{seconds:.0f} s on {progress.device}, {progress.pairs_per_second:.0f} pairs/s")
    plots.draw(
        progress,
        options.out / "curves.png",
        title="retrieval head on ordered clips of the laboratory",
    )
    print(f"curves: {options.out / 'curves.png'}")


if __name__ == "__main__":
    main()
