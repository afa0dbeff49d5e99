"""An audit of runs: how answers depend on the footage, on the cited moments, and on letters.

The questions of a run are asked again in four passes, with something changed in each. A pass is an
evaluation like any other, in a folder below the run's: it resumes, and keeps to the run's budget.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from longtake.algorithms import intervals
from longtake.errors import RunError
from longtake.types import Segment
from longtake_bench.benchmarks import Benchmark, LabelledQuestion
from longtake_bench.report import MEANS, RunReport, compare
from longtake_bench.results import QuestionResult, Results
from longtake_bench.runner import Scored, score
from longtake_bench.runs import RunFolder, differences
from longtake_bench.scoring import Difference, Rate, accuracy, normalized, paired

REFERENCE = "blind"
"""The method that answers without the footage; other methods are compared with it."""
FOLDER = "audit"
"""The folder of the passes, below that of the run."""
PASSES = {
    "shuffled": "every option under another letter",
    "emptied": "the whole footage removed",
    "uncited": "the cited stretches removed",
    "thinned": "random other stretches of the same lengths removed",
}
"""What is changed in each pass."""
FLAGS = {
    "footage not needed": "with the whole footage removed, it is not shown to be right less often",
    "citations not needed": "removing what it cites is not shown to change more of its answers than"
    " removing random stretches of the same lengths, or it cites nothing",
    "knows more than the footage": "with the whole footage removed, it is shown to be right more"
    " often than `blind`",
    "depends on letters": "with every option under another letter, it is shown to be right less"
    " often",
}
"""The rules: what each flag says about a run."""
SHOWN = (
    "A difference is shown if its 95 % interval, bootstrapped over videos, lies above 0 and"
    " McNemar's exact p is below 0.05."
)


@dataclass(frozen=True)
class AuditPass:
    """The questions of a pass, as the run answered them and as the pass did."""

    before: Scored
    after: Scored

    @property
    def videos(self) -> list[str]:
        """The video of each question."""
        return [item.asked.video for item in self.before.items]

    @property
    def same(self) -> list[bool]:
        """Whether each answer of the run is given in the pass too."""
        return _same(self.before, self.after)

    def plain(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        silent = [answer is None for answer in answers(self.after)]
        return {
            "stays": vars(_share(self.same, self.before)),
            "abstains": vars(accuracy(silent, self.videos)),
            "accuracy": vars(self.after.accuracy),
        }


@dataclass(frozen=True)
class Audit:
    """A run beside ``blind`` on the same questions, and its passes."""

    report: RunReport
    blind: RunReport
    passes: Mapping[str, AuditPass]
    """By name, without those that have no questions; ``blind`` itself has none."""

    @property
    def blind_too(self) -> Rate:
        """Share of the run's answers that ``blind`` gives too."""
        return _share(_same(self.report.scored, self.blind.scored), self.report.scored)

    @property
    def differences(self) -> dict[str, Difference]:
        """The differences that flags are derived from; those of a missing pass are left out."""
        found = {"minus_blind": compare(self.report, self.blind)}
        if shuffled := self.passes.get("shuffled"):
            found["lost_shuffled"] = _lost(shuffled)
        if emptied := self.passes.get("emptied"):
            blind = self.blind.scored.by_question()
            guessed = [blind[item.asked.id] for item in emptied.after.items]
            found["lost_emptied"] = _lost(emptied)
            found["emptied_minus_blind"] = paired(emptied.after.right, guessed, emptied.videos)
        if uncited := self.passes.get("uncited"):
            # more answers change without what is cited: more stay without something else
            found["changed_uncited"] = paired(
                self.passes["thinned"].same, uncited.same, uncited.videos
            )
        return found

    @property
    def flags(self) -> list[str]:
        """The names of :data:`FLAGS` that hold; ``blind`` is what others are judged by."""
        if not self.passes:
            return []
        shown = {name for name, each in self.differences.items() if each.low > 0 and each.p < 0.05}
        holds = (
            "lost_emptied" not in shown,
            "changed_uncited" not in shown,
            "emptied_minus_blind" in shown,
            "lost_shuffled" in shown,
        )
        return [name for name, flagged in zip(FLAGS, holds, strict=True) if flagged]

    def plain(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        report, citations = self.report, self.report.scored.citations
        return {
            "run": report.name,
            "benchmark": report.benchmark,
            "method": report.method,
            "models": report.models,
            "accuracy": vars(report.scored.accuracy),
            "blind_too": vars(self.blind_too),
            "passes": {name: each.plain() for name, each in self.passes.items()},
            "differences": {name: vars(each) for name, each in self.differences.items()},
            "evidence_f1": None if citations is None else citations.means["seconds_f1"],
            "means": {name: report.mean(name) for name in MEANS},
            "flags": self.flags,
        }

    @property
    def row(self) -> list[str]:
        """As a row of a table with :data:`COLUMNS`."""
        return [show(self) for show in COLUMNS.values()]

    def stays(self, name: str) -> str:
        """The share of answers that stay in a pass."""
        found = self.passes.get(name)
        return "–" if found is None else str(_share(found.same, found.before))

    @property
    def right_emptied(self) -> str:
        """Accuracy without the footage."""
        emptied = self.passes.get("emptied")
        return "–" if emptied is None else str(emptied.after.accuracy)


COLUMNS: Mapping[str, Callable[[Audit], str]] = {
    "run": lambda audit: audit.report.name,
    "right (95 %)": lambda audit: audit.report.accuracy,
    "minus blind": lambda audit: str(audit.differences["minus_blind"]),
    "blind answers too": lambda audit: str(audit.blind_too),
    **{f"stays, {name}": partial(lambda name, audit: audit.stays(name), name) for name in PASSES},
    "right, emptied": lambda audit: audit.right_emptied,
    "F1 of cited seconds": lambda audit: audit.report.f1_text,
    "calls": lambda audit: f"{audit.report.mean('calls'):.1f}",
    "tokens": lambda audit: f"{audit.report.tokens:,.0f}",
    "s": lambda audit: f"{audit.report.mean('seconds'):.1f}",
    "flags": lambda audit: ", ".join(audit.flags) or "–",
}
"""The columns of the table, with what each shows of an audit."""


def _lost(each: AuditPass) -> Difference:
    """How much more often the run is right than its pass."""
    return paired(each.before.right, each.after.right, each.videos)


AskPass = Callable[[RunReport, Benchmark, RunFolder], Results]
"""Asks the questions of a pass that have no result yet, in its folder; returns all results."""


def audit_runs(runs: Sequence[tuple[RunReport, Benchmark]], ask: AskPass) -> list[Audit]:
    """Audit runs; one of ``blind`` must have the same questions, budget and seed as each."""
    references = [(report, _reference(report, [each for each, _ in runs])) for report, _ in runs]
    return [
        Audit(report, blind, _passes(report, benchmark, ask))
        for (report, blind), (_, benchmark) in zip(references, runs, strict=True)
    ]


def _reference(report: RunReport, runs: Sequence[RunReport]) -> RunReport:
    """The run of ``blind`` that a complete run is compared with."""
    have = len(report.scored.items)
    if have < report.total:
        problem = f"has {have} of {report.total} results with labels; an audit needs all"
        raise RunError(f"{report.folder}: {problem}")
    problem = (
        f"no run of {REFERENCE} on {report.benchmark} is named to compare it with; make one and"
        f" name it too: longtake eval {report.benchmark} --method {REFERENCE} --no-verify --out RUN"
        " (with the other options of the run)"
    )
    for other in runs:
        if (other.method, other.benchmark) == (REFERENCE, report.benchmark):
            changed = differences(_terms(other), _terms(report))
            # a spec holds the settings as they print; the check of an answer looks at the footage
            if "verify=True" in str(other.spec.get("answers")):
                changed = [
                    f"{REFERENCE} needs --no-verify: a check of its answers sees the footage"
                ]
            if not changed:
                return other
            problem = f"cannot be compared with {other.folder} ({'; '.join(changed[:4])})"
    raise RunError(f"{report.folder}: {problem}")


def _terms(report: RunReport) -> dict[str, Any]:
    """What runs must share to be compared."""
    return {key: report.spec.get(key) for key in ("benchmark", "budget", "seed")}


def _passes(report: RunReport, benchmark: Benchmark, ask: AskPass) -> dict[str, AuditPass]:
    if report.method == REFERENCE:
        return {}
    results = {item.asked.id: row for item, row in zip(report.items, report.rows, strict=True)}
    passes = {}
    for name in PASSES:
        changed = altered(name, benchmark, results)
        if changed.items:
            after = score(changed, _results(report, changed, ask))
            asked = {item.asked.id for item in changed.items}
            items = [item for item in benchmark.items if item.asked.id in asked]
            passes[name] = AuditPass(score(replace(benchmark, items=items), results), after)
    return passes


def _results(report: RunReport, changed: Benchmark, ask: AskPass) -> Results:
    mark: Any = changed.settings["audit"]
    folder = RunFolder(report.folder / FOLDER / mark["pass"])
    results = folder.results()
    if any(item.asked.id not in results for item in changed.items):
        return ask(report, changed, folder)
    if folder.spec()["benchmark"].get("audit") != mark:
        raise RunError(f"{folder.path}: was made from other answers; delete it to ask anew")
    return results


def altered(name: str, benchmark: Benchmark, results: Results) -> Benchmark:
    """The questions of a pass; questions that it cannot be made for are left out."""
    items = []
    durations: dict[str, float] = {}
    for item in benchmark.items:
        asked, row = item.asked, results[item.asked.id]
        if name == "shuffled":
            if asked.question.options:
                items.append(_shuffled(item))
            continue
        removed = [Segment(0.0, math.inf)]
        if name != "emptied":
            if asked.video not in durations:
                durations[asked.video] = benchmark.source.footage(asked.video).duration
            removed = _widened(row.evidence, durations[asked.video])
            covered = sum(stretch.duration for stretch in removed)
            # elsewhere there must be room for as much
            if not removed or 2 * covered > durations[asked.video] or _given(item, row) is None:
                continue
            if name == "thinned":
                chance = random.Random(asked.id)
                removed = intervals.elsewhere(removed, durations[asked.video], chance)
        items.append(replace(item, asked=replace(asked, removed=tuple(removed))))
    asked_text = repr([item.asked for item in items])
    mark = {"pass": name, "digest": hashlib.sha256(asked_text.encode()).hexdigest()}
    return replace(benchmark, items=items, settings={**benchmark.settings, "audit": mark})


def _shuffled(item: LabelledQuestion) -> LabelledQuestion:
    """The question with its options rotated, so that each gets another letter."""
    question = item.asked.question
    count = len(question.options)
    turn = random.Random(item.asked.id).randrange(1, count)
    options = tuple(question.options[(place + turn) % count] for place in range(count))
    label = item.label
    if label in tuple(question.letters):
        label = question.letters[(question.letters.index(label) - turn) % count]
    asked = replace(item.asked, question=replace(question, options=options))
    return replace(item, asked=asked, label=label)


def _widened(citations: Sequence[Segment], duration: float) -> list[Segment]:
    """Disjoint segments of at least a second, since a moment of the grid covers one."""
    wide = []
    for each in citations:
        lacking = max(0.0, 1.0 - each.duration) / 2
        start, end = max(0.0, each.start - lacking), min(duration, each.end + lacking)
        wide.append(Segment(start, max(start, end)))
    return intervals.union(wide)


def answers(scored: Scored) -> list[str | None]:
    """The text of each answer; ``None`` where none was given."""
    return [_given(item, row) for item, row in zip(scored.items, scored.rows, strict=True)]


def _given(item: LabelledQuestion, result: QuestionResult) -> str | None:
    """The text of the answer; ``None`` if there is none."""
    question = item.asked.question
    if question.options:
        options = dict(zip(question.letters, question.options, strict=True))
        return options.get(result.choice or "")
    return normalized(result.text) or None


def _same(one: Scored, other: Scored) -> list[bool]:
    """Whether each answer is given by both; no answer is never the same."""
    ids = [item.asked.id for item in other.items]
    theirs = dict(zip(ids, answers(other), strict=True))
    ours = zip(one.items, answers(one), strict=True)
    return [answer is not None and answer == theirs.get(item.asked.id) for item, answer in ours]


def _share(same: Sequence[bool], scored: Scored) -> Rate:
    """The share of a run's answers that are the same."""
    known = [number for number, answer in enumerate(answers(scored)) if answer is not None]
    videos = [scored.items[number].asked.video for number in known]
    return accuracy([same[number] for number in known], videos)
