"""How fast the retrieval head trains: clips of 16 frames with 512 numbers each, batches of 64.

    python benchmarks/head_speed.py [--clips 20000] [--epochs 3] [--device auto]

Needs the extra ``train``. The vectors, sized as those of CLIP ViT-B/32, are random, so nothing is
learned; steps are timed including the loading of batches. The pace of the last epoch is printed,
because the first one includes start-up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from longtake.perception.headfile import Shape
from longtake.training.fit import Schedule, fit
from longtake.training.pairs import Pairs


def random_pairs(count: int, shape: Shape, seed: int) -> Pairs:
    """Pairs of random unit vectors."""
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((count, shape.frames, shape.dim), np.float32)
    texts = rng.standard_normal((count, shape.dim), np.float32)
    frames /= np.linalg.norm(frames, axis=-1, keepdims=True)
    texts /= np.linalg.norm(texts, axis=-1, keepdims=True)
    counts = np.full(count, shape.frames, np.int64)
    videos = np.arange(count).astype(str)
    return Pairs(frames.astype(np.float16), counts, texts.astype(np.float16), videos)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    shape = Shape(dim=512)
    train, test = random_pairs(options.clips, shape, 0), random_pairs(100, shape, 1)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        schedule = Schedule(epochs=options.epochs, checkpoint_steps=10_000)
        _, progress = fit(shape, train, test, schedule, Path(folder), device=options.device)
        took = time.perf_counter() - began
    done = f"{options.epochs} epochs of {options.clips:,} in {took:.1f} s"
    print(f"{progress.device}: {progress.pairs_per_second:,.0f} pairs/s; {done}")


if __name__ == "__main__":
    main()
