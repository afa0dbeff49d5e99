"""The stage ``search`` of ``auto``, and the preparation of what earlier stages noted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtake._util.timecode import CLOCK, parse_time
from longtake.agents.answer import guess, shown_to
from longtake.agents.run import Run
from longtake.errors import check_least
from longtake.footage.look import Look, look_at
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.prompts import phrase
from longtake.types import Answer, Evidence, Line, Question, Segment


@dataclass(frozen=True)
class SearchStage:
    """The moments and lines closest to the question and to each of its options, in one call."""

    name: ClassVar[str] = "search"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("vlm",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    needs_index: ClassVar[bool] = True

    frames: int = 64
    """Moments shown, at most."""
    apart: float = 4.0
    """Seconds between two of them, at least; fewer in films too short for that many moments."""
    lines: int = 6
    """Lines that are said or written, at most."""

    def __post_init__(self) -> None:
        check_least(self, self.name, apart=0.0, lines=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """One search, one look, one answer."""
        queries = queries_of(question)
        # a short film has not room for as many moments so far apart
        apart = min(self.apart, footage.duration / self.frames)
        look = look_at(footage, closest_moments(footage, queries, self.frames, apart))
        known = [line for lines in footage.known_lines() for line in lines]
        closest = [known[number] for number in closest_lines(footage, queries, known, self.lines)]
        lines = sorted(closest, key=lambda line: line.segment) or phrase("auto", "no_lines")
        answer = guess(run["vlm"], "auto/search", question, lines=lines, **shown_to(footage, look))
        return answer.as_answer(evidence=_shown(look))

    def bounds(self, duration: float, question: Question) -> Bounds:  # noqa: ARG002
        """One call."""
        question_words = words([question.text, *question.options])
        prompt_words = question_words + 120 + 20 * self.lines
        return Bounds(
            calls=1, frames=self.frames, prompt_words=prompt_words, reply_words=120, steps=1
        )


def closest_moments(
    footage: Footage, queries: Sequence[str], max_moments: int, apart: float
) -> list[int]:
    """Rows of the grid, in order: the queries take turns, each with its closest free moment."""
    cosines = footage.encode(queries) @ footage.embeddings().T
    times = footage.times
    free = np.ones(len(times), np.bool_)
    chosen: list[int] = []
    while free.any():
        for row_of_query in cosines:
            if len(chosen) == max_moments or not free.any():
                return sorted(chosen)
            best = int(np.where(free, row_of_query, -np.inf).argmax())
            chosen.append(best)
            # neighbours show the same; what lies farther away may show something else
            free &= np.abs(times - times[best]) >= apart
            free[best] = False
    return sorted(chosen)


def closest_lines(
    footage: Footage, queries: Sequence[str], lines: Sequence[Line], max_lines: int
) -> list[int]:
    """The numbers of the lines closest in meaning to the queries.

    The queries, a question with each of its options, take turns: no option is judged without its
    evidence.
    """
    if len(lines) <= max_lines:
        return list(range(len(lines)))
    rows = footage.meanings([*queries, *(line.text for line in lines)])
    return in_turns(rows[: len(queries)] @ rows[len(queries) :].T, max_lines)


def queries_of(question: Question) -> list[str]:
    """The question, alone and with each of its options."""
    return [question.text, *(f"{question.text} {option}" for option in question.options)]


def in_turns(closeness: NDArray[np.floating], max_columns: int) -> list[int]:
    """Columns of a table, best first, in which the rows take turns; each column once."""
    # column k of the ranks holds the k-th choice of every row
    ranks = (-closeness).argsort(axis=1, kind="stable")
    chosen: dict[int, None] = {}
    for column in ranks.T.tolist():
        chosen.update(dict.fromkeys(column))
        if len(chosen) >= max_columns:
            break
    return list(chosen)[:max_columns]


def _shown(look: Look) -> list[Evidence]:
    """What was shown, as evidence to be checked."""
    frames = [Evidence(Segment(each.time, each.time), "frame") for each in look.frames]
    return frames + [Evidence(each.segment, "caption", each.text) for each in look.captions]


_CLOCK = re.compile(rf"\[?\b({CLOCK})\b\]?:?\s*")

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\[])")


def split(line: Line) -> list[Line]:
    """A note in single statements, each at the last time that was named before it."""
    lines = []
    moment = line.segment
    for sentence in _SENTENCE.split(line.text):
        begin = 0
        for named in _CLOCK.finditer(sentence):
            lines += _told(moment, sentence[begin : named.start()])
            time = parse_time(named.group(1))
            moment, begin = Segment(time, time), named.end()
        lines += _told(moment, sentence[begin:])
    return lines


def _told(moment: Segment, text: str) -> list[Line]:
    words = text.strip(" -–,;")
    return [Line(moment, words)] if any(letter.isalpha() for letter in words) else []


def merged(lines: Iterable[Line]) -> list[Line]:
    """Lines in time order, without those that repeat what was noted shortly before."""
    kept: list[Line] = []
    latest: dict[str, float] = {}
    for line in sorted(lines, key=lambda line: line.segment):
        before = latest.get(line.text)
        latest[line.text] = line.segment.start
        # the same words a moment later are the same event
        if before is None or line.segment.start - before > 8.0:
            kept.append(line)
    return kept
