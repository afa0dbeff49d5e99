"""Run a method over a benchmark."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from longtake import __version__, prompts
from longtake.config import Settings
from longtake.evals.items import Benchmark, Item
from longtake.evals.outcomes import count_errors, mean_count, mean_tokens, mean_usage
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import Rate, accuracy, sound
from longtake.evals.solving import AskAll, Solver, run_all
from longtake.methods.base import fields_of
from longtake.models.catalogue import Catalogue
from longtake.session.casting import TEAM

Progress = Callable[[Mapping[str, Any]], None]
"""Called with each new result."""

PACE = ("concurrency", "timeout", "threads", "gpu_layers")
"""What affects how fast a model answers but not what; a run may be resumed with other values."""


@dataclass(frozen=True)
class Scored:
    """Questions with labels, their results, and whether each is right."""

    items: Sequence[Item]
    rows: Sequence[Mapping[str, Any]]
    right: Sequence[bool]

    @property
    def accuracy(self) -> Rate:
        """Share of right answers; abstentions and errors count as wrong."""
        return accuracy(self.right, [item.asked.video for item in self.items])

    def mean(self, what: str) -> float:
        """Mean of a usage figure per question, without those that ended in an error."""
        return mean_usage(self.rows, what)

    def count(self, what: str) -> float | None:
        """Mean of ``seen`` (distinct frames, shown or read as captions) or ``rounds``."""
        return mean_count(self.rows, what)

    @property
    def tokens(self) -> float:
        """Mean tokens per question, in and out."""
        return mean_tokens(self.rows)

    @property
    def errors(self) -> Counter[str]:
        """How many questions ended in which error."""
        return count_errors(self.rows)

    def by_question(self) -> dict[str, bool]:
        """Whether each question was answered right, by its id."""
        ids = [item.asked.id for item in self.items]
        return dict(zip(ids, self.right, strict=True))


def specify(solver: Solver, benchmark: Benchmark) -> dict[str, Any]:
    """Everything that determines the results; no secrets."""
    session = solver.session
    settings = session.settings
    method = session.method(solver.method)
    models: dict[str, Any] = session.casting.names(method.roles)
    names = list(models.values())
    if TEAM in method.roles:
        members = session.casting.members()
        names += [member.model for member in members]
        models[TEAM] = [member.model_dump() for member in members]
    # digests are enough to notice a changed prompt, and the spec stays short
    with prompts.override(session.prompts):
        digests = dict(prompts.digests())
    return {
        "longtake": __version__,
        "preset": solver.preset,
        "method": {"name": solver.method, "fields": fields_of(method)},
        "models": models,
        "entries": _entries(settings, names),
        "budget": settings.budget,
        "answers": settings.answers,
        "index": settings.index,
        "perception": settings.perception,
        "seed": session.seed,
        "prompts": digests,
        "benchmark": {
            "name": benchmark.name,
            "files": benchmark.files,
            "options": benchmark.options,
            **benchmark.settings,
        },
        "questions": len(benchmark.items),
    }


def _entries(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """The configuration of named models: a name alone does not say which model answers."""
    catalogue = Catalogue(settings)
    entries: dict[str, Any] = {}
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in settings.models and name not in entries:
            fields = dataclasses.asdict(catalogue.entry(name))
            entries[name] = {key: value for key, value in fields.items() if key not in PACE}
            # one entry can use another, such as a language model
            queue.extend(catalogue.backend(name).needs(catalogue.opening(name)))
    return entries


def evaluate(
    solver: Solver,
    benchmark: Benchmark,
    folder: RunFolder | None = None,
    *,
    workers: int = 1,
    ask_all: AskAll | None = None,
    resume: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> Scored:
    """Ask every question that has no result yet, and score all of them.

    ``ask_all`` replaces the ``workers`` of this machine.
    """
    results = collect(
        solver,
        benchmark,
        folder,
        workers=workers,
        ask_all=ask_all,
        resume=resume,
        retry_errors=retry_errors,
        progress=progress,
    )
    return score(benchmark, results)


def collect(
    solver: Solver,
    benchmark: Benchmark,
    folder: RunFolder | None = None,
    *,
    workers: int = 1,
    ask_all: AskAll | None = None,
    resume: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> dict[str, dict[str, Any]]:
    """Ask every question that has no result yet; returns all results by question.

    Labels are not used. ``ask_all`` replaces the ``workers`` of this machine.
    """
    ask_all = ask_all or partial(run_all, workers=workers)
    # what is learned about a model meanwhile must not change the method
    solver = dataclasses.replace(solver, session=solver.session.settled(solver.method))
    # locked before results are read, so that two processes never ask the same questions
    with folder.working() if folder else nullcontext():
        done = folder.open(specify(solver, benchmark), resume=resume) if folder else {}
        if retry_errors:
            # the new result is appended to the file, where the last one of a question counts
            done = {key: row for key, row in done.items() if row["status"] != "error"}
        left = [item.asked for item in benchmark.items if item.asked.id not in done]
        for row in ask_all(solver, benchmark.source, left):
            done[row["id"]] = row
            # on disk first: whatever happens while progress is shown, the result is kept
            if folder:
                folder.append(row)
            if progress:
                progress(row)
    return done


def score(benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]) -> Scored:
    """Score results with their labels, in the benchmark's order.

    Questions without a result or a label are left out.
    """
    items, rows, right = [], [], []
    for item in benchmark.items:
        row = results.get(item.asked.id)
        if row is not None and item.label is not None:
            items.append(item)
            rows.append(row)
            right.append(sound(item, row))
    return Scored(items, rows, right)
