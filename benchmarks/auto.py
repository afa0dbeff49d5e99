"""``auto`` against every single method, its ablations, and what a budget buys.

    python benchmarks/auto.py --out build/auto --workers 16
    python benchmarks/auto.py --out build/auto --workers 16 --parts singles --minutes 60
    python benchmarks/auto.py --out build/auto --page-only          # from what is there so far
    python benchmarks/auto.py --out build/auto --parts real --data ../shared/bench/nextqa_dev \
        --benchmark nextqa-captions --model local/qwen2.5-1.5b --limit 200

Each cell is a run folder that is resumed, so the command may be stopped and started again at any
time, also with other parts. Questions are lab-2's on published seeds that nothing else uses;
``auto`` was fitted on development seeds. Parts: ``singles`` (every method, two lengths, two
acuities), ``calibration`` (``auto`` on further films, since few questions make any calibration
error look large), ``ablations``, ``budgets`` (tokens and money), ``real`` (captions and a real
model). No GPU is used; the imports are those of ``longtake`` without extras.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from auto_cells import (
    ABLATIONS,
    ACUITIES,
    BUDGETS,
    DRAWS,
    FIRST_SEED,
    FURTHER,
    LEAN,
    LENGTHS,
    METHODS,
    PARTS,
    QUESTIONS,
    RANDOM,
    RATED,
    SHARE,
    WITHIN,
    WORLDS,
    Bench,
    Cell,
    single,
    singles,
    stop_chance,
)

from longtake.agents import calibration
from longtake.agents.calibration import Calibration
from longtake.algorithms.calibration import expected_error
from longtake.evals.benchmarks import load
from longtake.evals.calibration import of_run, samples
from longtake.evals.report import table
from longtake.evals.runner import Scored, Solver, evaluate
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import paired
from longtake.lab.profile import LAB_2
from longtake.methods.auto.method import shipped
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session


def points(gap: Any) -> str:
    """A paired difference in points."""
    return f"{100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"


def against(first: Scored, other: Scored) -> str:
    """The first minus the other on the same questions."""
    videos = [item.asked.video for item in first.items]
    return points(paired(first.right, other.right, videos))


def errors(cell: Cell, scored: Scored) -> tuple[str, str]:
    """Calibration error of stated confidences, and of the shipped calibration's probabilities."""
    rule, key = shipped(), RATED.get(cell.label, cell.label)
    stated, right = claims([(cell, scored)], rule if not cell.budget else None)
    before = f"{expected_error(stated, right):.3f}" if stated else "–"
    own = samples(cell.method, scored).get(cell.method, [])
    if key not in rule.methods or not own:
        return before, "–"
    chances = [rule.confidence(key, each.signals) or 0.0 for each in own]
    return before, f"{expected_error(chances, [each.right for each in own]):.3f}"


HEAD = (
    "method",
    "accuracy (95 %)",
    "tokens",
    "of the best single method's",
    "cost",
    "calls",
    "ECE stated",
    "ECE calibrated",
    "auto − method, points",
)


def singles_table(found: list[tuple[Cell, Scored]]) -> str:
    """Auto beside every single method."""
    auto = next((scored for cell, scored in found if cell.label == "auto"), None)
    others = [scored for cell, scored in found if cell.label not in ("auto", LEAN)]
    best = max(others, key=lambda scored: scored.accuracy.value, default=None)
    rows = []
    for cell, scored in found:
        rate = scored.accuracy
        rows.append(
            [
                cell.label,
                f"{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}]",
                f"{scored.tokens:,.0f}",
                f"{scored.tokens / best.tokens:.0%}" if best else "–",
                f"${scored.mean('cost'):.4f}",
                f"{scored.mean('calls'):.1f}",
                *errors(cell, scored),
                "" if auto is None or cell.label == "auto" else against(auto, scored),
            ]
        )
    return table(HEAD, rows)


CALIBRATION_HEAD = (
    "minutes",
    "acuity",
    "fitted to",
    "answers",
    "mean stated",
    "right",
    "ECE",
    "ECE by chance alone",
)


def verdict(found: list[tuple[Cell, Scored]]) -> Iterator[str]:
    """Whether auto is about as good as the best single method at half of its tokens."""
    if found[0][0].label != "auto" or len(found) < 2:
        return
    auto = found[0][1]
    best, scored = max(found[1:], key=lambda pair: pair[1].accuracy.value)
    share, behind = auto.tokens / scored.tokens, scored.accuracy.value - auto.accuracy.value
    holds = behind <= WITHIN and share <= SHARE
    told = "holds" if holds else "does not hold"
    yield (
        f"Best single method: {best.label}; auto − it: {against(auto, scored)} at {share:.0%} of "
        f"its tokens. Within {100 * WITHIN:g} point at {SHARE:.0%}: {told}."
    )


def rules(bench: Bench, acuity: float) -> Iterator[tuple[str, Calibration]]:
    """The shipped calibration, and those of ``longtake calibrate`` with the same model alone."""
    yield "both models", shipped()
    file = (bench.options.rules or Path()) / f"calibration-{acuity:g}.json"
    if file.is_file():
        yield "this model", calibration.read(file)


def calibration_table(bench: Bench) -> str:
    """The calibration error of auto by length and acuity, on all films that were asked about."""
    rows = []
    for minutes, acuity in product(bench.options.minutes, bench.options.acuities):
        both = (False, True)
        cells = [single("auto", minutes, acuity, further=further) for further in both]
        found = bench.measured(cells)
        for fitted_to, rule in rules(bench, acuity):
            stated, right = claims(found, rule)
            if stated:
                where = [str(minutes), f"{acuity:g}", fitted_to]
                rows.append([*where, *calibration_row(stated, right)])
    return table(CALIBRATION_HEAD, rows)


def claims(
    found: list[tuple[Cell, Scored]], rule: Calibration | None = None
) -> tuple[list[float], list[bool]]:
    """The stated probabilities of all answers, and whether they are right.

    With a rule, those of auto follow from what was recorded: the last correction decides nothing,
    so that other weights for it need no other run.
    """
    stated, right = [], []
    for cell, scored in found:
        if rule is not None and cell.method == "auto":
            ends = of_run(scored)
            stated += [rule.final_probability(each.chance, each.kind) for each in ends]
            right += [each.right for each in ends]
            continue
        for row, is_right in zip(scored.rows, scored.right, strict=True):
            if row.get("confidence") is not None:
                stated.append(row["confidence"])
                right.append(is_right)
    return stated, right


def calibration_row(stated: list[float], right: list[bool]) -> list[str]:
    """Means, the error, and the error of exact probabilities with as many answers."""
    rng = np.random.default_rng(0)
    chances = np.asarray(stated)
    drawn = [expected_error(stated, rng.random(len(stated)) < chances) for _ in range(DRAWS)]
    return [
        str(len(stated)),
        f"{np.mean(chances):.1%}",
        f"{np.mean(right):.1%}",
        f"{expected_error(stated, right):.3f}",
        f"{np.mean(drawn):.3f}",
    ]


def ablations(bench: Bench, minutes: int, acuity: float) -> list[tuple[Cell, Scored]]:
    """Auto without one of its parts each, and with random escalation at equal cost."""
    wanted = bench.options.ablations
    cells = []
    for label, own in ABLATIONS.items():
        if label in ("auto", *wanted):
            cells.append(Cell(label, "auto", minutes, acuity, own))
    found = bench.measured(cells)
    if found and found[0][0].label == "auto" and RANDOM in wanted:
        chance = stop_chance(found[0][1].tokens)
        fields = {"stop": "random", "stop_chance": chance}
        found += bench.measured([Cell(RANDOM, "auto", minutes, acuity, fields)])
    return found


def ablations_table(found: list[tuple[Cell, Scored]]) -> str:
    """Each beside auto itself."""
    whole = found[0][1]
    rows = []
    for cell, scored in found:
        gap = "" if scored is whole else against(whole, scored)
        rows.append([cell.label, str(scored.accuracy), f"{scored.tokens:,.0f}", gap])
    return table(("", "accuracy (95 %)", "tokens", "auto − this, points"), rows)


def budgets(bench: Bench, minutes: int, acuity: float) -> list[str]:
    """What every method reaches under hard limits; auto against the best of the others."""
    blocks = []
    methods = bench.options.methods
    limits = [(name, limit) for name in bench.options.budgets for limit in BUDGETS[name]]
    for name, limit in limits:
        cells = singles(methods, minutes, acuity, budget={name: limit})
        found = bench.measured(cells)
        if not found or found[0][0].label != "auto":
            continue
        auto = found[0][1]
        rows = []
        for cell, scored in found:
            gap = "" if scored is auto else against(auto, scored)
            used = [f"{scored.tokens:,.0f}", f"${scored.mean('cost'):.4f}"]
            used.append(f"{scored.mean('seconds'):.1f}")
            rows.append([cell.label, str(scored.accuracy), *used, gap])
        blocks.append(f"## At most {limit:g} {name}, {minutes} minutes, acuity {acuity:g}")
        head = ("method", "accuracy (95 %)", "tokens", "cost", "seconds", "auto − method, points")
        blocks.append(table(head, rows))
    return blocks


def real(options: argparse.Namespace) -> list[str]:
    """Auto and its stages on a benchmark of captions, with a real model."""
    benchmark = load(options.benchmark, options.data, {}).draw(
        limit=options.limit, sample=None, seed=0
    )
    found = []
    for method in ("lookup", "uniform", "videoagent", "videodetective", "symphony", "auto"):
        assignment = ModelAssignment((options.model,), replies=False)
        folder = RunFolder(options.out / f"{options.benchmark}-{method}")
        solver = Solver(method, Session(assignment=assignment))
        scored = evaluate(solver, benchmark, folder, workers=options.workers, resume=True)
        print(f"{method}: {scored.accuracy}, {scored.tokens:,.0f} tokens", flush=True)
        found.append((Cell(method, method, 0, 0.0), scored))
    title = f"# {options.benchmark}, {len(benchmark.items)} questions, {options.model}"
    return [title, singles_table(sorted(found, key=lambda pair: pair[0].label != "auto"))]


def lab_pages(bench: Bench) -> Iterator[str]:
    """The blocks of the page about the laboratory."""
    options = bench.options
    for minutes in options.minutes:
        for acuity in options.acuities:
            if "singles" in options.parts:
                found = bench.measured(singles(options.methods, minutes, acuity))
                if found:
                    asked = len(found[0][1].items)
                    yield f"## {minutes} minutes, acuity {acuity:g}, {asked} questions"
                    yield singles_table(found)
                    yield from verdict(found)
    if "calibration" in options.parts:
        yield "## Calibration error of `auto`"
        yield calibration_table(bench)
    minutes, acuity = options.minutes[0], options.acuities[0]
    if "ablations" in options.parts:
        found = ablations(bench, minutes, acuity)
        if found:
            yield f"## Ablations, {minutes} minutes, acuity {acuity:g}"
            yield ablations_table(found)
    if "budgets" in options.parts:
        yield from budgets(bench, minutes, acuity)


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=(*PARTS, "real"), default=PARTS)
    parser.add_argument("--minutes", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--acuities", nargs="+", type=float, default=ACUITIES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    named = [*list(ABLATIONS)[1:], RANDOM]
    parser.add_argument("--ablations", nargs="+", choices=named, default=named)
    parser.add_argument("--budgets", nargs="+", choices=BUDGETS, default=list(BUDGETS))
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--further", type=int, default=FURTHER, help="worlds, for calibration")
    parser.add_argument("--rules", type=Path, help="folder of calibration-ACUITY.json")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="about each world")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--page-only", action="store_true")
    parser.add_argument("--benchmark", default="nextqa-captions", help="for the part real")
    parser.add_argument("--data", type=Path, help="for the part real: the benchmark's files")
    parser.add_argument("--model", default="local/qwen2.5-1.5b", help="for the part real")
    parser.add_argument("--limit", type=int, help="for the part real: questions")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if "real" in options.parts:
        page, blocks = f"auto-{options.benchmark}.md", real(options)
    else:
        page, blocks = "auto.md", ["# auto on lab-2", *lab_pages(Bench(options))]
        blocks.append(f"Profile {LAB_2.hash}. Intervals are over films, differences in points.")
    (options.out / page).write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    print(f"wrote {options.out / page}")


if __name__ == "__main__":
    main()
