"""What runs say, side by side: as text, Markdown and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake.display import on_one_line
from longtake.errors import RunError
from longtake.evals.items import Benchmark, Item
from longtake.evals.presets import Published
from longtake.evals.runner import Scored, mean, score
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import Difference, Rate, accuracy, by_tag, paired

ERRORS = 5
"""Kinds of errors that are told."""


@dataclass(frozen=True)
class Calibration:
    """How often answers of one stated confidence were right."""

    confidence: float
    rate: Rate


@dataclass(frozen=True)
class Report:
    """One run, scored."""

    folder: Path
    spec: Mapping[str, Any]
    items: Sequence[Item]
    """Questions that have a result."""
    rows: Sequence[Mapping[str, Any]]
    scored: Scored
    """Those of them that have a label."""

    @property
    def name(self) -> str:
        """The run, by its folder."""
        return self.folder.name

    @property
    def benchmark(self) -> str:
        """What it was run on."""
        return str(self.spec["benchmark"]["name"])

    @property
    def models(self) -> str:
        """Who answered, each once; a team by its members."""
        roles = dict(self.spec["models"])
        members = [member["model"] for member in roles.pop("team", [])]
        return ", ".join(dict.fromkeys([*roles.values(), *members]))

    @property
    def total(self) -> int:
        """Questions of the run; fewer have a result while it is unfinished."""
        return int(self.spec["questions"])

    @property
    def counts(self) -> dict[str, int]:
        """How questions ended."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row["status"]] = found.get(row["status"], 0) + 1
        return found

    def mean(self, what: str) -> float:
        """Mean of a usage figure per question, errors left out."""
        return mean(self.rows, what)

    @property
    def tokens(self) -> float:
        """Mean tokens per question, in and out."""
        return self.mean("tokens_in") + self.mean("tokens_out")

    @property
    def cost(self) -> float | None:
        """US dollars of all questions together; ``None`` where any price is unknown."""
        costs = [row["usage"]["cost"] for row in self.rows if "usage" in row]
        return None if any(cost is None for cost in costs) else float(sum(costs))

    @property
    def errors(self) -> dict[str, int]:
        """What went wrong, and how often, the most frequent first."""
        return dict(
            Counter(row["error"] for row in self.rows if row["status"] == "error").most_common()
        )

    @property
    def accuracy(self) -> str:
        """Accuracy with its interval, where there are labels."""
        if not self.rows:
            return "no results yet"
        return str(self.scored.accuracy) if self.scored.items else "no public labels"

    def tags(self) -> dict[str, Mapping[str, Rate]]:
        """Accuracy by every tag."""
        names = sorted({tag for item in self.scored.items for tag in item.tags})
        return {tag: by_tag(self.scored.items, self.scored.right, tag) for tag in names}

    def calibration(self) -> list[Calibration]:
        """Accuracy for each confidence that was stated."""
        stated = sorted(
            {row["confidence"] for row in self.scored.rows if row.get("confidence") is not None}
        )
        found = []
        for value in stated:
            chosen = [i for i, row in enumerate(self.scored.rows) if row.get("confidence") == value]
            videos = [self.scored.items[i].asked.video for i in chosen]
            found.append(
                Calibration(value, accuracy([self.scored.right[i] for i in chosen], videos))
            )
        return found


def read(folder: RunFolder, benchmark: Benchmark) -> Report:
    """A run's results beside the benchmark's labels."""
    spec = folder.spec()
    if spec["benchmark"]["files"] != dict(benchmark.files):
        raise RunError(
            f"{folder.path}: was run on other files of {benchmark.name} than those given"
        )
    results = folder.results()
    items = [item for item in benchmark.items if item.asked.id in results]
    return Report(
        folder.path,
        spec,
        items,
        [results[item.asked.id] for item in items],
        score(benchmark, results),
    )


def compare(first: Report, second: Report) -> Difference:
    """The first minus the second, on the questions that both have answered."""
    theirs = {
        item.asked.id: right
        for item, right in zip(second.scored.items, second.scored.right, strict=True)
    }
    both = [
        (item, right)
        for item, right in zip(first.scored.items, first.scored.right, strict=True)
        if item.asked.id in theirs
    ]
    if not both:
        raise RunError(f"{first.name} and {second.name} have no question in common")
    return paired(
        [right for _, right in both],
        [theirs[item.asked.id] for item, _ in both],
        [item.asked.video for item, _ in both],
    )


def differences(reports: Sequence[Report]) -> list[tuple[str, Difference]]:
    """The first run of each benchmark minus each other one of it, by name."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        if report.scored.items:
            groups.setdefault(report.benchmark, []).append(report)
    return [
        (f"{first.name} − {other.name}", compare(first, other))
        for first, *others in groups.values()
        for other in others
    ]


def money(report: Report) -> str:
    """What a run cost in words."""
    return "unknown" if report.cost is None else f"${report.cost:.4f}"


def markdown(
    reports: Sequence[Report], published: Mapping[str, Sequence[Published]] | None = None
) -> str:
    """Tables: accuracy beside what it cost, by tag, calibration, paired differences, and published figures apart."""
    lines = [
        "| run | benchmark | method | models | accuracy (95 %) | answered | frames | calls | tokens | cost | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for report in reports:
        lines.append(
            f"| {_cell(report.name)} | {_cell(report.benchmark)} | {report.spec['method']['name']} "
            f"| {_cell(report.models)} | {report.accuracy} "
            f"| {report.counts.get('answered', 0)} of {report.total} | {report.mean('frames'):.1f} "
            f"| {report.mean('calls'):.1f} | {report.tokens:,.0f} | {money(report)} | {report.mean('seconds'):.1f} |"
        )
    for report in reports:
        lines += [
            "",
            f"**{_cell(report.name)}**: "
            + ", ".join(f"{n} {s}" for s, n in sorted(report.counts.items())),
        ]
        lines += [
            f"- {number} ×: {_cell(error)}"
            for error, number in list(report.errors.items())[:ERRORS]
        ]
        for tag, rates in report.tags().items():
            lines += ["", f"| {tag} | accuracy (95 %) |", "|---|---|"]
            lines += [f"| {_cell(value)} | {rate} |" for value, rate in rates.items()]
        if known := report.calibration():
            lines += ["", "| stated confidence | accuracy (95 %) |", "|---|---|"]
            lines += [f"| {c.confidence:.2f} | {c.rate} |" for c in known]
    if pairs := differences(reports):
        lines += [
            "",
            "| difference on the same questions | (95 %, bootstrap over videos; McNemar's exact p) |",
            "|---|---|",
            *(f"| {_cell(names)} | {difference} |" for names, difference in pairs),
        ]
    if figures := [(name, f) for name, found in (published or {}).items() for f in found]:
        lines += ["", "| published, not measured here | accuracy | source |", "|---|---|---|"]
        lines += [
            f"| {_cell(f.system)} ({name}) | {f.accuracy:.1f} % | {_cell(f.where)} |"
            for name, f in figures
        ]
    return "\n".join(lines)


def plain(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "run": report.name,
            "spec": report.spec,
            "accuracy": vars(report.scored.accuracy) if report.scored.items else None,
            "counts": report.counts,
            "errors": report.errors,
            "by_tag": {
                t: {v: vars(rate) for v, rate in rates.items()}
                for t, rates in report.tags().items()
            },
            "calibration": [
                {"confidence": c.confidence, **vars(c.rate)} for c in report.calibration()
            ],
            "means": {
                what: report.mean(what)
                for what in ("frames", "calls", "tokens_in", "tokens_out", "seconds")
            },
            "cost": report.cost,
        }
        for report in reports
    ]


def submission(report: Report, columns: tuple[str, str]) -> str:
    """The file that a benchmark's authors score: question, number of the option from 0; -1 where none was chosen."""
    if len(report.rows) < report.total:
        raise RunError(
            f"{report.name} has {len(report.rows)} of {report.total} results; a submission needs them all"
        )
    rows = [(item, row.get("choice")) for item, row in zip(report.items, report.rows, strict=True)]
    numbered = [
        (item.asked.id, item.asked.question.letters.index(choice) if choice else -1)
        for item, choice in rows
    ]
    return "\n".join([",".join(columns), *(f"{name},{number}" for name, number in numbered)]) + "\n"


def _cell(text: str) -> str:
    """Text that cannot break out of its cell."""
    return on_one_line(text).replace("|", "\\|").replace("<", "&lt;")
