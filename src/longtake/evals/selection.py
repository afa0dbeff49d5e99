"""A team chosen from a library without labels: who agrees most often with what most of them say (LVAgent, 3.1).

Each agent answers a sample of questions through perception and action, as a run of its own that resumes. No label is
read: the answer that most agents give stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from longtake import build
from longtake.algorithms.voting import agreement
from longtake.build import Casting, with_fields
from longtake.config import BudgetSettings, Settings
from longtake.errors import RunError
from longtake.estimate import Estimate, estimate
from longtake.evals.items import Asked, Benchmark
from longtake.evals.runner import collect
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import Difference, Rate, accuracy, paired
from longtake.evals.solving import Solver, file_name
from longtake.models.chat import Chat
from longtake.steps.team import Member, Opinion, by_meaning

METHOD = "lvagent"
ALONE = {"team_size": 1, "max_rounds": 1, "reflection": False, "reasons": False}
"""Perception and action of one agent, and nothing that only a discussion needs."""
LONG = 86_400.0
"""Seconds of film that an estimate presumes."""

N = TypeVar("N", int, float)
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


@dataclass(frozen=True)
class Manner:
    """How agents are asked, apart from who they are."""

    casting: Casting = field(default_factory=Casting)
    seed: int = 0
    prompts: Path | None = None
    workers: int = 1
    retry_errors: bool = False


def select(
    library: Sequence[Member],
    benchmark: Benchmark,
    settings: Settings,
    folder: Path,
    manner: Manner | None = None,
    *,
    progress: Progress | None = None,
) -> Selection:
    """Ask every agent what it has not answered yet, take the vote, rank the agents; of equals the first stays first.

    ``folder`` keeps a run per agent; the same call goes on where it was.
    """
    manner = manner or Manner()
    found = {}
    for member in library:
        found[member.name] = collect(
            solver_of(member, settings, manner),
            benchmark,
            RunFolder(folder / file_name(member.name)),
            workers=manner.workers,
            resume=True,
            retry_errors=manner.retry_errors,
            progress=partial(progress, member.name) if progress else None,
        )
    return rank(library, benchmark, found, lambda: judge_of(library, benchmark, settings, manner))


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


def solver_of(member: Member, settings: Settings, manner: Manner) -> Solver:
    """One agent alone, through perception and action."""
    alone = with_fields(settings, METHOD, ALONE)
    return Solver(
        METHOD, alone, replace(manner.casting, roster=(member,)), manner.seed, manner.prompts
    )


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


def judge_of(
    library: Sequence[Member], benchmark: Benchmark, settings: Settings, manner: Manner
) -> Chat | None:
    """The first agent of the library, who says which answers in words mean the same; a question's budget is not its."""
    settings = replace(settings, budget=BudgetSettings())
    footage = benchmark.source.footage(benchmark.items[0].asked.video)
    with_team = replace(manner.casting, roster=tuple(library[:1]))
    return (
        build.open_run(build.open_method(METHOD, settings), footage, settings, with_team)
        .team[0]
        .chat
    )


def estimates(
    library: Sequence[Member], benchmark: Benchmark, settings: Settings, manner: Manner
) -> list[Estimate]:
    """The most that each agent can use on the whole sample; one film is opened for it, and nothing is sent."""
    alone = with_fields(settings, METHOD, ALONE)
    method = build.open_method(METHOD, alone)
    footage = benchmark.source.footage(benchmark.items[0].asked.video)
    found = []
    for member in library:
        run = build.open_run(method, footage, alone, replace(manner.casting, roster=(member,)))
        each = [estimate(method, LONG, item.asked.question, run) for item in benchmark.items]
        found.append(
            Estimate(
                member.name,
                total([one.calls for one in each]),
                total([one.frames for one in each]),
                total([one.tokens_in for one in each]),
                total([one.tokens_out for one in each]),
                total([one.cost for one in each]),
                total([one.steps for one in each]),
                paid=any(one.paid for one in each),
            )
        )
    return found


def total(figures: Sequence[N | None]) -> N | None:
    """The sum of some figures; unknown if any of them is."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if len(known) == len(figures) else None
