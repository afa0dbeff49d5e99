"""The scene graph of a four-hour film at one frame per second: ours, sparse, against a dense one.

    python benchmarks/graph.py [--frames 14400] [--dim 768] [--scenes 1440] [--runs 5]

From frame vectors to W_norm, then one diffusion of seven iterations. The dense implementation keeps
K × K matrices, sorts every row, and multiplies matrices by vectors. Peak memory is what NumPy
allocates in addition to the frame vectors.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from longtake.algorithms import graph, scenes

THETA = 0.5


def frame_vectors(frames: int, dim: int, count: int) -> np.ndarray:
    """Unit vectors of ``count`` scenes with noise; a tenth of the scenes look the same."""
    random = np.random.default_rng(0)
    tens = np.arange(1, frames // 10)
    cuts = np.sort(random.choice(tens, count - 1, replace=False)) * 10 if count > 1 else []
    directions = random.normal(size=(count, dim))
    directions[random.random(count) < 0.1] = directions[0]
    rows = np.repeat(directions, np.diff([0, *cuts, frames]), axis=0)
    rows = rows + 0.3 * random.normal(size=(frames, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def cut(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scene vectors and the centres of scenes in seconds."""
    spans = scenes.scenes(vectors, THETA, shortest=10, longest=120)
    return scenes.scene_vectors(vectors, spans), np.array([(a + b) / 2 for a, b in spans])


def sparse(nodes: np.ndarray, centres: np.ndarray) -> Any:
    """W_norm by our implementation."""
    return graph.normalise(graph.affinity(nodes, centres))


def dense(nodes: np.ndarray, centres: np.ndarray, kind: str = "quicksort") -> np.ndarray:
    """W_norm with dense matrices; a stable sort breaks ties as our implementation does."""
    similarity = np.maximum(0, nodes @ nodes.T)
    distance = np.abs(centres[:, None] - centres[None])
    weights = 0.6 * similarity + 0.4 * np.exp(-distance / 30)
    np.fill_diagonal(weights, 0)
    kept = np.zeros_like(weights)
    best = np.argsort(-weights, axis=1, kind=kind)[:, :8]
    np.put_along_axis(kept, best, np.take_along_axis(weights, best, axis=1), axis=1)
    kept = (kept + kept.T) / 2
    scale = 1 / np.sqrt(kept.sum(axis=1))
    return scale[:, None] * kept * scale[None]


def timed(act: Callable[[], Any], runs: int) -> float:
    """Median seconds of several runs."""
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def peak(act: Callable[[], Any]) -> float:
    """Peak allocation in megabytes."""
    tracemalloc.start()
    act()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=14_400)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--scenes", type=int, default=1_440)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    vectors = frame_vectors(options.frames, options.dim, min(options.scenes, options.frames // 10))
    nodes, centres = cut(vectors)
    count = len(nodes)
    ours, theirs = sparse(nodes, centres), dense(nodes, centres, "stable")
    assert abs(ours.dense() - theirs).max() < 1e-12
    size = f"{options.frames:,} frames of {options.dim} numbers"
    print(f"{size}, {count:,} scenes, {len(ours.rows):,} edges")
    cutting = timed(lambda: cut(vectors), options.runs)
    print(f"  scenes            {cutting:8.3f} s")
    a = timed(lambda: sparse(nodes, centres), options.runs)
    b = timed(lambda: dense(nodes, centres), options.runs)
    print(f"  graph, sparse     {a:8.3f} s   dense {b:8.3f} s   → {b / a:.1f} times as fast")
    both = peak(lambda: sparse(*cut(vectors)))
    print(f"  peak memory       {both:8.0f} MB  dense {peak(lambda: dense(*cut(vectors))):8.0f} MB")
    injected = np.random.default_rng(1).random(count)
    one = timed(lambda: graph.diffuse(ours, injected, injected), 10 * options.runs)
    other = timed(lambda: graph.diffuse(theirs, injected, injected), 10 * options.runs)
    times = f"{1e3 * one:8.3f} ms  dense {1e3 * other:8.3f} ms"
    print(f"  one diffusion     {times}  → {other / one:.0f} times as fast")
    print(f"  scenes and graph  {cutting + a:8.3f} s in all")


if __name__ == "__main__":
    main()
