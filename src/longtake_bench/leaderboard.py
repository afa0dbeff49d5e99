"""A leaderboard from run folders: which runs may be on it, and its pages.

Anybody may send a run folder. :func:`check_run` computes again whatever can be computed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from longtake import __version__
from longtake.errors import RunError
from longtake.types import Status, Usage
from longtake_bench.benchmarks import LabelledQuestion, about
from longtake_bench.benchmarks.files import malformed_files
from longtake_bench.report import RunReport, read_labelled, render
from longtake_bench.results import QuestionResult
from longtake_bench.runner import file_name
from longtake_bench.runs import RESULTS, SPEC, RunFolder, plain_spec

SUMMARY = "summary.json"
"""What ``eval`` writes beside the results: the spec's hash, and what the results amount to."""
FILES = {SPEC, RESULTS, SUMMARY, "traces", "audit", ".lock"}


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Identifies a spec, whatever the order of its keys."""
    text = json.dumps(plain_spec(spec), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def summarize(report: RunReport) -> dict[str, Any]:
    """The content of :data:`SUMMARY`; whole numbers, which are the same on every machine."""
    usage = [row.usage or Usage() for row in report.rows]
    return {
        "spec": spec_hash(report.spec),
        "questions": len(report.rows),
        "right": sum(report.scored.right),
        "answered": report.given,
        "tokens": sum(each.tokens_in + each.tokens_out for each in usage),
    }


def check_run(path: Path, data: Sequence[Path]) -> RunReport:
    """The run in a folder, scored anew; raises if the folder is not as ``eval`` leaves it."""
    with malformed_files(f"{path}: its files are not as eval writes them"):
        report = _scored_anew(path, data)
        # a spec may hold anything: the fields that the pages show must be there
        _row(report)
    return report


def _scored_anew(path: Path, data: Sequence[Path]) -> RunReport:
    folder = RunFolder(path.resolve())
    unknown = sorted({each.name for each in folder.path.glob("*")} - FILES)
    if unknown:
        raise RunError(f"{path}: contains {unknown[0]}, which is not part of a run")
    version = folder.spec().get("longtake")
    if not isinstance(version, str) or _numbers(version) > _numbers(__version__):
        raise RunError(f"{path}: was run with longtake {version}, which is unknown here")
    try:
        stated = json.loads((folder.path / SUMMARY).read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: no {SUMMARY} that can be read ({error})") from error
    results = checked_results(folder)
    report = read_labelled(path, data)
    if len(report.rows) != report.total or len(results) != report.total:
        raise RunError(f"{path}: has {len(report.rows)} of {report.total} results")
    for item, row in zip(report.items, report.rows, strict=True):
        if (row.choice or "") not in ("", *item.asked.question.letters):
            raise RunError(f"{path}: the result of {row.id!r} has a choice that was not offered")
    computed = summarize(report)
    for key, value in computed.items():
        if not isinstance(stated, dict) or stated.get(key) != value:
            raise RunError(f"{path}: {SUMMARY} does not state {key} as computed ({value})")
    return report


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    # a malformed version counts as newer than all others
    return tuple(int(part) for part in parts) if all(map(str.isdecimal, parts)) else (10**9,)


def checked_results(folder: RunFolder) -> dict[str, QuestionResult]:
    """The results of a run; rejects other fields or kinds of values than ``eval`` writes."""
    known = {each.name for each in fields(QuestionResult)}
    for _, row in folder.rows():
        usage, evidence = row.get("usage"), row.get("evidence") or []
        faults = {
            "fields": not row.keys() <= known,
            "status": row.get("status") not in ("error", *get_args(Status)),
            "choice": not isinstance(row.get("choice") or "", str),
            "text": not isinstance(row.get("text") or "", str),
            "confidence": not _is_number(row.get("confidence") or 0.0, high=1.0),
            "evidence": not isinstance(evidence, list) or not all(map(_is_stretch, evidence)),
            "usage": not isinstance(usage, dict)
            or usage.keys() != asdict(Usage()).keys()
            or not all(_is_number(value or 0.0) for value in usage.values()),
        }
        for name, faulty in faults.items():
            if faulty:
                problem = f"the result of {row.get('id')!r} has other {name} than eval writes"
                raise RunError(f"{folder.path}: {problem}")
    return folder.results()


def _is_number(value: Any, high: float = math.inf) -> bool:
    return isinstance(value, int | float) and 0 <= value <= high and math.isfinite(value)


def _is_stretch(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(map(_is_number, value))
        and value[0] <= value[1]
    )


def site(reports: Sequence[RunReport]) -> Iterator[tuple[str, str]]:
    """The pages by file name: the table, and one page with the questions of each benchmark."""
    pages: dict[str, list[RunReport]] = {}
    for report in reports:
        pages.setdefault(_page_of(report), []).append(report)
    ordered = [report for listed in pages.values() for report in sorted(listed, key=_rank)]
    rows = [(_row(report), f"{_page_of(report)}#{_anchor(report)}") for report in ordered]
    yield "index.html", render("leaderboard.html.j2", columns=list(COLUMNS), rows=rows)
    for name, listed in pages.items():
        runs = sorted(listed, key=_rank)
        yield name, render("questions.html.j2", **_questions(runs))


def _rank(report: RunReport) -> tuple[int, float]:
    # a share of a few questions says less than one of many, however high it is
    return -report.scored.accuracy.count, -report.scored.accuracy.value


def _page_of(report: RunReport) -> str:
    """One page for runs on the same files of a benchmark."""
    asked = report.spec["benchmark"]
    text = json.dumps([asked["files"], asked.get("options")], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{file_name(report.benchmark)}-{digest[:6]}.html"


def _anchor(report: RunReport) -> str:
    return spec_hash(report.spec)[:12]


def _row(report: RunReport) -> list[str]:
    return [show(report) for show in COLUMNS.values()]


def _calibration_error(report: RunReport) -> str:
    error = report.calibration_error
    return "–" if error is None else f"{error:.3f}"


COLUMNS: Mapping[str, Callable[[RunReport], str]] = {
    "method": lambda run: run.method,
    "models": lambda run: run.models,
    "benchmark": lambda run: run.benchmark,
    "right (95 %)": lambda run: run.accuracy,
    "F1 of cited seconds": lambda run: run.f1_text,
    "calibration error": _calibration_error,
    "calls": lambda run: f"{run.mean('calls'):.1f}",
    "tokens": lambda run: f"{run.tokens:,.0f}",
    "s": lambda run: f"{run.mean('seconds'):.1f}",
    "cost": lambda run: run.cost_text,
    "longtake": lambda run: str(run.spec.get("longtake")),
    "spec": _anchor,
}
"""The columns of the table, with what each shows of a run."""


def _questions(reports: Sequence[RunReport]) -> dict[str, Any]:
    """What the page of a benchmark shows; no texts or letters where its terms are not stated."""
    licence = about(reports[0].benchmark).licence
    stated = licence.partition(" ")[0] not in ("none", "unknown")
    items: dict[str, LabelledQuestion] = {}
    cells: dict[str, dict[str, tuple[str, str]]] = {}
    for report in reports:
        for item, row, verdict in zip(report.items, report.rows, report.verdicts, strict=True):
            items[item.asked.id] = item
            answer = (row.choice or "–") if stated and item.asked.question.options else ""
            cells.setdefault(item.asked.id, {})[_anchor(report)] = (verdict, answer)
    return {
        "benchmark": reports[0].benchmark,
        "licence": licence,
        "texts": stated,
        "runs": [(report.method, _anchor(report)) for report in reports],
        "questions": [
            {
                "id": key,
                "anchor": f"q-{file_name(key)}",
                "asked": item.asked.question if stated else None,
                "cells": [cells[key].get(_anchor(report), ("", "")) for report in reports],
            }
            for key, item in items.items()
        ],
    }
