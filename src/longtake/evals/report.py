"""What runs say, side by side: as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longtake.errors import RunError
from longtake.evals.items import Benchmark
from longtake.evals.runner import Scored, score
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import Difference, Rate, accuracy, by_tag, paired


@dataclass(frozen=True)
class Calibration:
    """How often answers of one stated confidence were right."""

    confidence: float
    rate: Rate


@dataclass(frozen=True)
class Report:
    """One run, scored."""

    name: str
    spec: Mapping[str, Any]
    scored: Scored
    total: int
    """Questions of the run; fewer are scored while it is unfinished."""

    @property
    def counts(self) -> dict[str, int]:
        """How questions ended."""
        found: dict[str, int] = {}
        for row in self.scored.rows:
            found[row["status"]] = found.get(row["status"], 0) + 1
        return found

    def tags(self) -> dict[str, Mapping[str, Rate]]:
        """Accuracy by every tag."""
        names = sorted({tag for item in self.scored.items for tag in item.tags})
        return {tag: by_tag(self.scored.items, self.scored.right, tag) for tag in names}

    def calibration(self) -> list[Calibration]:
        """Accuracy for each confidence that was stated."""
        stated = sorted({row["confidence"] for row in self.scored.rows if row.get("confidence") is not None})
        found = []
        for value in stated:
            chosen = [i for i, row in enumerate(self.scored.rows) if row.get("confidence") == value]
            videos = [self.scored.items[i].asked.video for i in chosen]
            found.append(Calibration(value, accuracy([self.scored.right[i] for i in chosen], videos)))
        return found


def read(folder: RunFolder, benchmark: Benchmark) -> Report:
    """A run's results beside the benchmark's labels."""
    spec = folder.spec()
    if spec["benchmark"]["files"] != dict(benchmark.files):
        raise RunError(f"{folder.path}: was run on other files of {benchmark.name} than those given")
    return Report(folder.path.name, spec, score(benchmark, folder.results()), int(spec["questions"]))


def compare(first: Report, second: Report) -> Difference:
    """The first minus the second, on the questions that both have answered."""
    theirs = {item.asked.id: right for item, right in zip(second.scored.items, second.scored.right, strict=True)}
    both = [(item, right) for item, right in zip(first.scored.items, first.scored.right, strict=True)
            if item.asked.id in theirs]  # fmt: skip
    if not both:
        raise RunError(f"{first.name} and {second.name} have no question in common")
    return paired(
        [right for _, right in both],
        [theirs[item.asked.id] for item, _ in both],
        [item.asked.video for item, _ in both],
    )


def markdown(reports: Sequence[Report]) -> str:
    """Tables: accuracy beside what it cost, by tag, calibration, and paired differences."""
    lines = ["| run | method | accuracy (95 %) | answered | frames | calls | tokens | cost | s |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for report in reports:
        scored = report.scored
        cost = [row["usage"]["cost"] for row in scored.rows if "usage" in row]
        money = "unknown" if any(c is None for c in cost) else f"${sum(cost):.4f}"
        tokens = scored.mean("tokens_in") + scored.mean("tokens_out")
        lines.append(
            f"| {_cell(report.name)} | {report.spec['method']['name']} | {scored.accuracy} "
            f"| {report.counts.get('answered', 0)} of {report.total} | {scored.mean('frames'):.1f} "
            f"| {scored.mean('calls'):.1f} | {tokens:,.0f} | {money} | {scored.mean('seconds'):.1f} |"
        )
    for report in reports:
        lines += ["", f"**{_cell(report.name)}**: " + ", ".join(f"{n} {s}" for s, n in sorted(report.counts.items()))]
        for tag, rates in report.tags().items():
            lines += ["", f"| {tag} | accuracy (95 %) |", "|---|---|"]
            lines += [f"| {_cell(value)} | {rate} |" for value, rate in rates.items()]
        if known := report.calibration():
            lines += ["", "| stated confidence | accuracy (95 %) |", "|---|---|"]
            lines += [f"| {c.confidence:.2f} | {c.rate} |" for c in known]
    if len(reports) > 1:
        lines += [
            "",
            "| difference on the same questions | (95 %, bootstrap over videos; McNemar's exact p) |",
            "|---|---|",
        ]
        first = reports[0]
        lines += [f"| {_cell(first.name)} − {_cell(r.name)} | {compare(first, r)} |" for r in reports[1:]]
    return "\n".join(lines)


def plain(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "run": report.name,
            "spec": report.spec,
            "accuracy": vars(report.scored.accuracy),
            "counts": report.counts,
            "by_tag": {t: {v: vars(rate) for v, rate in rates.items()} for t, rates in report.tags().items()},
            "calibration": [{"confidence": c.confidence, **vars(c.rate)} for c in report.calibration()],
            "means": {
                what: report.scored.mean(what) for what in ("frames", "calls", "tokens_in", "tokens_out", "seconds")
            },
        }
        for report in reports
    ]


def _cell(text: str) -> str:
    """Text that cannot break out of its cell."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
