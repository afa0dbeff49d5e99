"""Running a solver on a benchmark, in processes that never hold a label, and scoring the results.

Workers are spawned, not forked: a fork would inherit the labels in this process's memory. Every
question is asked once: rows arrive one by one, and only what has no row is asked again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from longtake import __version__, prompts
from longtake._util import disk_is_full
from longtake._util.process_pool import Failure, Processes, Workers, run_groups
from longtake.config import Settings
from longtake.errors import BudgetSpent, LongtakeError
from longtake.footage.plain import FootageWithout
from longtake.llm.catalog import ModelCatalog
from longtake.llm.middleware import sharing_limits
from longtake.methods.base import fields_of
from longtake.runner.assignment import TEAM
from longtake.runner.session import Session
from longtake.tracing.events import Sink
from longtake.tracing.jsonl import JsonlSink
from longtake.tracing.sinks import Meter
from longtake.types import Usage
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion, LabelledQuestion, VideoSource
from longtake_bench.results import QuestionResult
from longtake_bench.runs import FORMAT, ResultFigures, RunFolder
from longtake_bench.scoring import Citations, Rate, accuracy, measure_citations, sound

# a leading dot is unsafe too: such files are hidden, and ".." is another folder
_UNSAFE = re.compile(r"^\.|[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Solver:
    """How questions are answered: everything that a worker needs, and no label."""

    method: str
    session: Session = field(default_factory=Session)
    traces: Path | None = None
    """Folder for one trace per question."""
    preset: str | None = None
    """The preset that this comes from, for the run's spec."""
    ablation: str | None = None
    differences: tuple[str, ...] = ()
    """How the run differs from the preset's paper."""


AskAll: TypeAlias = Callable[
    [Solver, VideoSource, Sequence[BenchmarkQuestion]], Iterator[QuestionResult]
]
"""Asks questions and gives the results in the order in which they arrive."""


def answer_one(solver: Solver, source: VideoSource, asked: BenchmarkQuestion) -> QuestionResult:
    """The result of one question; an error is a result too."""
    meter = Meter()
    sinks: list[Sink] = [meter]
    if solver.traces is not None:
        trace = solver.traces / f"{file_name(asked.id)}.jsonl"
        # with pictures, the traces of a whole benchmark would fill a disk
        sinks.append(JsonlSink(trace, pictures=False))
    try:
        with solver.session.under_way(*sinks):
            footage = source.footage(asked.video)
            if asked.removed:
                footage = FootageWithout(footage, asked.removed)
            result = solver.session.answer(solver.method, footage, asked.question)
    # a bug in a method must not end a run of thousands of questions
    except Exception as error:
        # a full disk is not the fault of this question: it ends the run
        if disk_is_full(error):
            raise
        return failed(asked, f"{type(error).__name__}: {error}", meter.total)
    if result.answer.unchecked == "model":
        # another answer might have been kept if it had been checked: asked again with the errors
        return failed(asked, "ModelError: the answer could not be checked", result.usage)
    answer = result.answer
    return QuestionResult(
        asked.id,
        answer.status,
        asked.video,
        answer.choice,
        answer.text,
        answer.confidence,
        tuple(cited.segment for cited in answer.evidence),
        answer.context,
        result.usage,
        seen=meter.seen,
        rounds=meter.rounds,
        notes=meter.notes,
        signals=meter.signals,
        stages=tuple(meter.stages),
    )


def failed(asked: BenchmarkQuestion, error: str, usage: Usage) -> QuestionResult:
    """The result of a question that ended in an error."""
    return QuestionResult(asked.id, "error", asked.video, usage=usage, error=error)


@dataclass(frozen=True)
class AskInWorker:
    """Asks one question in a worker; one of ``workers`` that share the limits of endpoints."""

    solver: Solver
    source: VideoSource
    workers: int

    def __call__(self, asked: BenchmarkQuestion) -> QuestionResult:
        """The result of the question."""
        token = sharing_limits.set(self.workers)
        try:
            return answer_one(self.solver, self.source, asked)
        finally:
            sharing_limits.reset(token)


def run_all(
    solver: Solver,
    source: VideoSource,
    questions: Sequence[BenchmarkQuestion],
    *,
    workers: Workers,
    max_cost: float | None = None,
    spent: float = 0.0,
) -> Iterator[QuestionResult]:
    """Results in the order in which they arrive; raises at the run's cost limit.

    The questions about a film are asked one after another, so that its index is built once. One
    that crashes its worker gets an error as its row. ``max_cost`` is what the run may cost in
    dollars, and ``spent`` what earlier runs have spent of it.
    """
    # what a question in progress may cost counts as spent
    reserved = solver.session.settings.budget.cost or 0.0
    left = len(questions)

    def affordable(group: Sequence[BenchmarkQuestion]) -> Iterator[BenchmarkQuestion]:
        nonlocal spent
        for asked in group:
            if max_cost is not None and (spent >= max_cost or spent + reserved > max_cost):
                return
            spent += reserved
            yield asked

    ask = AskInWorker(solver, source, workers.room())
    for asked, row in run_groups(workers, ask, map(affordable, by_video(questions))):
        if isinstance(row, Failure):
            if row.disk_full:
                # no question can be answered: it is not the fault of this one
                raise LongtakeError(f"a worker's disk is full ({row.message})")
            row = failed(asked, row.message, Usage())
        left -= 1
        spent += row.cost - reserved
        yield row
    if left:
        used = f"${spent:.2f} of ${max_cost or 0:g}; {left} questions left"
        raise BudgetSpent("cost of the run", used)


def run_here(
    solver: Solver, source: VideoSource, questions: Sequence[BenchmarkQuestion], *, workers: int
) -> Iterator[QuestionResult]:
    """The results from so many processes of this machine."""
    with Processes(workers) as processes:
        yield from run_all(solver, source, questions, workers=processes)


def by_video(questions: Sequence[BenchmarkQuestion]) -> list[list[BenchmarkQuestion]]:
    """The questions in groups, one for each video."""
    groups: dict[str, list[BenchmarkQuestion]] = {}
    for asked in questions:
        groups.setdefault(asked.video, []).append(asked)
    return list(groups.values())


def file_name(identity: str) -> str:
    """A file name for a question or an agent, different for different identities.

    Characters that are unsafe in file names are replaced and long identities are cut. What that
    loses, a digest of the whole identity makes up for: ``a/b`` and ``a_b`` get different names.
    """
    safe = _UNSAFE.sub("_", identity)[:120]
    if safe and safe == identity:
        return identity
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{safe}-{digest[:12]}"


Progress = Callable[[QuestionResult], None]
"""Called with each new result."""

PACE = ("concurrency", "timeout", "threads", "gpu_layers")
"""What affects how fast a model answers but not what; a run may be resumed with other values."""


@dataclass(frozen=True)
class Scored(ResultFigures):
    """Questions with labels, their results, and whether each is right."""

    items: Sequence[LabelledQuestion]
    rows: Sequence[QuestionResult]
    right: Sequence[bool]

    @property
    def accuracy(self) -> Rate:
        """Share of right answers; abstentions and errors count as wrong."""
        return accuracy(self.right, [item.asked.video for item in self.items])

    @property
    def citations(self) -> Citations | None:
        """How well answers cite the evidence; ``None`` if the benchmark names none."""
        return measure_citations(self.items, self.rows, self.right)

    def by_question(self) -> dict[str, bool]:
        """Whether each question was answered right, by its id."""
        ids = [item.asked.id for item in self.items]
        return dict(zip(ids, self.right, strict=True))


def specify(solver: Solver, benchmark: Benchmark) -> dict[str, Any]:
    """Everything that determines the results; no secrets."""
    session = solver.session
    settings = session.settings
    method = session.method(solver.method)
    models: dict[str, Any] = session.assignment.names(method.roles)
    names = list(models.values())
    if TEAM in method.roles:
        members = session.assignment.members()
        names += [member.model for member in members]
        models[TEAM] = [member.model_dump() for member in members]
    # digests are enough to notice a changed prompt, and the spec stays short
    with prompts.override(session.prompts):
        digests = dict(prompts.digests())
    return {
        "longtake": __version__,
        "format": FORMAT,
        "preset": solver.preset,
        "ablation": solver.ablation,
        # nothing rather than an empty list, as in runs from before it was kept
        "differences": solver.differences or None,
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
    catalogue = ModelCatalog(settings)
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
    solver: Solver, benchmark: Benchmark, folder: RunFolder | None = None, **options: Any
) -> Scored:
    """Ask every question that has no result yet, and score all of them.

    The options are those of :func:`collect`.
    """
    return score(benchmark, collect(solver, benchmark, folder, **options))


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
) -> dict[str, QuestionResult]:
    """Ask every question that has no result yet; returns all results by question.

    Labels are not used. ``ask_all`` replaces the ``workers`` of this machine.
    """
    ask_all = ask_all or partial(run_here, workers=workers)
    # what is learned about a model meanwhile must not change the method
    solver = dataclasses.replace(solver, session=solver.session.settled(solver.method))
    source: Any = benchmark.source
    if dataclasses.is_dataclass(source) and hasattr(source, "settings"):
        # the loader knows no settings: films are indexed with those of the run
        source = dataclasses.replace(source, settings=solver.session.settings)  # type: ignore[type-var]
    # locked before results are read, so that two processes never ask the same questions
    with folder.working() if folder else nullcontext():
        done = folder.open(specify(solver, benchmark), resume=resume) if folder else {}
        if retry_errors:
            # the new result is appended to the file, where the last one of a question counts
            done = {key: row for key, row in done.items() if not row.failed}
        left = [item.asked for item in benchmark.items if item.asked.id not in done]
        for row in ask_all(solver, source, left):
            done[row.id] = row
            # on disk first: whatever happens while progress is shown, the result is kept
            if folder:
                folder.append(row)
            if progress:
                progress(row)
    return done


def score(benchmark: Benchmark, results: Mapping[str, QuestionResult]) -> Scored:
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
