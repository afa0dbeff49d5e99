"""Citations of every method in the lab, without and with the check of answers: one table.

    python benchmarks/citations.py --out build/citations --workers 10 --parallel 2
    python benchmarks/citations.py --out build/citations --page-only    # from what is there so far
    python benchmarks/citations.py --out build/dev --first-seed 60 --worlds 6   # other films

60 minutes, the films and questions of ``benchmarks/lab.py``. Each cell is a run folder that
is resumed, so the command may be stopped and started again at any time. No GPU is used; the imports
are those of ``longtake`` without extras.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from lab import FIRST_SEED, QUESTIONS, WORLDS, Cell, citations

from longtake.evals.benchmarks import Benchmark
from longtake.evals.benchmarks.lab import lab
from longtake.evals.report import table
from longtake.evals.runner import Scored, score
from longtake.evals.scoring import DRAWS
from longtake.types import GIVEN

MINUTES = 60
# the costly ones first, so that none is left alone at the end
METHODS = (
    "symphony",
    "auto",
    "videodetective",
    "lvagent",
    "a4vl",
    "videoagent",
    "uniform",
    "lookup",
)
HEAD = (
    "method",
    "accuracy",
    "citation precision",
    "recall",
    "right answers marked unsupported",
    "wrong answers marked unsupported",
    "tokens",
    "wrong ÷ right (95 %)",
    "given without → with",
    "questions",
)


def cells(options: argparse.Namespace) -> list[tuple[Cell, Cell]]:
    """Each method without and with the check."""
    pairs = []
    for method in options.methods:
        plain = Cell(options.out, MINUTES, method, verify=False)
        pairs.append((plain, Cell(options.out, MINUTES, method)))
    return pairs


def unsupported(scored: Scored, right: bool) -> str:
    """The share of right or of wrong answers that are marked as unsupported."""
    rows = [row for row, hit in zip(scored.rows, scored.right, strict=True) if hit == right]
    given = [row["status"] for row in rows if row["status"] in GIVEN]
    return f"{given.count('unsupported') / len(given):.1%}" if given else "–"


def verification(verified: Scored, plain: Scored) -> list[str]:
    """A method's citations without and with verification, and what it costs."""
    before, after = citations(plain), citations(verified)
    cost = verified.tokens / plain.tokens - 1
    return [
        f"{plain.accuracy.value:.1%} → {verified.accuracy.value:.1%}",
        f"{before[0]} → {after[0]}",
        f"{before[1]} → {after[1]}",
        unsupported(verified, right=True),
        unsupported(verified, right=False),
        f"{cost:+.1%}",
    ]


def line(method: str, plain: Scored, verified: Scored) -> list[str]:
    """One row of the table."""
    given = f"{_given(plain)} → {_given(verified)}"
    return [
        method,
        *verification(verified, plain),
        ratio(verified),
        given,
        str(len(verified.items)),
    ]


def ratio(scored: Scored) -> str:
    """How much more often wrong answers are marked than right ones, with an interval over films."""
    films = sorted({item.asked.video for item in scored.items})
    # of each film, and of its wrong and its right answers: how many are marked, of how many
    counts = np.zeros((len(films), 2, 2))
    for item, row, hit in zip(scored.items, scored.rows, scored.right, strict=True):
        if row["status"] in GIVEN:
            marked = row["status"] == "unsupported"
            counts[films.index(item.asked.video), int(hit)] += (marked, 1)
    draws = np.random.default_rng(0).integers(0, len(films), (DRAWS, len(films)))
    sums = np.concatenate([counts.sum(axis=0)[None], counts[draws].sum(axis=1)])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums[..., 0] / sums[..., 1]
        ratios = shares[:, 0] / shares[:, 1]
    if not np.isfinite(ratios[0]):
        return "–"
    low, high = np.quantile(ratios[1:], (0.025, 0.975), method="nearest")
    return f"{ratios[0]:.1f} [{low:.1f}, {high:.1f}]"


def write(options: argparse.Namespace, benchmark: Benchmark) -> None:
    """Print the table of what is complete, and write it to ``citations.md``."""
    lines = []
    for plain, verified in cells(options):
        scored = [score(benchmark, cell.folder.results()) for cell in (plain, verified)]
        if all(len(each.rows) == len(benchmark.items) for each in scored):
            lines.append(line(plain.method, *scored))
    page = table(HEAD, lines)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "citations.md").write_text(page + "\n", encoding="utf-8")
    print(page)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1, help="processes of each cell")
    parser.add_argument("--parallel", type=int, default=1, help="cells at once")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="about each world")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED + 5 * MINUTES)
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    benchmark = lab(seeds, MINUTES, options.questions)
    if not options.page_only:
        todo = [cell for pair in cells(options) for cell in pair]
        with ThreadPoolExecutor(options.parallel) as pool:
            list(pool.map(lambda cell: cell.run(benchmark, options.workers), todo))
    write(options, benchmark)


def _given(scored: Scored) -> int:
    """How many questions got an answer."""
    return sum(row["status"] in GIVEN for row in scored.rows)


if __name__ == "__main__":
    main()
