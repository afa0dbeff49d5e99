"""Overhead per task, and how work that waits scales with workers, on every engine.

python benchmarks/cluster.py                 processes
python benchmarks/cluster.py --on ray        and Ray, where it is installed (extra: ray)
"""

from __future__ import annotations

import argparse
import statistics
import time

from longtake._util.process_pool import Failure, Workers, run_groups
from longtake.cluster.backends import parse_backend

TASKS, LATENCY = 24, 0.5
"""Tasks that wait for so many seconds, as for a reply of a model."""
EMPTY = 200


def seconds(engine: Workers, tasks: list[float], workers: int) -> float:
    """Time for tasks that wait so long, from the first to the last, with workers that are ready."""
    # as many as there are workers, so that each of them is started before the clock
    run(engine, [1.0] * workers)
    began = time.perf_counter()
    run(engine, tasks)
    return time.perf_counter() - began


def run(engine: Workers, tasks: list[float]) -> None:
    for _, ended in run_groups(engine, time.sleep, ([task] for task in tasks)):
        assert not isinstance(ended, Failure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default="processes")
    chosen = parser.parse_args()
    where = parse_backend(chosen.on)
    empty, waiting = [0.0] * EMPTY, [LATENCY] * TASKS
    alone = 0.0
    for workers in (1, 2, 4):
        with where.open(workers) as engine:
            overheads = [seconds(engine, empty, workers) / EMPTY for _ in range(3)]
            took = seconds(engine, waiting, workers)
        alone = alone or took * workers
        overhead = 1000 * statistics.median(overheads)
        efficiency = alone / (took * workers)
        print(
            f"{chosen.on}  workers {workers}  overhead {overhead:.2f} ms a task  "
            f"{TASKS} tasks of {LATENCY:g} s in {took:.2f} s  efficiency {efficiency:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
