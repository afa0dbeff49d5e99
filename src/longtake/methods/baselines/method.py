"""The baselines every comparison needs: N uniform frames in one call, and the question alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longtake.agents.answer import SPOKEN, guess, length
from longtake.agents.run import Run
from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
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
            captions = zip(times, footage.captions(times), strict=True)
            notes = [Line(Segment(time, time), caption) for time, caption in captions]
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

    def bounds(self, duration: float, question: Question) -> Bounds:
        """One call."""
        spoken = round(SPOKEN * min(duration, 2 * REACH * self.frames)) if self.subtitles else 0
        prompt_words = words([question.text, *question.options]) + 120 + spoken
        return Bounds(
            calls=1, frames=self.frames, prompt_words=prompt_words, reply_words=120, steps=1
        )


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

    def bounds(self, duration: float, question: Question) -> Bounds:  # noqa: ARG002
        """One call."""
        prompt_words = words([question.text, *question.options]) + 100
        return Bounds(calls=1, frames=0, prompt_words=prompt_words, reply_words=120, steps=1)


def _reply_slots(reasoned: bool) -> dict[str, Any]:
    """How the answer is to be given: the form of the reply, and the words that ask for it."""
    request = phrase("baselines", "reasoned") if reasoned else phrase("baselines", "direct")
    return {"reasoned": reasoned, "manner": request}


def _spoken_around(footage: Footage, frames: list[Frame]) -> list[Line]:
    """The lines spoken within :data:`REACH` of a frame, each once."""
    # neighbouring frames may be closer than twice the reach
    lines: dict[Line, None] = {}
    for frame in frames:
        near = Segment(max(0.0, frame.time - REACH), frame.time + REACH)
        lines.update(dict.fromkeys(footage.speech(near)))
    return list(lines)
