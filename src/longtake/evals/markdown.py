"""Runs side by side as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from longtake.display import on_one_line
from longtake.evals.outcomes import list_errors
from longtake.evals.presets import Published
from longtake.evals.report import COLUMNS, Report, differences


def markdown(
    reports: Sequence[Report], published: Mapping[str, Sequence[Published]] | None = None
) -> str:
    """Accuracy and usage, details of each run, paired differences, and published figures apart."""
    blocks = [table(COLUMNS, [[cell(text) for text in report.summary] for report in reports])]
    for report in reports:
        blocks += _details(report)
    pairs = differences(reports)
    if pairs:
        head = (
            "difference on the same questions",
            "(95 %, bootstrap over videos; McNemar's exact p)",
        )
        blocks.append(table(head, [(cell(names), str(gap)) for names, gap in pairs]))
    rows = []
    for preset, figures in (published or {}).items():
        for figure in figures:
            rows.append([cell(text) for text in figure.row(preset)])
    if rows:
        blocks.append(table(("published, not measured here", "accuracy", "source"), rows))
    return "\n\n".join(blocks)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already escaped."""
    lines = [head, *rows]
    texts = [f"| {' | '.join(cells)} |" for cells in lines]
    # Markdown separates the head from the rows by a line of dashes
    texts.insert(1, "|" + "---|" * len(head))
    return "\n".join(texts)


def cell(text: str) -> str:
    """Escape text that would break out of its cell."""
    return on_one_line(text).replace("|", "\\|").replace("<", "&lt;")


def _details(report: Report) -> list[str]:
    """How the questions of a run ended, accuracy by tag, and calibration."""
    lines = [f"**{cell(report.name)}**: {report.ended}"]
    lines += [f"- {cell(line)}" for line in list_errors(report.errors)]
    blocks = ["\n".join(lines)]
    for tag, rates in report.tags().items():
        rows = [(cell(value), str(rate)) for value, rate in rates.items()]
        blocks.append(table((cell(tag), "accuracy (95 %)"), rows))
    citations = report.citations
    if citations is not None:
        rows = [(name, f"{value:.3f}") for name, value in citations.figures().items()]
        blocks.append(table((f"citations, {citations.questions} questions", "mean"), rows))
    points = report.calibration()
    if points:
        rows = [(f"{point.confidence:.2f}", str(point.rate)) for point in points]
        blocks.append(table(("stated confidence", "accuracy (95 %)"), rows))
        blocks.append(f"Expected calibration error: {report.calibration_error or 0.0:.3f}")
    return blocks
