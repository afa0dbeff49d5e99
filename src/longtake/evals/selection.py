"""A team chosen from a library without labels: who agrees most often with what most of them say (LVAgent, 3.1).

Each agent answers a sample of questions through perception and action, as a run of its own that resumes. No label is
read: the answer that most agents give stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from longtake.algorithms.voting import agreement
from longtake.config import BudgetSettings
from longtake.errors import RunError
from longtake.evals.items import Asked, Benchmark
from longtake.evals.runner import collect
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import Difference, Rate, accuracy, paired
from longtake.evals.solving import Solver, file_name
from longtake.footage.protocol import Footage
from longtake.models.chat import Chat
from longtake.session.asking import Session
from longtake.session.estimate import Estimate, estimate, total
from longtake.steps.team import Member, Opinion, by_meaning

METHOD = "lvagent"
ALONE = {"team_size": 1, "max_rounds": 1, "reflection": False, "reasons": False}
"""Perception and action of one agent, and nothing that only a discussion needs."""
LONG = 86_400.0
"""Seconds of film that an estimate presumes."""

Progress = Callable[[str, Mapping[str, Any]], None]
"""Called with an agent's name and each new result of it."""


@dataclass(frozen=True)
class Ranked:
    """An agent, and how often it said what most said."""

    member: Member
    agrees: Sequence[bool]
    agreement: Rate
    results: Sequence[Mapping[str, Any]]

    @property
    def answered(self) -> int:
        """Questions it answered."""
        return sum(row["status"] == "answered" for row in self.results)

    def mean(self, what: str) -> float:
        """Mean of a usage figure per question."""
        values = [row["usage"][what] or 0.0 for row in self.results if "usage" in row]
        return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class Selection:
    """A library, best first."""

    ranking: Sequence[Ranked]
    videos: Sequence[str]
    """The video of each question."""

    def team(self, size: int) -> list[Member]:
        """The best ``size`` agents."""
        return [ranked.member for ranked in self.ranking[:size]]

    def margin(self, size: int) -> Difference | None:
        """The last who is in minus the first who is out; ``None`` where everybody is in."""
        if size >= len(self.ranking):
            return None
        return paired(self.ranking[size - 1].agrees, self.ranking[size].agrees, self.videos)


def select(
    library: Sequence[Member],
    benchmark: Benchmark,
    session: Session,
    folder: Path,
    *,
    workers: int = 1,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> Selection:
    """Ask every agent what it has not answered yet, take the vote, and rank the agents.

    ``folder`` keeps a run per agent, so that the same call continues where it stopped.
    """
    results = {}
    for member in library:
        results[member.name] = collect(
            solver_of(member, session),
            benchmark,
            RunFolder(folder / file_name(member.name)),
            workers=workers,
            resume=True,
            retry_errors=retry_errors,
            progress=partial(progress, member.name) if progress else None,
        )
    return rank(library, benchmark, results, lambda: judge_of(library, benchmark, session))


def rank(
    library: Sequence[Member],
    benchmark: Benchmark,
    found: Mapping[str, Mapping[str, Mapping[str, Any]]],
    judge: Callable[[], Chat | None],
) -> Selection:
    """The library by how often each agent's results agree with the vote."""
    asked = [item.asked for item in benchmark.items]
    if asked and all(row["status"] == "error" for rows in found.values() for row in rows.values()):
        first = next(iter(found.values()))[asked[0].id]
        raise RunError(f"no agent could answer anything; the first error: {first['error']}")
    votes = votes_of(asked, found, judge)
    agrees, videos = agreement(votes), [one.video for one in asked]
    ranking = [
        Ranked(
            member,
            agrees[member.name],
            accuracy(agrees[member.name], videos),
            [found[member.name][a.id] for a in asked],
        )
        for member in library
    ]
    return Selection(sorted(ranking, key=lambda ranked: -sum(ranked.agrees)), videos)


def solver_of(member: Member, session: Session) -> Solver:
    """One agent alone, through perception and action."""
    return Solver(METHOD, _alone(member, session))


def _alone(member: Member, session: Session) -> Session:
    casting = replace(session.casting, roster=(member,))
    return replace(session, casting=casting).with_fields(METHOD, ALONE)


def votes_of(
    asked: Sequence[Asked],
    found: Mapping[str, Mapping[str, Mapping[str, Any]]],
    judge: Callable[[], Chat | None],
) -> dict[str, list[str | None]]:
    """Each agent's vote on each question; answers in words are compared by meaning where there is a judge."""
    chat = judge() if any(not one.question.options for one in asked) else None
    votes: dict[str, list[str | None]] = {name: [] for name in found}
    for one in asked:
        said = [
            Opinion(name, rows[one.id].get("choice"), rows[one.id].get("text") or "")
            for name, rows in found.items()
        ]
        if chat is not None and not one.question.options:
            said = by_meaning(chat, one.question, said)
        for opinion in said:
            votes[opinion.agent].append(opinion.vote)
    return votes


def judge_of(library: Sequence[Member], benchmark: Benchmark, session: Session) -> Chat | None:
    """The first agent of the library, who says which answers in words mean the same.

    It works outside the budget, which is for one question.
    """
    casting = replace(session.casting, roster=tuple(library[:1]))
    settings = replace(session.settings, budget=BudgetSettings())
    judging = replace(session, casting=casting, settings=settings)
    run = judging.run(judging.method(METHOD), _first_footage(benchmark))
    return run.team[0].chat


def estimates(library: Sequence[Member], benchmark: Benchmark, session: Session) -> list[Estimate]:
    """The most that each agent can use on the whole sample; opens one film and sends nothing."""
    footage = _first_footage(benchmark)
    totals = []
    for member in library:
        alone = _alone(member, session)
        method = alone.method(METHOD)
        run = alone.run(method, footage)
        each = [estimate(method, LONG, item.asked.question, run) for item in benchmark.items]
        totals.append(total(member.name, each))
    return totals


def _first_footage(benchmark: Benchmark) -> Footage:
    return benchmark.source.footage(benchmark.items[0].asked.video)
