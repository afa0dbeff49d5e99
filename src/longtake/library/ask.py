"""Questions to a library: candidates by search, a model's choice, one film after another.

For a question with options, a film is ranked by its best option: the share of the words of question
and option that the film states. Shares can be compared between searches. This ranking is fused with
that of the search for the question alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import TypeVar

from pydantic import BaseModel, Field

from longtake._util.cancellation import Stop
from longtake._util.timecode import clock
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, LongtakeError, MediaError
from longtake.library.catalog import Entry
from longtake.library.collection import Library
from longtake.library.overview import known_overview
from longtake.library.search import SHARP, FilmHits, FoundMoment, LibrarySearchResult, ranked
from longtake.llm.budget import Ledger
from longtake.llm.structured.ask import ask
from longtake.retrieval.question_kinds import asks_for_every, asks_for_words, may_ask_for_every
from longtake.runner.session import Session
from longtake.tracing.events import Sink, note, step
from longtake.types import Answer, Evidence, Question, Result, Status, Usage

PASSAGES = 3
"""Moments of each film that are shown to the model that chooses films."""
TRIES = 3
"""Maximum number of films that are asked for a single answer."""


class FilmChoice(BaseModel):
    """The films that a model wants to watch."""

    films: list[int] = Field(description="numbers of films, most likely first")
    every: bool = Field(False, description="whether every occurrence or a count is asked for")


class MergedAnswer(BaseModel):
    """One answer from several films."""

    films: list[int] = Field(description="numbers of the films that the answer rests on")
    answer: str = Field("", description="at most 60 words")


@dataclass(frozen=True)
class FilmCitation:
    """Evidence, and the film it is in."""

    film: Entry
    evidence: Evidence

    def __str__(self) -> str:
        return f"{self.film.name} @ {clock(self.evidence.segment.start)}"


@dataclass(frozen=True)
class FilmAnswer:
    """The result of a method for one film."""

    film: Entry
    result: Result

    @property
    def answer(self) -> Answer:
        """The answer itself."""
        return self.result.answer


@dataclass(frozen=True)
class LibraryAnswer:
    """The answer of a library; the status ``abstained`` means "in no film"."""

    answer: Answer
    cited: tuple[FilmCitation, ...] = ()
    films: tuple[FilmAnswer, ...] = ()
    """The films that were asked, in order."""
    candidates: int = 0
    """Number of films that the search proposed."""
    searched: int = 0
    """Number of films in the library that match the filter."""
    every: bool = False
    """Whether the question asks for every occurrence."""
    usage: Usage = field(default_factory=Usage)


def ask_library(
    library: Library,
    session: Session,
    question: Question,
    method: str,
    *,
    where: str = "",
    among: Collection[str] | None = None,
    tries: int = TRIES,
    sinks: Sequence[Sink] = (),
    stop: Stop | None = None,
) -> LibraryAnswer:
    """Answer a question from all films, or from those of ``among``.

    ``stop.set()``, from any thread, ends it with the best answer so far.
    """
    with session.under_way(*sinks):
        return _Asking(library, session, question, method, where, among, tries, stop).run()


@dataclass
class _Asking:
    library: Library
    session: Session
    question: Question
    method: str
    where: str
    among: Collection[str] | None
    tries: int
    stop: Stop | None
    spent: Usage = field(default_factory=Usage)
    answers: list[FilmAnswer] = field(default_factory=list)
    ended: Status | None = None
    """What ended the search before all films were asked, if so."""

    def __post_init__(self) -> None:
        self.clock = Ledger(self.session.settings.budget)
        self.every = asks_for_every(self.question)

    def run(self) -> LibraryAnswer:
        with step("search"):
            result = self.candidates()  # 1
        note("candidates", films=[hits.entry.name for hits in result.films])
        if not result.films:
            return self.conclude(result)
        with step("choose"):
            chosen = self.choose(result)  # 2
        for entry in chosen:
            if self.ended or self.asked(entry):  # 3, 4
                break
        return self.conclude(result)

    def candidates(self) -> LibrarySearchResult:
        """The films that the search proposes."""
        # a model chooses among 12; a question for every occurrence is put to more
        max_films = 50 if self.every else 12

        def search(text: str) -> LibrarySearchResult:
            return self.library.search(
                text, where=self.where, films=max_films, moments=PASSAGES, among=self.among
            )

        words = asks_for_words(self.question) or self.question.text
        return candidates(search, replace(self.question, text=words), max_films)

    def choose(self, result: LibrarySearchResult) -> list[Entry]:
        """The films to ask, in order: those that a model chooses, then by search."""
        by_search = [hits.entry for hits in result.films]
        if self.every:
            return by_search
        run = self.remaining().reader(stop=self.stop)
        described = [
            _described(self.library, hits, number) for number, hits in enumerate(result.films, 1)
        ]
        try:
            choice = ask(
                run["llm"],
                "library/choose",
                FilmChoice,
                default=None,
                question=self.question,
                films=described,
                most=self.tries,
            )
        except BudgetSpent:
            self.ended = "budget_spent"
            choice = None
        self.spent += run.usage
        if choice is None:
            return by_search[: self.tries]
        # small models often say "every" wrongly, which would cost a look at all films
        self.every = choice.every and may_ask_for_every(self.question.text)
        if self.every:
            return by_search
        named = [by_search[n - 1] for n in dict.fromkeys(choice.films) if 1 <= n <= len(by_search)]
        # the model may be wrong, so the best films by search follow
        rest = [entry for entry in by_search if entry not in named]
        return [*named, *rest][: self.tries]

    def asked(self, entry: Entry) -> bool:
        """Ask one film; return whether no other has to be asked."""
        try:
            footage = self.library.footage(entry)
            session = self.remaining()
            with step("film", film=entry.name):
                result = session.answer(self.method, footage, self.question, stop=self.stop)
        except MediaError as error:
            # moved or deleted since it was added
            note("film_left_out", film=entry.name, why=str(error))
            return False
        except BudgetSpent:
            self.ended = "budget_spent"
            return True
        self.spent += result.usage
        self.answers.append(FilmAnswer(entry, result))
        status = result.answer.status
        if status in ("budget_spent", "cancelled"):
            self.ended = status
        return status == "answered" and not self.every

    def remaining(self) -> Session:
        """The session with the rest of the budget; raises if nothing is left."""
        limits, spent = self.session.settings.budget, self.spent
        left = BudgetSettings(
            cost=_left("cost", limits.cost, spent.cost or 0.0),
            tokens=_left("tokens", limits.tokens, spent.tokens_in + spent.tokens_out),
            frames=_left("frames", limits.frames, spent.frames),
            seconds=self.clock.remaining_seconds(),
            calls=_left("calls", limits.calls, spent.calls),
        )
        return replace(self.session, settings=replace(self.session.settings, budget=left))

    def conclude(self, result: LibrarySearchResult) -> LibraryAnswer:
        """Combine the answers of the films."""
        settled = [each for each in self.answers if each.answer.status == "answered"]
        if self.every and len(settled) > 1:
            answer, films = self.merge(settled)
        elif settled:
            answer, films = settled[0].answer, settled[:1]
        elif self.ended and self.answers:
            last = self.answers[-1]
            answer, films = replace(last.answer, status=self.ended), [last]
        else:
            answer, films = self.nothing(result), []
        cited = [FilmCitation(each.film, item) for each in films for item in each.answer.evidence]
        return LibraryAnswer(
            answer,
            tuple(cited),
            tuple(self.answers),
            len(result.films),
            result.searched,
            self.every,
            replace(self.spent, seconds=round(self.clock.elapsed(), 3)),
        )

    def nothing(self, result: LibrarySearchResult) -> Answer:
        """The answer if no film has one, with an option that the likeliest film suggests."""
        looked = len(self.answers)
        reason = f"in no film: {result.searched} searched, {looked} looked at"
        doubtful = [each.answer for each in self.answers if each.answer.status == "unsupported"]
        if self.question.options and doubtful:
            # an unsupported option is better than none, and its status says so
            return replace(doubtful[0], reason=reason, evidence=())
        return Answer(reason=reason, status=self.ended or "abstained")

    def merge(self, settled: Sequence[FilmAnswer]) -> tuple[Answer, list[FilmAnswer]]:
        """One answer from several films; without a model's reply, their answers in a row."""
        told = [f"{each.film.name}: {each.answer.text}" for each in settled]
        plain = Answer(text="; ".join(told))
        if asks_for_words(self.question):
            # each occurrence is a citation, so no model is needed to count them
            found = sum(len(each.answer.evidence) for each in settled)
            counted = f"{found} times in {len(settled)} films. {plain.text}"
            return replace(plain, text=counted), list(settled)
        try:
            run = self.remaining().reader(stop=self.stop)
            merged = ask(
                run["llm"],
                "library/merge",
                MergedAnswer,
                default=None,
                question=self.question,
                answers=[f"{number}. {text}" for number, text in enumerate(told, start=1)],
            )
        except LongtakeError as error:
            note("not_merged", why=str(error))
            return plain, list(settled)
        self.spent += run.usage
        if merged is None or not merged.answer.strip():
            return plain, list(settled)
        named = [settled[n - 1] for n in dict.fromkeys(merged.films) if 1 <= n <= len(settled)]
        return Answer(text=merged.answer.strip()), named or list(settled)


def _described(library: Library, hits: FilmHits, number: int) -> str:
    """A film in one line: its facts, its summary, and the moments that were found."""
    entry = hits.entry
    facts = [entry.date, entry.place, *(f"#{tag}" for tag in entry.tags)]
    about = f" ({', '.join(fact for fact in facts if fact)})" if any(facts) else ""
    overview = known_overview(library, entry)
    summary = "" if overview is None else "".join(f" {each.text}" for each in overview.summary)
    passages = [f"[{clock(m.time)}] {m.text}" for m in hits.moments if m.text]
    quoted = f" {' '.join(passages)}" if passages else ""
    return f"{number}. {entry.name}{about}:{summary}{quoted}"


Amount = TypeVar("Amount", int, float)


def _left(name: str, limit: Amount | None, spent: Amount) -> Amount | None:
    """What is left of a limit; raises if that is nothing."""
    if limit is None:
        return None
    if limit <= spent:
        raise BudgetSpent(name, f"{spent:g} of {limit:g}")
    return limit - spent


Search = Callable[[str], LibrarySearchResult]


def candidates(search: Search, question: Question, max_films: int) -> LibrarySearchResult:
    """The likeliest films, best first, with the moments that were found."""
    plain = search(question.text)
    if not question.options:
        return plain
    best: dict[str, FilmHits] = {}
    for option in question.options:
        for hits in search(f"{question.text} {option}").films:
            known = best.get(hits.entry.fingerprint)
            if known is None or hits.stated > known.stated:
                best[hits.entry.fingerprint] = hits
    return replace(plain, films=_fused(plain.films, list(best.values()))[:max_films])


def _fused(plain: Sequence[FilmHits], with_option: Sequence[FilmHits]) -> list[FilmHits]:
    """Fuse two rankings of films by reciprocal rank."""
    films = {hits.entry.fingerprint: hits for hits in [*with_option, *plain]}
    scores = dict.fromkeys(films, 0.0)
    for rank, hits in enumerate(plain, start=1):
        scores[hits.entry.fingerprint] += 1 / (SHARP + rank)
    ranks = ranked([hits.stated for hits in with_option])
    for hits, rank in zip(with_option, ranks, strict=True):
        film = hits.entry.fingerprint
        scores[film] += 1 / (SHARP + rank)
        if films[film] is not hits:
            moments = _alternating(films[film].moments, hits.moments)
            films[film] = replace(films[film], moments=tuple(moments))
    order = sorted(films, key=lambda film: -scores[film])
    return [films[film] for film in order]


def _alternating(one: Iterable[FoundMoment], other: Iterable[FoundMoment]) -> list[FoundMoment]:
    """The best moments of two lists, taken alternately and without duplicates."""
    in_turn = chain.from_iterable(zip_longest(one, other))
    distinct = {moment.segment: moment for moment in in_turn if moment is not None}
    return list(distinct.values())[:PASSAGES]
