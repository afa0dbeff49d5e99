"""Lookup: search what a film says and shows before looking at pictures. Ours, from no paper.

::

    1  stretch ← the part of the film that the question names, else all of it
    2  queries ← the question, its options, and a few rephrasings
    3  lines ← everything said, shown and described in the stretch
    4  rank the lines for each query by shared words and by meaning; fuse the rankings
    5  nothing bears on the question: say so (an abstention), without asking for an answer
    6  passages ← the best lines with their neighbours
    7  answer from the passages in one prompt, naming the passages used
    8  none named: say so; otherwise cite those

It sees no pictures, so it costs one short prompt and suits small models that only read. Questions
about what is visible but neither said nor written are left to methods that look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from longtake.algorithms import passages as ranking
from longtake.algorithms.scope import scope
from longtake.errors import check_least
from longtake.events import note, step
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.models.replies.forms import Letter
from longtake.steps.ask import ask
from longtake.steps.run import Run
from longtake.steps.showing import length
from longtake.timecode import clock
from longtake.types import Answer, Evidence, Line, Question, Segment

NOT_FOUND = "not found in what can be heard or read; a method that looks at pictures may find it"
WORDS_BEAR, MEANING_BEARS = 1.5, 0.35
"""A line bears on the question if it shares words of this weight (a single rare word, or two common
ones) or is this close in meaning."""


class Phrases(BaseModel):
    """Other words for a question."""

    queries: list[str] = Field(description="search phrases of two to five words")


class Choice(BaseModel):
    """A letter, and the passages it rests on."""

    passages: list[int] = Field(description="numbers of the passages that hold the answer")
    choice: Letter = None


class Words(BaseModel):
    """An answer in words, and the passages it rests on."""

    passages: list[int] = Field(description="numbers of the passages that hold the answer")
    answer: str = Field("", description="at most 25 words; quote the passages where possible")


@dataclass(frozen=True)
class Passage:
    """Neighbouring lines from one source."""

    source: str
    lines: tuple[Line, ...]

    @property
    def segment(self) -> Segment:
        """From the first line to the last."""
        return Segment(self.lines[0].segment.start, max(line.segment.end for line in self.lines))

    @property
    def text(self) -> str:
        """The lines in a row."""
        return " ".join(line.text for line in self.lines)


@dataclass(frozen=True)
class Lookup:
    """Answers from what is said and written in the film, or says that it is not there."""

    name: ClassVar[str] = "lookup"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    max_lines: int = 8
    """Lines that are found, before their neighbours."""
    neighbours: int = 1
    """Lines on either side of a found one."""
    rephrasings: int = 0
    """Search phrases that the model adds; each costs time and helps where films use other words."""
    max_lines_read: int = 2000
    """Lines whose meaning is compared; of more, those that share most words with the question."""

    def __post_init__(self) -> None:
        check_least(self, self.name, max_lines=1, neighbours=0, rephrasings=0, max_lines_read=1)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Search, then answer from what was found."""
        stretch = scope(question.text, footage.duration)  # 1
        with step("search"):
            queries = [question.text, *question.options, *self.rephrase(question, run)]  # 2
            lines = everything(footage, stretch)  # 3
            found = self.search(footage, queries, lines)  # 4
        note("looked_up", lines=len(lines), passages=len(found), stretch=_told(stretch))
        if not found:  # 5
            return not_found()
        with step("answer"):
            return self.conclude(footage, question, found, run)

    def rephrase(self, question: Question, run: Run) -> list[str]:
        """Other words for the question; none if the model's reply cannot be read."""
        if self.rephrasings == 0:
            return []
        said = ask(
            run["llm"],
            "lookup/rephrase",
            Phrases,
            default=Phrases(queries=[]),
            question=question,
            count=self.rephrasings,
        )
        return said.queries[: self.rephrasings]

    def search(
        self, footage: Footage, queries: Sequence[str], lines: Sequence[tuple[str, Line]]
    ) -> list[Passage]:
        """The passages that bear on the queries, in time order."""
        if not lines:
            return []
        texts = [line.text for _, line in lines]
        by_words = ranking.by_words(queries, texts)
        kept = np.argsort(-by_words.max(axis=0), kind="stable")[: self.max_lines_read]
        by_meaning = np.full(by_words.shape, -1.0)
        rows = footage.meanings([*queries, *(texts[number] for number in kept)])
        by_meaning[:, kept] = rows[: len(queries)] @ rows[len(queries) :].T
        most_words, closest = by_words.max(axis=0), by_meaning.max(axis=0)
        bearing = set(np.flatnonzero((most_words >= WORDS_BEAR) | (closest >= MEANING_BEARS)))
        best = ranking.best_lines(by_words, by_meaning, len(lines))
        chosen = [number for number, _ in best if number in bearing][: self.max_lines]
        runs = ranking.with_neighbours(chosen, [line for _, line in lines], self.neighbours)  # 6
        found = [passage for run in runs for passage in _by_source([lines[n] for n in run])]
        return sorted(found, key=lambda passage: passage.segment)

    def conclude(
        self, footage: Footage, question: Question, found: Sequence[Passage], run: Run
    ) -> Answer:
        """The answer from the passages; an abstention if the model names none."""
        kind = Choice if question.options else Words
        said = ask(
            run["llm"],
            "lookup/answer",
            kind,
            default=None,
            question=question,
            length=length(footage),
            passages=[
                f"{number}. [{clock(each.segment.start)}] {each.source}: {each.text}"
                for number, each in enumerate(found, start=1)
            ],
        )  # 7
        if said is None:
            return Answer(status="abstained")
        named = [found[n - 1] for n in dict.fromkeys(said.passages) if 1 <= n <= len(found)]
        choice = said.choice if isinstance(said, Choice) else None
        text = said.answer.strip() if isinstance(said, Words) else ""
        if not named or not (choice or text):  # 8
            return not_found()
        evidence = [Evidence(each.segment, each.source, each.text) for each in named]
        return Answer(choice, text, evidence=tuple(evidence))

    def bounds(self, duration: float, question: Question) -> Bounds:  # noqa: ARG002
        """One prompt with the passages, and one for rephrasings."""
        asked = words([question.text, *question.options])
        lines = self.max_lines * (2 * self.neighbours + 1)
        calls = 1 + (self.rephrasings > 0)
        return Bounds(
            calls=calls,
            frames=0,
            prompt_words=calls * (asked + 120) + lines * 40,
            reply_words=calls * 60,
            steps=calls,
        )


def everything(footage: Footage, stretch: Segment | None) -> list[tuple[str, Line]]:
    """All lines of a stretch with their source; speech and text are recognised now if need be."""
    if "captions" in footage.has:
        times = [t for t in footage.times.tolist() if stretch is None or t in stretch]
        captions = zip(times, footage.captions(times), strict=True)
        return [("caption", Line(Segment(time, time + 1), text)) for time, text in captions]
    spoken = [("speech", line) for line in footage.speech(stretch)]
    shown = [("onscreen", line) for line in footage.onscreen(stretch)]
    return spoken + shown


def not_found() -> Answer:
    """The film does not say it."""
    return Answer(reason=NOT_FOUND, status="abstained")


def _by_source(lines: Sequence[tuple[str, Line]]) -> list[Passage]:
    """Neighbouring lines as passages; speech and on-screen text never share one."""
    passages: list[Passage] = []
    for source, line in lines:
        if passages and passages[-1].source == source:
            passages[-1] = Passage(source, (*passages[-1].lines, line))
        else:
            passages.append(Passage(source, (line,)))
    return passages


def _told(stretch: Segment | None) -> str:
    return "" if stretch is None else f"{clock(stretch.start)} to {clock(stretch.end)}"
