"""Runs side by side as one HTML page that needs nothing else: no script, no remote source, plots drawn in place.

Questions, answers and names come from films, files and models. All of it is escaped, control characters are shown
instead of obeyed, and the page forbids itself scripts and remote sources should any slip through.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longtake.evals import drawing
from longtake.evals.drawing import COLOURS, Mark, shown
from longtake.evals.presets import Published
from longtake.evals.report import Report, differences, money
from longtake.evals.scoring import Rate
from longtake.evals.solving import file_name
from longtake.timecode import clock

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .6rem 0 1.4rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #8884; padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; }
svg { max-width: 100%; height: auto; margin-right: 1rem; } svg text { font-size: 11px; fill: currentColor; }
.axis { fill: none; stroke: currentColor; } .grid { stroke: #8883; }
.guide { stroke: #888; stroke-dasharray: 4 4; } .whisker { stroke: currentColor; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
.dim { opacity: .7; } .right { color: #2b6cb0; } .wrong { color: #c05621; }
details { margin: .15rem 0; } details > div { margin: .2rem 0 .7rem 1.2rem; } summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def page(
    reports: Sequence[Report], *, beside: Path, published: Mapping[str, Sequence[Published]]
) -> str:
    """The page; ``beside`` is the folder it will lie in, so that traces can be linked to from there."""
    colours = {report.name: COLOURS[number % len(COLOURS)] for number, report in enumerate(reports)}
    parts = [
        "<h1>Runs</h1>",
        _summary(reports, colours),
        _published(published),
        _against_cost(reports, colours),
        _by_tag(reports, colours),
        _calibration(reports, colours),
        _differences(reports),
        *(_questions(report, beside) for report in reports),
        *(_spec(report) for report in reports),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        f'<meta name="viewport" content="width=device-width"><title>longtake report</title>'
        f"<style>{STYLE}</style></head><body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are already harmless."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    top = "".join(f"<th>{shown(name)}</th>" for name in head)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _summary(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    rows = []
    for report in reports:
        ended = ", ".join(f"{n} {shown(s)}" for s, n in sorted(report.counts.items()))
        rows.append(
            [
                f'<span class="key" style="background:{colours[report.name]}"></span>{shown(report.name)}',
                shown(report.benchmark),
                shown(report.spec["method"]["name"]),
                shown(report.models),
                shown(report.accuracy),
                f"{ended} <span class='dim'>of {report.total}</span>",
                f"{report.mean('frames'):.1f}",
                f"{report.mean('calls'):.1f}",
                f"{report.tokens:,.0f}",
                shown(money(report)),
                f"{report.mean('seconds'):.1f}",
            ]
        )
    head = [
        "run",
        "benchmark",
        "method",
        "models",
        "accuracy (95 %)",
        "ended",
        "frames",
        "calls",
        "tokens",
        "cost, all",
        "s",
    ]
    return table(head, rows) + (
        '<p class="dim">Measured here. Frames, calls, tokens and seconds are means per question. Abstentions, '
        "unreadable answers and errors count as wrong. Intervals treat videos, not questions, as the sample.</p>"
    )


def _published(published: Mapping[str, Sequence[Published]]) -> str:
    rows = [
        [shown(name), shown(f.system), f"{f.accuracy:.1f} %", shown(f.where)]
        for name, figures in published.items()
        for f in figures
    ]
    if not rows:
        return ""
    return "<h2>Published, not measured here</h2>" + table(
        ["preset", "system", "accuracy", "source"], rows
    )


def _against_cost(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    plots = []
    measures = {
        "frames a question": {r.name: r.mean("frames") for r in reports},
        "tokens a question": {r.name: r.tokens for r in reports},
        "US$ a question": {r.name: r.cost / len(r.rows) for r in reports if r.cost},
    }
    for name, values in measures.items():
        marks = [
            _mark(values[r.name], r.scored.accuracy, r.name, colours[r.name])
            for r in reports
            if r.name in values and r.scored.items
        ]
        if marks:
            plots.append(
                drawing.scatter(marks, x_name=name, x_max=1.1 * max(mark.x for mark in marks))
            )
    return "<h2>Accuracy against what it took</h2>" + "".join(plots) if plots else ""


def _by_tag(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    found: dict[str, dict[str, list[Mark]]] = {}
    for report in reports:
        for tag, rates in report.tags().items():
            for value, rate in rates.items():
                mark = _mark(0.0, rate, report.name, colours[report.name])
                found.setdefault(tag, {}).setdefault(value, []).append(mark)
    return "".join(
        f"<h2>By {shown(tag)}</h2>{drawing.bars(sorted(groups.items()))}"
        for tag, groups in sorted(found.items())
    )


def _calibration(reports: Sequence[Report], colours: Mapping[str, str]) -> str:
    marks = [
        _mark(c.confidence, c.rate, f"{report.name}, {c.rate.count} answers", colours[report.name])
        for report in reports
        for c in report.calibration()
    ]
    if not marks:
        return ""
    plot = drawing.scatter(marks, x_name="stated confidence", x_max=1.0, diagonal=True)
    return f"<h2>Calibration</h2>{plot}<p class='dim'>On the dashed line, stated confidence is what came true.</p>"


def _differences(reports: Sequence[Report]) -> str:
    rows = [[shown(names), shown(difference)] for names, difference in differences(reports)]
    if not rows:
        return ""
    head = ["on the same questions", "difference (95 %, bootstrap over videos; McNemar's exact p)"]
    return "<h2>Differences</h2>" + table(head, rows)


def _questions(report: Report, beside: Path) -> str:
    right = {
        item.asked.id: ok for item, ok in zip(report.scored.items, report.scored.right, strict=True)
    }
    parts = [f"<h2>Questions of {shown(report.name)}</h2>"]
    for item, row in zip(report.items, report.rows, strict=True):
        asked, mark = item.asked, ""
        if asked.id in right:
            mark = (
                '<span class="right">right</span>'
                if right[asked.id]
                else '<span class="wrong">wrong</span>'
            )
        told = [
            f"{letter}. {option}"
            for letter, option in zip(asked.question.letters, asked.question.options, strict=True)
        ]
        if item.label is not None:
            told.append(f"label: {item.label}")
        told.append(f"answer: {_answer(row)}")
        if row.get("evidence"):
            told.append("seen at " + ", ".join(clock(start) for start, _ in row["evidence"]))
        told += [f"{count} × {label}" for label, count in (row.get("notes") or {}).items()]
        trace, link = report.folder / "traces" / f"{file_name(asked.id)}.jsonl", ""
        if trace.is_file():
            link = f'<a href="{html.escape(os.path.relpath(trace, beside))}">trace</a>'
        parts.append(
            f"<details><summary>{mark or shown(row['status'])} <b>{shown(asked.id)}</b> {shown(asked.question.text)}"
            f"</summary><div>{'<br>'.join(shown(line) for line in told)}<br>{link}</div></details>"
        )
    return "\n".join(parts)


def _spec(report: Report) -> str:
    lines = "\n".join(f"{key} = {value}" for key, value in _flat(report.spec))
    return f"<details><summary>Spec of {shown(report.name)}</summary><pre>{shown(lines)}</pre></details>"


def _flat(data: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(data, Mapping):
        return [(path, data)]
    return [
        pair
        for key, value in data.items()
        for pair in _flat(value, f"{path}.{key}" if path else str(key))
    ]


def _answer(row: Mapping[str, Any]) -> str:
    if row["status"] == "error":
        return f"error: {row.get('error')}"
    said = ". ".join(part for part in (row.get("choice"), row.get("text")) if part) or "none"
    return f"{said} ({row['status']})"


def _mark(x: float, rate: Rate, name: str, colour: str) -> Mark:
    return Mark(x, rate.value, rate.low, rate.high, name, colour)
