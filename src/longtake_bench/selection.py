"""LVAgent's selection of a team: agents ranked by how often they agree with the majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from longtake.agents.team import Member, Opinion, by_meaning
from longtake.config import AnswerSettings, BudgetSettings
from longtake.errors import RunError
from longtake.footage.protocol import Footage
from longtake.llm.chat import Chat
from longtake.runner.session import Session
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion
from longtake_bench.results import QuestionResult, Results
from longtake_bench.runner import Solver, collect, file_name
from longtake_bench.runs import RunFolder
from longtake_bench.scoring import Difference, Rate, accuracy, paired

METHOD = "lvagent"
ALONE = {"team_size": 1, "max_rounds": 1, "reflection": False, "reasons": False}
"""Perception and action of one agent, without what only a discussion needs."""

Progress = Callable[[str, QuestionResult], None]
"""Called with an agent's name and each of its new results."""


@dataclass(frozen=True)
class Ranked:
    """An agent, and how often it agreed with the vote."""

    member: Member
    agrees: Sequence[bool]
    """Whether it agreed, for each question."""
    agreement: Rate
    results: Sequence[QuestionResult]

    @property
    def answered(self) -> int:
        """The number of questions it answered."""
        return sum(row.given for row in self.results)

    def mean(self, what: str) -> float:
        """Mean of a usage figure per question."""
        values = [getattr(row.usage, what) or 0.0 for row in self.results if row.usage]
        return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class Selection:
    """The agents of a library, best first."""

    ranking: Sequence[Ranked]
    videos: Sequence[str]
    """The video of each question."""

    def team(self, size: int) -> list[Member]:
        """The best ``size`` agents."""
        return [ranked.member for ranked in self.ranking[:size]]

    def margin(self, size: int) -> Difference | None:
        """The last agent in the team minus the first outside; ``None`` if all are in the team."""
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
    """Ask every agent the questions it has not answered yet, then vote and rank the agents.

    ``folder`` contains a run per agent, so that the same call continues where it stopped.
    """
    results: dict[str, Results] = {}
    for member in library:
        report = partial(progress, member.name) if progress else None
        results[member.name] = collect(
            solver_of(member, session),
            benchmark,
            RunFolder(folder / file_name(member.name)),
            workers=workers,
            resume=True,
            retry_errors=retry_errors,
            progress=report,
        )
    return rank(library, benchmark, results, lambda: judge_of(library, benchmark, session))


def rank(
    library: Sequence[Member],
    benchmark: Benchmark,
    results: Mapping[str, Results],
    judge: Callable[[], Chat | None],
) -> Selection:
    """Rank agents by how often their results, given by agent, agree with the vote."""
    asked = [item.asked for item in benchmark.items]
    # if everything failed, everybody would agree on nothing
    rows = [row for answers in results.values() for row in answers.values()]
    if asked and all(row.failed for row in rows):
        first = results[library[0].name][asked[0].id]
        raise RunError(f"no agent could answer anything; the first error: {first.error}")
    agreements = agreement(votes_of(asked, results, judge))
    videos = [one.video for one in asked]
    ranking = []
    for member in library:
        agrees = agreements[member.name]
        answers = [results[member.name][one.id] for one in asked]
        ranking.append(Ranked(member, agrees, accuracy(agrees, videos), answers))
    # the sort is stable: ties go to the agent that the library lists first
    ranking.sort(key=lambda ranked: -sum(ranked.agrees))
    return Selection(ranking, videos)


def solver_of(member: Member, session: Session) -> Solver:
    """A solver with one agent, through perception and action."""
    assignment = replace(session.assignment, roster=(member,))
    # votes are compared, not shown: their citations need no check
    unchecked = replace(session.settings, answers=AnswerSettings(verify=False))
    alone = replace(session, assignment=assignment, settings=unchecked)
    return Solver(METHOD, alone.with_fields(METHOD, ALONE))


def votes_of(
    asked: Sequence[BenchmarkQuestion],
    results: Mapping[str, Results],
    judge: Callable[[], Chat | None],
) -> dict[str, list[str | None]]:
    """Each agent's vote on each question; a judge compares open answers by meaning."""
    # opening the judge can fail, so it is opened only if there is something to judge
    open_questions = any(not one.question.options for one in asked)
    chat = judge() if open_questions else None
    votes: dict[str, list[str | None]] = {name: [] for name in results}
    for one in asked:
        opinions = []
        for name, answers in results.items():
            row = answers[one.id]
            opinions.append(Opinion(name, row.choice, row.text))
        if chat is not None and not one.question.options:
            opinions = by_meaning(chat, one.question, opinions)
        for opinion in opinions:
            votes[opinion.agent].append(opinion.vote)
    return votes


def judge_of(library: Sequence[Member], benchmark: Benchmark, session: Session) -> Chat | None:
    """The model of the library's first agent, which decides whether open answers mean the same.

    It has no budget: the session's budget is for a single question.
    """
    assignment = replace(session.assignment, roster=tuple(library[:1]))
    settings = replace(session.settings, budget=BudgetSettings())
    judging = replace(session, assignment=assignment, settings=settings)
    run = judging.run(judging.method(METHOD), _first_footage(benchmark))
    return run.team[0].chat


def _first_footage(benchmark: Benchmark) -> Footage:
    return benchmark.source.footage(benchmark.items[0].asked.video)


def pseudo_labels(votes: Sequence[str | None]) -> frozenset[str]:
    """Return the majority answers to one question: several if they tie, none if nobody votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    highest = max(counts.values(), default=0)
    return frozenset(vote for vote, count in counts.items() if count == highest)


def agreement(votes: Mapping[str, Sequence[str | None]]) -> dict[str, list[bool]]:
    """LVAgent, equation 1, before the mean: ``[A_i(Q, T, O, V) = L_v]`` per voter and question.

    ``Acc(A_i)`` is the mean of a voter's row. A missing vote agrees with nothing.
    """
    labels = [pseudo_labels(given) for given in zip(*votes.values(), strict=True)]
    agreed: dict[str, list[bool]] = {}
    for name, given in votes.items():
        # labels never contain None, so a missing vote is in none of them
        agreed[name] = [vote in majority for vote, majority in zip(given, labels, strict=True)]
    return agreed
