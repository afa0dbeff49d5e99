"""The stage ``search``: what an index finds for the question, shown in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtake.errors import check_least
from longtake.footage.look import Look, look_at
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.prompts import phrase
from longtake.steps.answer import guess
from longtake.steps.run import Run
from longtake.steps.showing import shown_to
from longtake.types import Answer, Evidence, Line, Question, Segment


@dataclass(frozen=True)
class Search:
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
        check_least(self, self.name, frames=1, apart=0.0, lines=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """One search, one look, one answer."""
        queries = [question.text, *(f"{question.text} {option}" for option in question.options)]
        apart = min(self.apart, footage.duration / self.frames)
        look = look_at(footage, closest_moments(footage, queries, self.frames, apart))
        lines = closest_lines(footage, queries, self.lines) or phrase("auto", "no_lines")
        said = guess(run["vlm"], "auto/search", question, lines=lines, **shown_to(footage, look))
        return said.as_answer(evidence=_shown(look))

    def bounds(self, duration: float, question: Question) -> Bounds:  # noqa: ARG002
        """One call."""
        asked = words([question.text, *question.options])
        prompt_words = asked + 120 + 20 * self.lines
        return Bounds(
            calls=1, frames=self.frames, prompt_words=prompt_words, reply_words=120, steps=1
        )


def closest_moments(footage: Footage, queries: Sequence[str], most: int, apart: float) -> list[int]:
    """Rows of the grid, in order: the queries take turns, each with its closest free moment."""
    cosines = footage.encode(queries) @ footage.embeddings().T
    times = footage.times
    free = np.ones(len(times), np.bool_)
    chosen: list[int] = []
    while free.any():
        for row_of_query in cosines:
            if len(chosen) == most or not free.any():
                return sorted(chosen)
            best = int(np.where(free, row_of_query, -np.inf).argmax())
            chosen.append(best)
            free &= np.abs(times - times[best]) >= apart
            free[best] = False
    return sorted(chosen)


def closest_lines(footage: Footage, queries: Sequence[str], most: int) -> list[Line]:
    """Lines in time order: the queries take turns, each with its closest line."""
    lines = [line for known in footage.known_lines() for line in known]
    if len(lines) > most:
        rows = footage.meanings([*queries, *(line.text for line in lines)])
        closeness = rows[: len(queries)] @ rows[len(queries) :].T
        lines = [lines[number] for number in in_turns(closeness, most)]
    return sorted(lines, key=lambda line: line.segment)


def in_turns(closeness: NDArray[np.floating], most: int) -> list[int]:
    """Columns of a table, best first, in which the rows take turns; each column once."""
    ranks = (-closeness).argsort(axis=1, kind="stable")
    chosen: dict[int, None] = {}
    for column in ranks.T.tolist():
        chosen.update(dict.fromkeys(column))
        if len(chosen) >= most:
            break
    return list(chosen)[:most]


def _shown(look: Look) -> list[Evidence]:
    """What was shown, as evidence to be checked."""
    frames = [Evidence(Segment(each.time, each.time), "frame") for each in look.frames]
    return frames + [Evidence(each.segment, "caption", each.text) for each in look.captions]
