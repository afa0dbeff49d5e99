"""Runs side by side as one self-contained HTML page: no scripts, no remote sources, plots as SVG.

Questions, answers and names come from films, files and models. All of it is escaped, with control
characters made visible, and the page's own policy forbids scripts and remote sources in case
anything slips through.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longtake.evals import drawing
from longtake.evals.drawing import COLOURS, Mark, shown
from longtake.evals.items import Item
from longtake.evals.outcomes import in_text
from longtake.evals.presets import Published
from longtake.evals.report import Report, by_budget, differences
from longtake.evals.scoring import Rate
from longtake.evals.solving import file_name
from longtake.timecode import clock

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
STYLE = """
:root { color-scheme: light dark; }
body {
  font: 15px/1.5 system-ui, sans-serif;
  max-width: 1000px; margin: 2rem auto; padding: 0 1rem;
}
table { border-collapse: collapse; margin: .6rem 0 1.4rem; font-variant-numeric: tabular-nums; }
th, td {
  border-bottom: 1px solid #8884; padding: .25rem .7rem .25rem 0;
  text-align: left; vertical-align: top;
}
svg { max-width: 100%; height: auto; margin-right: 1rem; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
.dim { opacity: .7; } .right { color: #2b6cb0; } .wrong { color: #c05621; }
details { margin: .15rem 0; } details > div { margin: .2rem 0 .7rem 1.2rem; }
summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
COLUMNS = (
    "run",
    "benchmark",
    "method",
    "models",
    "accuracy (95 %)",
    "ended",
    "frames",
    "seen",
    "rounds",
    "calls",
    "tokens",
    "cost, all",
    "s",
)
LIMITS = {"cost": "US$"}
"""What limits are measured in, where that is not their name."""
LEGEND = (
    "Measured here. Frames (pictures sent, repeats included), seen (distinct frames, shown or read "
    "as captions), rounds, calls, tokens and seconds are means per question. Abstentions, "
    "unreadable answers and errors count as wrong. Intervals treat videos, not questions, as the "
    "sample."
)


def page(
    reports: Sequence[Report], *, beside: Path, published: Mapping[str, Sequence[Published]]
) -> str:
    """The page; links to traces are relative to ``beside``, the folder it will be written to."""
    # the same colour for a run in every plot; the ninth run gets the first colour again
    colours = {report.name: COLOURS[number % len(COLOURS)] for number, report in enumerate(reports)}
    parts = [
        "<h1>Runs</h1>",
        _summary(reports, colours),
        _published(published),
        _against_cost(reports, colours),
        _against_budget(reports),
        _by_tag(reports, colours),
        _calibration(reports, colours),
        _differences(reports),
        *(_questions(report, beside) for report in reports),
        *(_spec(report) for report in reports),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        f'<meta name="viewport" content="width=device-width"><title>longtake report</title>'
        f"<style>{STYLE}{drawing.STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are already escaped."""
    lines = []
    for row in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    top = "".join(f"<th>{shown(name)}</th>" for name in head)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _summary(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    rows = []
    for report in reports:
        key = f'<span class="key" style="background:{colours[report.name]}"></span>'
        rows.append(
            [
                key + shown(report.name),
                shown(report.benchmark),
                shown(report.method),
                shown(report.models),
                shown(report.accuracy),
                f"{shown(report.ended)} <span class='dim'>of {report.total}</span>",
                f"{report.mean('frames'):.1f}",
                in_text(report.count("seen")),
                in_text(report.count("rounds")),
                f"{report.mean('calls'):.1f}",
                f"{report.tokens:,.0f}",
                shown(report.cost_text),
                f"{report.mean('seconds'):.1f}",
            ]
        )
    return f'{table(COLUMNS, rows)}<p class="dim">{LEGEND}</p>'


def _published(published: Mapping[str, Sequence[Published]]) -> str:
    rows = []
    for preset, figures in published.items():
        for figure in figures:
            accuracy = f"{figure.accuracy:.1f} %"
            rows.append([shown(preset), shown(figure.system), accuracy, shown(figure.where)])
    if not rows:
        return ""
    head = ["preset", "system", "accuracy", "source"]
    return "<h2>Published, not measured here</h2>" + table(head, rows)


def _against_cost(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    scored = [report for report in reports if report.scored.items]
    # runs whose price is unknown are left out of the plot against money, free ones too
    paid = {r.name: r.cost / len(r.rows) for r in scored if r.cost}
    measures = {
        "frames per question": {r.name: r.mean("frames") for r in scored},
        "tokens per question": {r.name: r.tokens for r in scored},
        "US$ per question": paid,
    }
    plots = []
    for name, values in measures.items():
        marks = []
        for report in scored:
            if report.name in values:
                x, colour = values[report.name], colours[report.name]
                marks.append(_mark(x, report.scored.accuracy, report.name, colour))
        if marks:
            # some space, so that the mark of the largest value is not cut off
            x_max = 1.1 * max(mark.x for mark in marks)
            plots.append(drawing.scatter(marks, x_name=name, x_max=x_max))
    return "<h2>Accuracy against usage</h2>" + "".join(plots) if plots else ""


def _against_budget(reports: Sequence[Report]) -> str:
    """What a budget buys: one curve for each method that was run under several limits."""
    plots = []
    for name, methods in by_budget(reports).items():
        lines = []
        for number, (told, runs) in enumerate(methods.items()):
            colour = COLOURS[number % len(COLOURS)]
            lines.append([_mark(x, run.scored.accuracy, told, colour) for x, run in runs])
        plots.append(drawing.curves(lines, x_name=f"at most so many {LIMITS.get(name, name)}"))
    return "<h2>Accuracy against budget</h2>" + "".join(plots) if plots else ""


def _by_tag(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    marks: dict[str, dict[str, list[Mark]]] = {}
    for report in reports:
        for tag, rates in report.tags().items():
            for value, rate in rates.items():
                # bars have no x
                mark = _mark(0.0, rate, report.name, colours[report.name])
                marks.setdefault(tag, {}).setdefault(value, []).append(mark)
    parts = []
    for tag, groups in sorted(marks.items()):
        parts.append(f"<h2>By {shown(tag)}</h2>{drawing.bars(sorted(groups.items()))}")
    return "".join(parts)


def _calibration(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    marks = []
    for report in reports:
        for point in report.calibration():
            name = f"{report.name}, {point.rate.count} answers"
            marks.append(_mark(point.confidence, point.rate, name, colours[report.name]))
    if not marks:
        return ""
    plot = drawing.scatter(marks, x_name="stated confidence", x_max=1.0, diagonal=True)
    note = "On the dashed line, stated confidence equals accuracy. Expected calibration error: "
    errors = []
    for report in reports:
        if report.calibration_error is not None:
            errors.append(f"{shown(report.name)} {report.calibration_error:.3f}")
    note += ", ".join(errors) + "."
    return f"<h2>Calibration</h2>{plot}<p class='dim'>{note}</p>"


def _differences(reports: Sequence[Report]) -> str:
    rows = [[shown(names), shown(difference)] for names, difference in differences(reports)]
    if not rows:
        return ""
    head = ["on the same questions", "difference (95 %, bootstrap over videos; McNemar's exact p)"]
    return "<h2>Differences</h2>" + table(head, rows)


def _questions(report: Report, beside: Path) -> str:
    right = report.scored.by_question()
    parts = [f"<h2>Questions of {shown(report.name)}</h2>"]
    for item, row in zip(report.items, report.rows, strict=True):
        asked = item.asked
        # without a label there is no verdict, only how the question ended
        mark = _verdict(right[asked.id]) if asked.id in right else shown(row["status"])
        lines = "<br>".join(shown(line) for line in _told(item, row))
        link = _trace_link(report, asked.id, beside)
        parts.append(
            f"<details><summary>{mark} <b>{shown(asked.id)}</b> {shown(asked.question.text)}"
            f"</summary><div>{lines}<br>{link}</div></details>"
        )
    return "\n".join(parts)


def _verdict(right: bool) -> str:
    word = "right" if right else "wrong"
    return f'<span class="{word}">{word}</span>'


def _told(item: Item, row: Mapping[str, Any]) -> list[str]:
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


def _trace_link(report: Report, identity: str, beside: Path) -> str:
    trace = report.folder / "traces" / f"{file_name(identity)}.jsonl"
    if not trace.is_file():
        return ""
    return f'<a href="{html.escape(os.path.relpath(trace, beside))}">trace</a>'


def _spec(report: Report) -> str:
    lines = "\n".join(f"{key} = {value}" for key, value in _flat(report.spec))
    summary = f"<summary>Spec of {shown(report.name)}</summary>"
    return f"<details>{summary}<pre>{shown(lines)}</pre></details>"


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
    said = ". ".join(parts) or "none"
    return f"{said} ({row['status']})"


def _mark(x: float, rate: Rate, name: str, colour: str) -> Mark:
    return Mark(x, rate.value, rate.low, rate.high, name, colour)
