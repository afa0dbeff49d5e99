"""Running a method over a benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from longtake import __version__, prompts
from longtake.config import Settings
from longtake.evals.items import Benchmark, Item
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import Rate, accuracy, correct
from longtake.evals.solving import Solver, run_all
from longtake.methods.base import fields_of
from longtake.models.catalogue import Catalogue

Progress = Callable[[Mapping[str, Any]], None]
"""Called with each new result."""

PACE = ("concurrency", "timeout", "threads", "gpu_layers")
"""What decides how soon a model answers, not what; it may change between a run and its end."""


@dataclass(frozen=True)
class Scored:
    """Results beside their labels, question by question."""

    items: Sequence[Item]
    rows: Sequence[Mapping[str, Any]]
    right: Sequence[bool]

    @property
    def accuracy(self) -> Rate:
        """Share of right answers; abstentions and errors count as wrong."""
        return accuracy(self.right, [item.asked.video for item in self.items])

    def mean(self, what: str) -> float:
        """Mean of a usage figure per question, errors left out."""
        return mean(self.rows, what)


def mean(rows: Sequence[Mapping[str, Any]], what: str) -> float:
    """Mean of a usage figure over results, errors left out."""
    values = [row["usage"][what] or 0.0 for row in rows if row["status"] != "error"]
    return sum(values) / len(values) if values else 0.0


def specify(solver: Solver, benchmark: Benchmark) -> dict[str, Any]:
    """Everything that decides the results, and no secret."""
    session = solver.session
    settings = session.settings
    method = session.method(solver.method)
    names = session.casting.names(method.roles)
    team = (
        [member.model_dump() for member in session.casting.members()]
        if "team" in method.roles
        else []
    )
    with prompts.override(session.prompts):
        words = dict(prompts.digests())
    return {
        "longtake": __version__,
        "preset": solver.preset,
        "method": {"name": solver.method, "fields": fields_of(method)},
        "models": names | ({"team": team} if team else {}),
        "entries": _entries(settings, [*names.values(), *(member["model"] for member in team)]),
        "budget": settings.budget,
        "index": settings.index,
        "perception": settings.perception,
        "seed": session.seed,
        "prompts": words,
        "benchmark": {
            "name": benchmark.name,
            "files": benchmark.files,
            "options": benchmark.options,
            **benchmark.settings,
        },
        "questions": len(benchmark.items),
    }


def _entries(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """The configuration's entries behind the names of models: a name alone does not say who answers."""
    catalogue = Catalogue(settings)
    entries: dict[str, Any] = {}
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in settings.models and name not in entries:
            fields = dataclasses.asdict(catalogue.entry(name))
            entries[name] = {key: value for key, value in fields.items() if key not in PACE}
            queue.extend(catalogue.backend(name).needs(catalogue.opening(name)))
    return entries


def evaluate(
    solver: Solver,
    benchmark: Benchmark,
    folder: RunFolder | None = None,
    *,
    workers: int = 1,
    resume: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> Scored:
    """Ask every question that has no result yet, and score them all."""
    found = collect(
        solver,
        benchmark,
        folder,
        workers=workers,
        resume=resume,
        retry_errors=retry_errors,
        progress=progress,
    )
    return score(benchmark, found)


def collect(
    solver: Solver,
    benchmark: Benchmark,
    folder: RunFolder | None = None,
    *,
    workers: int = 1,
    resume: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> dict[str, dict[str, Any]]:
    """Ask every question that has no result yet; all results by question, and no label is looked at."""
    with folder.working() if folder else nullcontext():
        done = folder.open(specify(solver, benchmark), resume=resume) if folder else {}
        if retry_errors:
            done = {key: row for key, row in done.items() if row["status"] != "error"}
        left = [item.asked for item in benchmark.items if item.asked.id not in done]
        for row in run_all(solver, benchmark.source, left, workers=workers):
            done[row["id"]] = row
            if folder:
                folder.append(row)
            if progress:
                progress(row)
    return done


def score(benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]) -> Scored:
    """Results beside their labels, in the benchmark's order; questions without a result or a label are left out."""
    items = [
        item for item in benchmark.items if item.asked.id in results and item.label is not None
    ]
    rows = [results[item.asked.id] for item in items]
    right = [
        correct(item, row.get("choice"), row.get("text") or "")
        for item, row in zip(items, rows, strict=True)
    ]
    return Scored(items, rows, right)
