"""Overhead per task, and how work that waits scales with workers, on every engine.

python benchmarks/cluster.py                 processes
python benchmarks/cluster.py --on ray        and Ray, where it is installed (extra: ray)
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from longtake._util.process_pool import TaskFailed, TaskFinished, WorkerBackend, WorkerPool
from longtake.cluster.backends import parse_backend

TASKS, LATENCY = 24, 0.5
"""Tasks that wait for so many seconds, as for a reply of a model."""
EMPTY = 200


@dataclass(frozen=True)
class Wait:
    """A task that needs no core."""

    name: str
    seconds: float

    def run(self) -> Iterator[str]:
        time.sleep(self.seconds)
        yield self.name

    def rest(self, done: int) -> Wait:  # noqa: ARG002
        return self


def seconds(engine: WorkerBackend, tasks: list[Wait], workers: int) -> float:
    """Time for the tasks, from the first to the last report, with workers that are ready."""
    with WorkerPool[Wait](engine) as pool:
        # as many as there are workers, so that each of them is started before the clock
        warm = [Wait("warm", 1.0) for _ in range(workers)]
        run(pool, warm)
        began = time.perf_counter()
        run(pool, tasks)
        return time.perf_counter() - began


def run(pool: WorkerPool[Wait], tasks: list[Wait]) -> None:
    pool.submit(*tasks)
    done = 0
    for report in pool.reports():
        assert not isinstance(report, TaskFailed)
        done += isinstance(report, TaskFinished)
    assert done == len(tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", default="processes")
    chosen = parser.parse_args()
    where = parse_backend(chosen.on)
    empty = [Wait(str(number), 0.0) for number in range(EMPTY)]
    waiting = [Wait(str(number), LATENCY) for number in range(TASKS)]
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
