"""Every method on 20, 60 and 120 minutes of film, on one page.

    python benchmarks/lab.py --out build/lab --workers 16
    python benchmarks/lab.py --out build/lab --methods auto --against OTHER/build/lab

Each cell (length, acuity, method) is a run folder that is resumed, so the command may be stopped
and started again at any time, also with other ``--methods`` or ``--minutes``. Each method is paired
with ``uniform`` on the same questions: with as many frames as the method was shown on average, and
with as many as cost the same tokens, at most what fits the model's context. No GPU is used; the
imports are those of ``longtake`` without extras. ``--against`` also pairs each cell with the one of
the same name that another version of longtake left in a folder.
"""

import argparse
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench import scoring
from longtake_bench.benchmarks import Benchmark
from longtake_bench.benchmarks.lab import lab
from longtake_bench.experiment import frames_in_one_call, with_profile_model
from longtake_bench.lab.profile import PROFILE
from longtake_bench.report import table
from longtake_bench.runner import Scored, Solver, evaluate, score
from longtake_bench.runs import RunFolder, format_mean
from longtake_bench.scoring import paired

METHODS = (
    *("blind", "lookup", "search", "auto"),
    *("videoagent", "videodetective", "a4vl", "lvagent", "symphony"),
)
LENGTHS = (20, 60, 120)
FIRST_SEED = 9000  # published seeds that nothing else uses: from 9100, 9300 and 9600
WORLDS, QUESTIONS = 10, 30
PROMPT_TOKENS = 250  # of uniform, without its pictures


@dataclass(frozen=True)
class Cell:
    """A method, or uniform with a number of frames, on the films of one length."""

    out: Path
    minutes: int
    method: str
    frames: int | None = None
    acuity: float = PROFILE.model.acuity

    @property
    def folder(self) -> RunFolder:
        """Where its results are."""
        name = f"{PROFILE.name}-{self.minutes}-{self.acuity:g}-{self.method}"
        return RunFolder(self.out / (name if self.frames is None else f"{name}-{self.frames}"))

    def solver(self) -> Solver:
        """The method with the laboratory's simulated model in every role."""
        model = f"lab/acuity={self.acuity:g}"
        assignment = with_profile_model(ModelAssignment((model,)), self.method)
        session = Session(assignment=assignment)
        if self.frames is not None:
            session = session.with_fields(self.method, {"frames": self.frames})
        return Solver(self.method, session)

    def run(self, benchmark: Benchmark, workers: int) -> Scored:
        """Ask what has no result yet."""
        began = time.perf_counter()
        scored = evaluate(self.solver(), benchmark, self.folder, workers=workers, resume=True)
        seconds = time.perf_counter() - began
        print(f"{self.folder.path.name}: {scored.accuracy}, {seconds:.0f} s", flush=True)
        return scored


@dataclass(frozen=True)
class Row:
    """A method's results with those of uniform at equal frames and at equal tokens."""

    cell: Cell
    scored: Scored
    at_frames: Scored
    at_tokens: Scored

    def lead(self, other: Scored) -> str:
        """The method minus uniform, in points."""
        videos = [item.asked.video for item in self.scored.items]
        gap = paired(self.scored.right, other.right, videos)
        return f"{100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"

    def right_of(self, kind: str) -> str:
        """How many questions of a kind are right."""
        pairs = zip(self.scored.items, self.scored.right, strict=True)
        right = [ok for item, ok in pairs if item.tags["type"] == kind]
        return f"{sum(right)} of {len(right)}"

    def cells(self) -> list[str]:
        """The row as the page shows it."""
        scored, rate = self.scored, self.scored.accuracy
        return [
            self.cell.method,
            f"{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}]",
            f"{scored.mean('frames'):.1f}",
            format_mean(scored.count("seen")),
            format_mean(scored.count("rounds")),
            f"{scored.tokens:,.0f}",
            self.lead(self.at_frames),
            self.lead(self.at_tokens),
            *citations(scored),
        ]


def citations(scored: Scored) -> tuple[str, str]:
    """Precision and recall of the citations of right answers."""
    cited = scoring.measure_citations(scored.items, scored.rows, scored.right)
    means = cited.means if cited else {}
    precision, recall = (means.get(name) for name in ("precision", "recall"))
    if precision is None or recall is None:
        return "–", "–"
    return f"{precision:.2f}", f"{recall:.2f}"


HEAD = (
    "method",
    "accuracy (95 %)",
    "frames",
    "distinct",
    "rounds",
    "tokens",
    "− uniform, equal frames",
    "− uniform, equal tokens",
    "citation precision",
    "recall",
)


def pooled(cells: list[Scored]) -> Scored:
    """All cells as one."""
    items = [item for cell in cells for item in cell.items]
    rows = [each for cell in cells for each in cell.rows]
    return Scored(items, rows, [right for cell in cells for right in cell.right])


def against(rows: list[Row], options: argparse.Namespace) -> str:
    """Each method's cells beside those of another version, and all of them together."""
    pairs: dict[str, list[tuple[Scored, Scored]]] = {}
    lines = []
    for row in rows:
        cell = row.cell
        results = replace(cell, out=options.against).folder.results()
        other = score(worlds(options, cell.minutes), results)
        pairs.setdefault(cell.method, []).append((row.scored, other))
        lines.append([cell.folder.path.name, *beside(row, other)])
    for method, cells in pairs.items():
        now, before = (pooled(list(each)) for each in zip(*cells, strict=True))
        lines.append([f"{method}, all", *beside(replace(rows[0], scored=now), before)])
    return table(("cell", "now", "before", "now − before, points", "tokens", "before"), lines)


def beside(row: Row, other: Scored) -> list[str]:
    """A cell beside the same of another version."""
    rates = [str(each.accuracy) for each in (row.scored, other)]
    return [*rates, row.lead(other), f"{row.scored.tokens:,.0f}", f"{other.tokens:,.0f}"]


def frames_for(cell: Cell, benchmark: Benchmark, scored: Scored) -> tuple[int, int]:
    """Frames for uniform: as many as the method was shown, and as many as cost its tokens."""
    most = frames_in_one_call(cell.solver().session, benchmark)
    assert most is not None  # simulated models have a context
    shown = min(most, max(1, round(scored.mean("frames"))))
    affordable = round((scored.tokens - PROMPT_TOKENS) / PROFILE.model.picture_tokens)
    return shown, min(most, max(1, affordable))


def worlds(options: argparse.Namespace, minutes: int) -> Benchmark:
    """The questions of a cell; every length has its own films."""
    first = options.first_seed + 5 * minutes
    seeds = range(first, first + options.worlds)
    return lab(seeds, minutes, options.questions)


def measure(options: argparse.Namespace, minutes: int, acuity: float, method: str) -> Row:
    """Run a cell and its two baselines."""
    benchmark = worlds(options, minutes)
    cell = Cell(options.out, minutes, method, acuity=acuity)
    scored = cell.run(benchmark, options.workers)
    baselines = []
    for frames in frames_for(cell, benchmark, scored):
        uniform = replace(cell, method="uniform", frames=frames)
        baselines.append(uniform.run(benchmark, options.workers))
    return Row(cell, scored, *baselines)


def write(rows: list[Row], options: argparse.Namespace) -> None:
    """The page."""
    blocks = ["# Every method"]
    for minutes, acuity in sorted({(row.cell.minutes, row.cell.acuity) for row in rows}):
        chosen = [row for row in rows if (row.cell.minutes, row.cell.acuity) == (minutes, acuity)]
        chosen.sort(key=lambda row: row.cell.method)
        count = len(chosen[0].scored.items)
        blocks.append(f"## {minutes} minutes, acuity {acuity:g}, {count} questions")
        blocks.append(table(HEAD, [row.cells() for row in chosen]))
        leads = [[row.cell.method, *(row.lead(o.scored) for o in chosen)] for row in chosen]
        blocks.append(table(("minus", *(row.cell.method for row in chosen)), leads))
        kinds = sorted({item.tags["type"] for item in chosen[0].scored.items})
        by_kind = [[row.cell.method, *(row.right_of(kind) for kind in kinds)] for row in chosen]
        blocks.append(table(("right by kind", *kinds), by_kind))
    if len({(row.cell.minutes, row.cell.acuity) for row in rows}) > 1:
        blocks.append("## All cells")
        blocks.append(table(("method", *HEAD[6:8]), pooled_leads(rows)))
    if options.against:
        blocks += ["## Against another version", against(rows, options)]
    blocks.append(f"Profile {PROFILE.hash}. Intervals are over films. Leads are in points.")
    page = options.out / "lab.md"
    page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    print(f"wrote {page}: {len(rows)} cells")


def pooled_leads(rows: list[Row]) -> list[list[str]]:
    """The leads of each method over uniform in all cells together."""
    lines = []
    for method in sorted({row.cell.method for row in rows}):
        cells = [row for row in rows if row.cell.method == method]
        every = Row(
            cells[0].cell,
            pooled([row.scored for row in cells]),
            pooled([row.at_frames for row in cells]),
            pooled([row.at_tokens for row in cells]),
        )
        lines.append([method, every.lead(every.at_frames), every.lead(every.at_tokens)])
    return lines


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--minutes", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--acuity", nargs="+", type=float, default=[PROFILE.model.acuity])
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="about each world")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--against", type=Path, help="folder with cells of another version")
    options = parser.parse_args()
    cells = product(options.minutes, options.acuity, options.methods)
    write([measure(options, *cell) for cell in cells], options)


if __name__ == "__main__":
    main()
