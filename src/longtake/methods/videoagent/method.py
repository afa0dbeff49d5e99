"""VideoAgent (Wang, Zhang, Zohar and Yeung-Levy, "VideoAgent: Long-form Video Understanding with Large Language
Model as Agent"), Algorithm 1::

     1  s ← captions of N frames, spread uniformly
     2  for t = 1 … T
     3      ŷ ← predict the answer from s and the question
     4      c ← self-reflect on s, the question and ŷ: confidence 1, 2 or 3
     5      if c ≥ C
     6          break
     8      h ← find what is missing: segments and descriptions
     9      o ← in each segment the frame closest to its description
    10      s ← s merged with the captions of o, by time
    13  return ŷ

Departures. The last round is not graded: its prediction stands whatever the grade (line 4 would cost a call and
change nothing). At most ``max_requests`` frames are asked for in a round, so that the cost is known before
running; the paper sets no bound. Where every request names a segment that is not there or has nothing unseen, the
middle of the widest unseen interval is looked at. An answer that cannot be read is an abstention; the released code
answers at random. Citations are the notes closest in meaning to question and answer; the paper cites nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.events import ScoresSet, emit, note, step
from longtake.footage.protocol import Footage
from longtake.footage.relevance import fused
from longtake.methods.base import Bounds, words
from longtake.prompts import Plain
from longtake.steps.answer import Guess, guess, in_words
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.steps.showing import length
from longtake.timecode import clock
from longtake.types import Answer, Evidence, Line, Question, Segment

State: TypeAlias = dict[int, str]
"""Captions by frame number, the frames being those of the 1 fps grid."""

CITED = 3
"""Notes that an answer cites."""


class Caption(BaseModel):
    """A picture in words."""

    caption: str


class Trust(BaseModel):
    """How far the notes carry the answer."""

    confidence: int = Field(ge=1, le=3)


class Wish(BaseModel):
    """A picture that would help."""

    segment: int
    description: str


class Wishes(BaseModel):
    """Everything that is missing."""

    missing: list[Wish]


class Descriptions(BaseModel):
    """Everything that is missing, wherever it is."""

    missing: list[str]


@dataclass(frozen=True)
class VideoAgent:
    """One LLM reads captions of a few frames, grades its own confidence, and asks for more where it is short."""

    name: ClassVar[str] = "videoagent"
    paper: ClassVar[str] = (
        "VideoAgent: Long-form Video Understanding with Large Language Model as Agent"
    )
    roles: ClassVar[tuple[str, ...]] = ("llm", "captioner")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {"max_requests": None}}

    initial_frames: int = 5
    """Frames in the first look (N)."""
    max_rounds: int = 3
    """Most looks at the film (T)."""
    confidence_threshold: int = 3
    """Confidence, of 1 to 3, at which to stop (C)."""
    max_requests: int | None = 5
    """Most frames asked for in one round (ours); unset, as in the paper, there is no bound."""
    segment_selection: bool = True
    """Look for a missing frame in the named segment only; off (Table 5), in the whole film."""
    self_evaluation: bool = True
    """Stop when confident; off (Table 5), always run all rounds."""
    caption_unit: Literal["frame", "clip"] = "frame"
    """Caption the frame alone, or the frames around it as well, for models that take several pictures."""
    clip_seconds: float = 2.0
    """Reach of a clip to either side of its frame."""
    retrieval: Literal["image", "fused"] = "image"
    """What a description is compared with: pictures, as in the paper, or also what is said and can be read."""

    def __post_init__(self) -> None:
        # a segment lies between two frames that were seen
        check_least(
            self, self.name, initial_frames=2, max_rounds=1, confidence_threshold=1, clip_seconds=0
        )
        if self.max_requests is not None:
            check_least(self, self.name, max_requests=1)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Algorithm 1."""
        first = sampling.uniform(len(footage.times), self.initial_frames).tolist()
        with step("first look"):
            state = self.captions(footage, first, run)  # 1
        confidence: int | None = None
        for t in range(1, self.max_rounds + 1):  # 2
            with step("look", round=t, frames=len(state)):
                said = self.predict(footage, state, question, run)  # 3
                run.propose(self.conclude(footage, question, state, said, None))
                if t == self.max_rounds:
                    confidence = None
                    break
                if self.self_evaluation:
                    confidence = self.reflect(footage, state, question, said, run)  # 4
                    note("confidence", round=t, value=confidence)
                    if confidence >= self.confidence_threshold:  # 5
                        break  # 6
                wishes = self.missing(footage, state, question, run)  # 8
                found = self.retrieve(footage, state, wishes)  # 9
                if not found:
                    note("nothing_left_to_see", round=t)
                    break
                state |= self.captions(footage, found, run)  # 10
        return self.conclude(footage, question, state, said, confidence)  # 13

    def captions(self, footage: Footage, frames: Sequence[int], run: Run) -> State:
        """Each frame in words: by the footage itself where it is made of captions, else by the captioner."""
        times = [float(footage.times[frame]) for frame in frames]
        if "captions" in footage.has:
            return dict(zip(frames, footage.captions(times), strict=True))
        shown = [footage.at(self._unit(footage, time)) for time in times]

        def describe(pictures: Any) -> str:
            said = ask(
                run["captioner"], "videoagent/caption", Caption, frames=pictures, default=None
            )
            return "" if said is None else said.caption

        return dict(zip(frames, fanout(describe, shown), strict=True))

    def predict(self, footage: Footage, state: State, question: Question, run: Run) -> Guess:
        """What the notes say, reasoned."""
        return guess(
            run["llm"],
            "videoagent/predict",
            question,
            seen=story(footage, state),
            length=length(footage),
        )

    def reflect(
        self, footage: Footage, state: State, question: Question, said: Guess, run: Run
    ) -> int:
        """Confidence, 1 where the model gives none."""
        trust = ask(
            run["llm"],
            "videoagent/grade",
            Trust,
            default=Trust(confidence=1),
            question=question,
            seen=story(footage, state),
            length=length(footage),
            guess=with_reason(said, question),
        )
        return trust.confidence

    def missing(
        self, footage: Footage, state: State, question: Question, run: Run
    ) -> list[Wish] | list[str]:
        """What the model asks to see, with the segments it may name; without selection, what it asks for alone."""
        told: dict[str, Any] = {
            "question": question,
            "seen": story(footage, state),
            "length": length(footage),
        }
        if not self.segment_selection:
            anywhere = ask(
                run["llm"],
                "videoagent/missing_anywhere",
                Descriptions,
                default=Descriptions(missing=[]),
                most=self._most(),
                **told,
            )
            return anywhere.missing[: self.max_requests]
        listed = [
            f"{number}. {clock(float(footage.times[a]))} to {clock(float(footage.times[b]))}"
            for number, (a, b) in enumerate(segments(sorted(state)), start=1)
            if b - a > 1  # something in it is unseen
        ]
        wishes = ask(
            run["llm"],
            "videoagent/missing",
            Wishes,
            default=Wishes(missing=[]),
            segments=Plain("\n".join(listed)),
            most=self._most(len(listed)),
            **told,
        )
        return wishes.missing[: self.max_requests]

    def _most(self, segments: int | None = None) -> Plain:
        """How many pictures may be asked for, in words."""
        if self.max_requests is None:
            return Plain("the pictures")
        most = self.max_requests if segments is None else min(self.max_requests, segments)
        return Plain(f"at most {most} pictures")

    def retrieve(self, footage: Footage, state: State, wishes: Sequence[Wish | str]) -> list[int]:
        """For each wish the closest unseen frame of its segment, or of the film where it names none."""
        gaps, seen, found = segments(sorted(state)), set(state), list[int]()
        for wish in wishes:
            named, wanted = (
                (None, wish) if isinstance(wish, str) else (wish.segment, wish.description)
            )
            if named is not None and not 1 <= named <= len(gaps):
                note("request_dropped", segment=named, why="no such segment")
                continue
            begin, end = (-1, len(footage.times)) if named is None else gaps[named - 1]
            unseen = [frame for frame in range(begin + 1, end) if frame not in seen]
            if not unseen:
                note("request_dropped", segment=named, why="nothing in it is unseen")
                continue
            best = unseen[int(np.argmax(self._similarity(footage, wanted)[unseen]))]
            seen.add(best)
            found.append(best)
        if not found and (middle := widest_middle(sorted(state), len(footage.times))) is not None:
            note("looked_in_the_widest_gap", frame=middle)
            found.append(middle)
        return found

    def conclude(
        self,
        footage: Footage,
        question: Question,
        state: State,
        said: Guess,
        confidence: int | None,
    ) -> Answer:
        """The answer with the notes that speak for it."""
        cited = cite(footage, question, state, said)
        return said.as_answer(
            confidence=None if confidence is None else confidence / 3, evidence=cited
        )

    def bounds(self, duration: float, question: Question) -> Bounds:
        """All rounds, every request granted."""
        moments = max(1, round(duration))
        most = moments if self.max_requests is None else min(self.max_requests, moments)
        frames = self.initial_frames + (self.max_rounds - 1) * most
        steps = 3 * self.max_rounds - 2
        asked = words([question.text, *question.options])
        return Bounds(
            calls=frames + steps,
            frames=frames * (1 if self.caption_unit == "frame" else 3),
            prompt_words=frames * 40 + steps * (asked + 120 + frames * 60),
            reply_words=frames * 60 + steps * 60,
            steps=steps + self.max_rounds,
        )

    def _unit(self, footage: Footage, time: float) -> list[float]:
        if self.caption_unit == "frame":
            return [time]
        around = (time - self.clip_seconds, time, time + self.clip_seconds)
        return [t for t in around if 0 <= t <= float(footage.times[-1])]

    def _similarity(self, footage: Footage, text: str) -> NDArray[np.float32]:
        scores = (
            fused(footage, text)
            if self.retrieval == "fused"
            else footage.embeddings() @ footage.encode([text])[0]
        )
        moments = tuple(Segment(t, t) for t in footage.times.tolist())
        emit(
            ScoresSet(
                label=f"similarity: {text}",
                segments=moments,
                values=tuple(np.round(scores, 4).tolist()),
            )
        )
        return np.asarray(scores, np.float32)


def segments(seen: Sequence[int]) -> list[tuple[int, int]]:
    """The intervals between seen frames, in order; the first is number 1."""
    return list(pairwise(seen))


def widest_middle(seen: Sequence[int], count: int) -> int | None:
    """The middle of the widest run of unseen frames; ``None`` when all were seen."""
    edges = [-1, *seen, count]
    begin, end = max(pairwise(edges), key=lambda gap: gap[1] - gap[0])
    return (begin + end) // 2 if end - begin > 1 else None


def story(footage: Footage, state: State) -> list[Line]:
    """The notes in time order; frames of which nothing could be said are left out."""
    told = [
        Line(Segment(float(footage.times[frame]), float(footage.times[frame])), state[frame])
        for frame in sorted(state)
        if state[frame]
    ]
    return told or [Line(Segment(0.0, 0.0), "(nothing could be made out so far)")]


def with_reason(said: Guess, question: Question) -> str:
    """An answer with its reason, as the next step is told of it."""
    if said.abstained:
        return "none could be given"
    return f"{in_words(question, said.choice, said.text)} ({said.reason})"


def cite(footage: Footage, question: Question, state: State, said: Guess) -> list[Evidence]:
    """The notes closest in meaning to the question with its answer, in time order."""
    noted = [frame for frame in sorted(state) if state[frame]]
    if said.abstained or not noted:
        return []
    chosen = question.options[question.letters.index(said.choice)] if said.choice else said.text
    rows = footage.meanings([f"{question.text} {chosen}", *(state[frame] for frame in noted)])
    closeness = rows[1:] @ rows[0]
    best = sorted(np.argsort(-closeness, kind="stable")[:CITED].tolist())
    return [
        Evidence(
            Segment(float(footage.times[noted[i]]), float(footage.times[noted[i]])),
            "caption",
            state[noted[i]],
            round(float(closeness[i]), 4),
        )
        for i in best
    ]
