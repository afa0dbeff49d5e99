"""How well the time left that the progress bars show holds on real films.

    python benchmarks/time_left.py FILM … [--only PART …]

Indexes each film with an empty cache, as ``longtake index`` does. For each part the table shows, at
every tenth of the way, the time left as told divided by the time that was left in truth, from the
last value told before that moment; beside it stands the share of all values from a tenth of the way
on that were within 30 %, or within 3 % of the whole where little is left. Needs an idle machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from longtake.cli.output import seconds_left
from longtake.config import Settings
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.index.tasks import Task, tasks
from longtake.index.together import build_together, meanwhile

TENTHS = range(1, 10)


@dataclass
class Told:
    """What a progress bar told."""

    began: float = field(default_factory=time.perf_counter)
    values: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the bar appeared, and seconds left as told."""
    total: float = 0.0

    def show(self, share: float) -> None:
        """Note a value, as the bar computes it."""
        elapsed = time.perf_counter() - self.began
        left = seconds_left(elapsed, share)
        if left is not None:
            self.values.append((elapsed, left))

    def ratios(self) -> list[float | None]:
        """Told by true time left at each tenth; ``None`` before the first value."""
        ratios: list[float | None] = []
        for tenth in TENTHS:
            moment = self.total * tenth / 10
            before = [(at, left) for at, left in self.values if at <= moment]
            if not before:
                ratios.append(None)
                continue
            at, left = before[-1]
            # the bar counts down no further between two values
            ratios.append(left / (self.total - at))
        return ratios

    def held(self) -> tuple[int, int]:
        """How many values held, of how many."""
        later = [(at, left) for at, left in self.values if at >= 0.1 * self.total]
        good = 0
        for at, left in later:
            true = self.total - at
            good += abs(left - true) <= max(0.3 * true, 0.03 * self.total)
        return good, len(later)


def watch(path: Path, only: list[str]) -> dict[str, Told]:
    """Index a film from nothing and note what each bar tells."""
    told: dict[str, Told] = {}

    @contextmanager
    def show(task: Task) -> Iterator[Callable[[float], None]]:
        # as the command does it: what loads the models is no part of the bar
        if task.name == "onscreen":
            task.estimate()
        bar = told[task.name] = Told()
        yield bar.show
        bar.total = time.perf_counter() - bar.began

    with tempfile.TemporaryDirectory() as cache:
        film = Film(path, Store(Path(cache)), Settings())
        chosen = [task for task in tasks(film) if not only or task.name in only]
        missing = [task for task in chosen if not task.done()]

        def announce() -> None:
            for task in missing:
                if task is not meanwhile(missing):
                    task.estimate()

        build_together(film, missing, show, announce)
    return told


def main() -> None:
    """Print a row for each part of each film."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("films", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+", default=[], help="parts to compute")
    args = parser.parse_args()
    heads = " | ".join(f"{tenth}0 %" for tenth in TENTHS)
    print(f"| film | part | seconds | {heads} | held |")
    print("|---" * (len(TENTHS) + 4) + "|")
    for path in args.films:
        for name, bar in watch(path, args.only).items():
            cells = ["–" if ratio is None else f"{ratio:.2f}" for ratio in bar.ratios()]
            good, count = bar.held()
            row = [path.stem, name, f"{bar.total:.1f}", *cells, f"{good} of {count}"]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
