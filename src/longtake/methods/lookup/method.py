"""Lookup: search what a film says and shows before looking at pictures. Ours, from no paper.

::

    1  stretch ← the part of the film that the question names, else all of it
    2  queries ← the question, its options, and a few rephrasings
    3  passages ← everything said, shown and described in the stretch
    4  rank the passages by meaning and by the words that they share with a query
    5  nothing bears on the question, or holds the kind of thing that it asks for: say so
       (an abstention), without asking a model
    6  answer from the best passages and their neighbours, in one short prompt, the best one last
    7  not told: say so
    8  cite the passages that hold the words of the answer; an answer that none holds is not given

It sees no pictures, so it costs one short prompt and suits small models that only read. Questions
about what is visible but neither said nor written are left to methods that look. A chosen option
that no passage holds is left to the check that follows every method.

The model is neither asked what it thinks of its answer nor offered to say that the passages do not
tell it: a small one takes that way out of passages that plainly do, and its verdicts change with
the wording of the request. The words of the passages decide, and no confidence is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from longtake.algorithms.expected import CERTAIN, Kind, expected, holds
from longtake.algorithms.scope import scope
from longtake.errors import check_least
from longtake.events import note, step
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.methods.lookup.reading import Passage, read
from longtake.methods.lookup.searching import (
    adds_nothing,
    bearing,
    choose,
    excerpt,
    holding,
    promise,
)
from longtake.steps.answer import Choice, option
from longtake.steps.ask import ask
from longtake.steps.run import Run
from longtake.steps.showing import length
from longtake.timecode import clock
from longtake.types import Answer, Evidence, Question, Segment

NOT_FOUND = (
    "not found in what can be heard or read; the pictures may tell: ask a method that looks, with a"
    " model that sees (--method videoagent --model vlm=NAME)"
)
ANSWER_TOKENS = 100
"""Tokens of a reply in a sentence."""
_NOT_TOLD = re.compile(r"\bnot\s+(?:told|mentioned|stated|specified|given|said)\b", re.IGNORECASE)


class Phrases(BaseModel):
    """Other words for a question."""

    queries: list[str] = Field(description="search phrases of two to five words")


@dataclass(frozen=True)
class Lookup:
    """Answers from what is said and written in the film, or says that it is not there."""

    name: ClassVar[str] = "lookup"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    checks_itself: ClassVar[bool] = True
    """Where it cites passages, they hold the words of the answer (8)."""
    needs_index: ClassVar[bool] = True

    max_passages: int = 4
    """Passages that are found, before their neighbours."""
    passages_for_options: int | None = None
    """The same for a question with options; unset: ``max_passages``."""
    neighbours: int = 1
    """Passages on either side of a found one."""
    rephrasings: int = 0
    """Search phrases that the model adds; each costs time and helps where films use other words."""
    max_passages_read: int = 2000
    """Passages whose meaning is compared; if there are more, those that share the most words."""
    max_citations: int = 3
    """Passages cited for an answer, at most."""

    def __post_init__(self) -> None:
        check_least(
            self,
            self.name,
            max_passages=1,
            neighbours=0,
            rephrasings=0,
            max_passages_read=1,
            max_citations=1,
        )
        if self.passages_for_options is not None:
            check_least(self, self.name, passages_for_options=1)

    def most_passages(self, question: Question) -> int:
        """Passages that are found for a question, at most."""
        if question.options and self.passages_for_options is not None:
            return self.passages_for_options
        return self.max_passages

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Search, then answer from what was found."""
        stretch = scope(question.text, footage.duration)  # 1
        with step("search"):
            queries = [question.text, *question.options, *self.rephrase(question, run)]  # 2
            passages = read(footage, stretch)  # 3
            found = self.search(footage, question, queries, passages)  # 4
        note("looked_up", lines=len(passages), passages=len(found), stretch=_told(stretch))
        if not found or not may_tell(question, [passage.text for passage in found]):  # 5
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
        self,
        footage: Footage,
        question: Question,
        queries: Sequence[str],
        passages: Sequence[Passage],
    ) -> list[Passage]:
        """The passages that bear on the queries, with neighbours, in time order."""
        if not passages:
            return []
        kind, most = asked_for(question), self.most_passages(question)
        scores = bearing(footage, queries, passages, self.max_passages_read)
        numbers = choose(scores, passages, most, self.neighbours, kind)
        promising = promise(scores, passages, kind)
        found = []
        for number in numbers:
            passage = excerpt(footage, queries[0], passages[number])
            found.append(replace(passage, bearing=float(promising[number])))
        return found

    def conclude(
        self, footage: Footage, question: Question, found: Sequence[Passage], run: Run
    ) -> Answer:
        """The answer from the passages, or an abstention."""
        slots: dict[str, Any] = {
            "question": question,
            "length": length(footage),
            # a small model reads best what stands right above the question
            "passages": numbered(sorted(found, key=lambda passage: passage.bearing)),
        }
        choice, text = self.propose(question, slots, run)  # 6
        if choice is None and (not text or _NOT_TOLD.search(text)):
            return not_found()  # 7
        holders = holding(text or option(question, choice), question.text, found)  # 8
        if not question.options and not holders:
            note("not_held", answer=text)
            return not_found()
        if text and adds_nothing(text, question.text):
            text = holders[0][0].text  # the line itself says more
        if text and not may_tell(question, [text]):
            note("not_what_was_asked", answer=text)
            return not_found()
        evidence = [cite(passage, share) for passage, share in holders[: self.max_citations]]
        return Answer(choice, text, evidence=tuple(evidence))

    def propose(
        self, question: Question, slots: Mapping[str, Any], run: Run
    ) -> tuple[str | None, str]:
        """The letter of an option, or an answer in words; neither if no reply can be read."""
        if question.options:
            chosen = ask(run["llm"], "lookup/choose", Choice, default=Choice(), **slots)
            return chosen.choice, ""
        # plain words: a form would only cost a small model tokens
        said = ask(run["llm"], "lookup/answer", default="", max_tokens=ANSWER_TOKENS, **slots)
        return None, said

    def bounds(self, duration: float, question: Question) -> Bounds:  # noqa: ARG002
        """A prompt with the passages, and one for rephrasings."""
        asked = words([question.text, *question.options])
        lines = self.most_passages(question) * (2 * self.neighbours + 1)
        calls = 1 + (self.rephrasings > 0)
        return Bounds(
            calls=calls,
            frames=0,
            prompt_words=calls * (asked + 120) + lines * 40,
            reply_words=calls * 60,
            steps=calls,
        )


def numbered(passages: Sequence[Passage]) -> list[str]:
    """Passages as the model reads them: ``2. [00:01:05] onscreen: ALL RIGHTS RESERVED.``"""
    return [
        f"{number}. [{clock(each.segment.start)}] {each.source}: {each.text}"
        for number, each in enumerate(passages, start=1)
    ]


def may_tell(question: Question, texts: Sequence[str]) -> bool:
    """Whether some text holds the kind of thing that the question asks for, where that is sure."""
    kind = asked_for(question)
    if kind not in CERTAIN:
        return True
    return any(holds(kind, text) for text in texts)


def asked_for(question: Question) -> Kind | None:
    """The kind of thing that an open question asks for; options tell more than their kind."""
    return None if question.options else expected(question.text)


def cite(passage: Passage, share: float) -> Evidence:
    """A passage as evidence."""
    return Evidence(passage.segment, passage.source, passage.text, round(share, 4))


def not_found() -> Answer:
    """The film does not say it."""
    return Answer(reason=NOT_FOUND, status="abstained")


def _told(stretch: Segment | None) -> str:
    return "" if stretch is None else f"{clock(stretch.start)} to {clock(stretch.end)}"
