"""The baselines of every comparison: frames in one call, evenly spaced or found by search, and the
question alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtake.agents.answer import guess, length, shown_to
from longtake.agents.run import Run
from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.footage.look import captioned, look_at
from longtake.footage.protocol import Footage
from longtake.prompts import phrase
from longtake.types import Answer, Evidence, Frame, Line, Question, Segment

REACH = 5.0
"""Lines spoken within this many seconds of a frame are shown with it."""


@dataclass(frozen=True)
class Uniform:
    """Evenly spaced frames, shown in one call.

    For footage made of captions, the captions at those moments are shown instead.
    """

    name: ClassVar[str] = "uniform"
    paper: ClassVar[str] = "baseline of VideoAgent, LVAgent and VideoDetective"
    roles: ClassVar[tuple[str, ...]] = ("vlm",)
    presets: ClassVar[dict[str, dict[str, object]]] = {"small": {"frames": 8}}

    frames: int = 32
    """Frames shown."""
    subtitles: bool = False
    """Also show the lines spoken around the frames."""
    reason: bool = True
    """Ask for the reason before the answer; off: for the answer alone, as many benchmarks do."""

    def __post_init__(self) -> None:
        check_least(self, self.name)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """One look, one answer."""
        times = footage.times[sampling.uniform(len(footage.times), self.frames)].tolist()
        slots = {"length": length(footage), **_reply_slots(self.reason)}
        if "captions" in footage.has:
            # the captions stand in for pictures, so that text models can be compared
            notes = captioned(footage, times)
            answer = guess(run["vlm"], "baselines/captions", question, seen=notes, **slots)
            evidence = [Evidence(note.segment, "caption", note.text) for note in notes]
        else:
            shown = footage.at(times)
            lines = _spoken_around(footage, shown) if self.subtitles else []
            speech = lines or phrase("baselines", "no_speech")
            answer = guess(
                run["vlm"], "baselines/uniform", question, frames=shown, speech=speech, **slots
            )
            evidence = [Evidence(Segment(frame.time, frame.time), "frame") for frame in shown]
        return answer.as_answer(evidence=evidence)


@dataclass(frozen=True)
class Search:
    """The moments and lines closest to the question and to each of its options, in one call."""

    name: ClassVar[str] = "search"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("vlm",)
    presets: ClassVar[dict[str, dict[str, object]]] = {"small": {"frames": 8}}
    needs_index: ClassVar[bool] = True

    frames: int = 64
    """Maximum number of moments shown."""
    apart: float = 4.0
    """Minimum seconds between two of them; fewer in films too short for that many moments."""
    lines: int = 6
    """Maximum number of spoken or written lines."""

    def __post_init__(self) -> None:
        check_least(self, self.name, apart=0.0, lines=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """One search, one look, one answer."""
        queries = queries_of(question)
        apart = min(self.apart, footage.duration / self.frames)
        look = look_at(footage, closest_moments(footage, queries, self.frames, apart))
        known = [line for lines in footage.known_lines() for line in lines]
        closest = [known[number] for number in closest_lines(footage, queries, known, self.lines)]
        lines = sorted(closest, key=lambda line: line.segment) or phrase("baselines", "no_speech")
        answer = guess(
            run["vlm"], "baselines/search", question, lines=lines, **shown_to(footage, look)
        )
        shown = [Evidence(Segment(frame.time, frame.time), "frame") for frame in look.frames]
        shown += [Evidence(line.segment, "caption", line.text) for line in look.captions]
        return answer.as_answer(evidence=shown)


@dataclass(frozen=True)
class Blind:
    """The question alone: what a model knows, or guesses, without the film."""

    name: ClassVar[str] = "blind"
    paper: ClassVar[str] = "baseline of VideoAgent"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[dict[str, dict[str, object]]] = {}

    reason: bool = True
    """Ask for the reason before the answer."""

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:  # noqa: ARG002
        """Ask without showing anything."""
        return guess(
            run["llm"], "baselines/blind", question, **_reply_slots(self.reason)
        ).as_answer()


def _reply_slots(reasoned: bool) -> dict[str, Any]:
    """The slots that ask for a reason, or for the answer alone."""
    request = phrase("baselines", "reasoned") if reasoned else phrase("baselines", "direct")
    return {"reasoned": reasoned, "manner": request, "draft": "answer"}


def _spoken_around(footage: Footage, frames: list[Frame]) -> list[Line]:
    """The lines spoken within :data:`REACH` of a frame, each once."""
    lines: dict[Line, None] = {}
    for frame in frames:
        near = Segment(max(0.0, frame.time - REACH), frame.time + REACH)
        lines.update(dict.fromkeys(footage.speech(near)))
    return list(lines)


def closest_moments(
    footage: Footage, queries: Sequence[str], max_moments: int, apart: float
) -> list[int]:
    """Rows of the grid, in order: the queries take turns in choosing their closest free moment."""
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
            # close moments show the same
            free &= np.abs(times - times[best]) >= apart
            free[best] = False
    return sorted(chosen)


def closest_lines(
    footage: Footage, queries: Sequence[str], lines: Sequence[Line], max_lines: int
) -> list[int]:
    """The numbers of the lines closest in meaning to the queries.

    The queries take turns, so that every option of a question has its evidence.
    """
    if len(lines) <= max_lines:
        return list(range(len(lines)))
    rows = footage.meanings([*queries, *(line.text for line in lines)])
    return in_turns(rows[: len(queries)] @ rows[len(queries) :].T, max_lines)


def queries_of(question: Question) -> list[str]:
    """The question alone, and with each of its options."""
    return [question.text, *(f"{question.text} {option}" for option in question.options)]


def in_turns(closeness: NDArray[np.floating], max_columns: int) -> list[int]:
    """Distinct columns of a table, which the rows choose in turns, their closest first."""
    # column k of the ranks holds the k-th choice of every row
    ranks = (-closeness).argsort(axis=1, kind="stable")
    return list(dict.fromkeys(ranks.T.ravel().tolist()))[:max_columns]
