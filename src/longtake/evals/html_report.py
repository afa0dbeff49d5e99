"""Runs side by side as one self-contained HTML page: no scripts, no remote sources, plots as SVG.

Questions, answers and names come from films, files and models. The template escapes all of it and
makes control characters visible.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtake import plots
from longtake._util import visible
from longtake._util.timecode import clock
from longtake.errors import MissingExtra
from longtake.evals.benchmarks import LabelledQuestion
from longtake.evals.presets import Published
from longtake.evals.report import COLUMNS, RunReport, by_budget, differences
from longtake.evals.runner import file_name
from longtake.evals.scoring import Rate
from longtake.plots import Mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMITS = {"cost": "US$"}
"""What limits are measured in, where that is not their name."""


@dataclass(frozen=True)
class ReportPlot:
    """A plot of the page; ``heading`` is empty if it belongs to the section of the one before."""

    heading: str
    alt: str
    figure: Figure

    @property
    def source(self) -> str:
        """The plot as a data URL: inside an image, nothing of it is ever run."""
        encoded = base64.b64encode(plots.as_svg(self.figure)).decode()
        return f"data:image/svg+xml;base64,{encoded}"


def html_report(
    reports: Sequence[RunReport], *, beside: Path, published: Mapping[str, Sequence[Published]]
) -> str:
    """The page; links to traces are relative to ``beside``, the folder it will be written to."""
    try:
        from jinja2 import Environment, FileSystemLoader
    except ImportError as error:
        raise MissingExtra("report", "an HTML report") from error
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # the same colour for a run in every plot
    colours = {report.name: number for number, report in enumerate(reports)}
    errors = [(report.name, report.calibration_error) for report in reports]
    return environment.get_template("report.html.j2").render(
        columns=COLUMNS,
        summaries=[report.summary for report in reports],
        published=[figure.row(preset) for preset in published for figure in published[preset]],
        plots=list(_plots(reports, colours)),
        calibration_errors=[(name, error) for name, error in errors if error is not None],
        differences=differences(reports),
        runs=[
            {
                "name": report.name,
                "questions": list(_questions(report, beside)),
                "spec": "\n".join(f"{key} = {value}" for key, value in _flat(report.spec)),
            }
            for report in reports
        ],
    )


def _finalize(value: object) -> object:
    """Make control characters visible; what a macro has rendered is escaped already."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _plots(reports: Sequence[RunReport], colours: Mapping[str, int]) -> Iterator[ReportPlot]:
    yield from _against_usage(reports, colours)
    yield from _against_budget(reports)
    yield from _by_tag(reports, colours)
    yield from _calibration(reports, colours)


def _against_usage(
    reports: Sequence[RunReport], colours: Mapping[str, int]
) -> Iterator[ReportPlot]:
    scored = [report for report in reports if report.scored.items]
    # runs whose price is unknown are left out of the plot against money, free ones too
    paid = {r.name: r.cost / len(r.rows) for r in scored if r.cost}
    measures = {
        "frames per question": {r.name: r.mean("frames") for r in scored},
        "tokens per question": {r.name: r.tokens for r in scored},
        "US$ per question": paid,
    }
    heading = "Accuracy against usage"
    for name, values in measures.items():
        marks = [
            _mark(values[report.name], report.scored.accuracy, report.name, colours[report.name])
            for report in scored
            if report.name in values
        ]
        if marks:
            yield ReportPlot(heading, f"accuracy against {name}", plots.scatter(marks, x_name=name))
            heading = ""


def _against_budget(reports: Sequence[RunReport]) -> Iterator[ReportPlot]:
    """What a budget buys: one curve for each method that was run under several limits."""
    heading = "Accuracy against budget"
    for name, methods in by_budget(reports).items():
        lines = []
        for number, (method, runs) in enumerate(methods.items()):
            lines.append([_mark(x, run.scored.accuracy, method, number) for x, run in runs])
        figure = plots.curves(lines, x_name=f"at most so many {LIMITS.get(name, name)}")
        yield ReportPlot(heading, f"accuracy against {name}", figure)
        heading = ""


def _by_tag(reports: Sequence[RunReport], colours: Mapping[str, int]) -> Iterator[ReportPlot]:
    marks: dict[str, dict[str, list[Mark]]] = {}
    for report in reports:
        for tag, rates in report.tags().items():
            for value, rate in rates.items():
                # bars have no x
                mark = _mark(0.0, rate, report.name, colours[report.name])
                marks.setdefault(tag, {}).setdefault(value, []).append(mark)
    for tag, groups in sorted(marks.items()):
        yield ReportPlot(f"By {tag}", f"accuracy by {tag}", plots.bars(sorted(groups.items())))


def _calibration(reports: Sequence[RunReport], colours: Mapping[str, int]) -> Iterator[ReportPlot]:
    marks = []
    for report in reports:
        for point in report.calibration():
            marks.append(_mark(point.confidence, point.rate, report.name, colours[report.name]))
    if marks:
        figure = plots.scatter(marks, x_name="stated confidence", diagonal=True)
        yield ReportPlot("Calibration", "accuracy against stated confidence", figure)


def _questions(report: RunReport, beside: Path) -> Iterator[dict[str, Any]]:
    right = report.scored.by_question()
    for item, row in zip(report.items, report.rows, strict=True):
        asked = item.asked
        trace = report.folder / "traces" / f"{file_name(asked.id)}.jsonl"
        # without a label there is no verdict, only how the question ended
        verdict = row["status"]
        if asked.id in right:
            verdict = "right" if right[asked.id] else "wrong"
        yield {
            "id": asked.id,
            "text": asked.question.text,
            "verdict": verdict,
            "lines": _question_lines(item, row),
            "trace": os.path.relpath(trace, beside) if trace.is_file() else "",
        }


def _question_lines(item: LabelledQuestion, row: Mapping[str, Any]) -> list[str]:
    """The lines below a question: options, label, answer, evidence and notes."""
    question = item.asked.question
    options = zip(question.letters, question.options, strict=True)
    lines = [f"{letter}. {option}" for letter, option in options]
    if item.label is not None:
        lines.append(f"label: {item.label}")
    lines.append(f"answer: {_answer(row)}")
    if row.get("evidence"):
        times = [clock(start) for start, _ in row["evidence"]]
        lines.append("seen at " + ", ".join(times))
    notes = row.get("notes") or {}
    lines += [f"{count} × {label}" for label, count in notes.items()]
    return lines


def _flat(data: Any, path: str = "") -> list[tuple[str, Any]]:
    """Nested data as pairs of a dotted path and a value."""
    if not isinstance(data, Mapping):
        return [(path, data)]
    pairs = []
    for key, value in data.items():
        pairs += _flat(value, f"{path}.{key}" if path else str(key))
    return pairs


def _answer(row: Mapping[str, Any]) -> str:
    if row["status"] == "error":
        return f"error: {row.get('error')}"
    parts = [part for part in (row.get("choice"), row.get("text")) if part]
    answer = ". ".join(parts) or "none"
    return f"{answer} ({row['status']})"


def _mark(x: float, rate: Rate, name: str, colour: int) -> Mark:
    return Mark(x, rate.value, rate.low, rate.high, name, colour)
