"""What every comparison needs: N uniform frames in one call, and the question alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.prompts import Plain
from longtake.steps.answer import guess
from longtake.steps.run import Run
from longtake.steps.showing import SPOKEN
from longtake.timecode import clock
from longtake.types import Answer, Evidence, Frame, Line, Question, Segment

REASONED = Plain("Give your reason in one or two sentences, then the answer.")
DIRECT = Plain("Give the answer alone, without a reason.")
REACH = 5.0
"""Seconds on either side of a frame of which the lines spoken are shown with it."""


@dataclass(frozen=True)
class Uniform:
    """Frames spread evenly over the film, shown in one call.

    On footage made of captions the captions at those moments are read instead.
    """

    name: ClassVar[str] = "uniform"
    paper: ClassVar[str] = "baseline of VideoAgent, LVAgent and VideoDetective"
    roles: ClassVar[tuple[str, ...]] = ("vlm",)
    presets: ClassVar[dict[str, dict[str, object]]] = {}

    frames: int = 32
    """Frames shown."""
    subtitles: bool = False
    """Whether the lines spoken around the frames are shown as well."""
    reason: bool = True
    """Whether the model gives its reason before the answer; off: the letter alone, as benchmarks often ask for it."""

    def __post_init__(self) -> None:
        check_least(self, self.name, frames=1)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """One look, one answer."""
        times = footage.times[sampling.uniform(len(footage.times), self.frames)].tolist()
        told = {"length": Plain(clock(footage.duration)), **_manner(self.reason)}
        if "captions" in footage.has:
            captions = zip(times, footage.captions(times), strict=True)
            notes = [Line(Segment(time, time), caption) for time, caption in captions]
            said = guess(run["vlm"], "baselines/captions", question, seen=notes, **told)
            evidence = [Evidence(note.segment, "caption", note.text) for note in notes]
        else:
            shown = footage.at(times)
            speech = _around(footage, shown) if self.subtitles else "(not shown)"
            said = guess(
                run["vlm"], "baselines/uniform", question, frames=shown, speech=speech, **told
            )
            evidence = [Evidence(Segment(frame.time, frame.time), "frame") for frame in shown]
        return said.as_answer(evidence=evidence)

    def bounds(self, duration: float, question: Question) -> Bounds:
        """One call."""
        said = round(SPOKEN * min(duration, 2 * REACH * self.frames)) if self.subtitles else 0
        told = words([question.text, *question.options]) + 120 + said
        return Bounds(calls=1, frames=self.frames, prompt_words=told, reply_words=120, steps=1)


@dataclass(frozen=True)
class Blind:
    """The question alone: what a model knows, or guesses, without the film."""

    name: ClassVar[str] = "blind"
    paper: ClassVar[str] = "baseline of VideoAgent"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[dict[str, dict[str, object]]] = {}

    reason: bool = True
    """Whether the model gives its reason before the answer."""

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:  # noqa: ARG002
        """Ask without showing anything."""
        return guess(run["llm"], "baselines/blind", question, **_manner(self.reason)).as_answer()

    def bounds(self, duration: float, question: Question) -> Bounds:  # noqa: ARG002
        """One call."""
        told = words([question.text, *question.options]) + 100
        return Bounds(calls=1, frames=0, prompt_words=told, reply_words=120, steps=1)


def _manner(reasoned: bool) -> dict[str, Any]:
    """How the answer is to be given, in the form of the reply and in words."""
    return {"reasoned": reasoned, "manner": REASONED if reasoned else DIRECT}


def _around(footage: Footage, frames: list[Frame], reach: float = REACH) -> list[Line] | str:
    """Lines spoken within ``reach`` seconds of a frame, each once."""
    lines = [
        line
        for frame in frames
        for line in footage.speech(Segment(max(0.0, frame.time - reach), frame.time + reach))
    ]
    return list(dict.fromkeys(lines)) or "(nothing is said)"
