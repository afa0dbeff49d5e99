"""VideoAgent, Algorithm 1.

Wang, Zhang, Zohar and Yeung-Levy, "VideoAgent: Long-form Video Understanding with Large Language
Model as Agent"::

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

Departures. The last round is not graded, since its prediction stands whatever its grade. A round
asks for at most ``max_requests`` frames, so that the cost is known in advance; the paper sets no
limit. If every request names a segment that does not exist or has no unseen frame, the middle of
the widest unseen interval is used. An unreadable answer is an abstention; the released code answers
at random. The captions closest in meaning to question and answer are cited; the paper cites
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake.agents.answer import Guess, guess, in_words, length, option
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.footage.look import fused, likeness
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ask
from longtake.prompts import Plain, phrase, show
from longtake.tracing.events import note, note_scores, step
from longtake.types import Answer, Evidence, Frame, Line, Question, Segment

State: TypeAlias = dict[int, str]
"""Captions by frame number on the 1 fps grid."""


class CaptionReply(BaseModel):
    """A picture in words."""

    caption: str


class ConfidenceReply(BaseModel):
    """How well the notes support the answer."""

    confidence: int = Field(ge=1, le=3)


class Wish(BaseModel):
    """A picture that would help."""

    segment: int
    description: str


class WishesReply(BaseModel):
    """Everything that is missing, each in one of the listed segments."""

    missing: list[Wish]


class DescriptionsReply(BaseModel):
    """Everything that is missing, anywhere in the film."""

    missing: list[str]


@dataclass(frozen=True)
class VideoAgent:
    """One LLM reads captions of a few frames, grades its confidence, and asks for more frames."""

    name: ClassVar[str] = "videoagent"
    paper: ClassVar[str] = (
        "VideoAgent: Long-form Video Understanding with Large Language Model as Agent"
    )
    roles: ClassVar[tuple[str, ...]] = ("llm", "captioner")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"max_requests": None},
        # a small model is always confident, so it is not asked to grade itself; nor can it choose
        # among segments, so the whole film is searched
        "small": {
            "initial_frames": 3,
            "max_rounds": 2,
            "max_requests": 3,
            "segment_selection": False,
            "retrieval": "fused",
            "self_evaluation": False,
        },
        "released": {"max_requests": None, "unseen_only": False, "invalid_request": "void_round"},
    }

    # from the paper
    initial_frames: int = 5
    """Frames in the first look (N)."""
    max_rounds: int = 3
    """Most looks at the film (T)."""
    confidence_threshold: int = 3
    """Confidence, of 1 to 3, at which to stop (C)."""
    segment_selection: bool = True
    """Look for a missing frame in the named segment only; off (Table 5): in the whole film."""
    self_evaluation: bool = True
    """Stop when confident; off (Table 5): always run all rounds."""

    # ours
    max_requests: int | None = 5
    """Most frames asked for in one round (ours); unset, as in the paper, there is no limit."""
    unseen_only: bool = True
    """Retrieve unseen frames only, one from the widest gap if no request can be met, and stop when
    nothing is unseen; off, as released: a segment includes the seen frame after it, which may be
    chosen again, and the next round answers from the same frames."""
    invalid_request: Literal["drop", "void_round"] = "drop"
    """A request for a segment that does not exist is dropped; or, as released, so are all requests
    of its round, and the next answer is not graded."""
    caption_unit: Literal["frame", "clip"] = "frame"
    """Caption the frame alone, or with the frames around it, for models that take several."""
    clip_seconds: float = 2.0
    """How far a clip extends to either side of its frame."""
    retrieval: Literal["image", "fused"] = "image"
    """Compare descriptions with pictures, as in the paper, or also with speech and text."""

    def __post_init__(self) -> None:
        # a segment lies between two seen frames, so there must be two
        check_least(self, self.name, initial_frames=2, clip_seconds=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Algorithm 1."""
        first = sampling.uniform(len(footage.times), self.initial_frames).tolist()
        with step("first look"):
            state = self.captions(footage, first, run)  # 1
        confidence: int | None = None
        requests_void = False
        for t in range(1, self.max_rounds + 1):  # 2
            with step("look", round=t, frames=len(state)):
                prediction = self.predict(footage, state, question, run)  # 3
                run.propose(self.conclude(footage, question, state, prediction, None))
                if t == self.max_rounds:
                    confidence = None
                    break
                if self.self_evaluation and not requests_void:
                    confidence = self.reflect(footage, state, question, prediction, run)  # 4
                    note("confidence", round=t, value=confidence)
                    if confidence >= self.confidence_threshold:  # 5
                        break  # 6
                wishes = self.missing(footage, state, question, run)  # 8
                requests_void = wishes is None or self.voids(wishes, len(state) - 1)
                frames = [] if requests_void else self.retrieve(footage, state, wishes or ())  # 9
                if not frames and self.unseen_only:
                    note("nothing_left_to_see", round=t)
                    break
                state |= self.captions(footage, frames, run)  # 10
        return self.conclude(footage, question, state, prediction, confidence)  # 13

    def captions(self, footage: Footage, frames: Sequence[int], run: Run) -> State:
        """Caption each frame: the footage's own captions if it has any, else the captioner's."""
        times = [float(footage.times[frame]) for frame in frames]
        if "captions" in footage.has:
            return dict(zip(frames, footage.captions(times), strict=True))
        shown = [footage.at(self._unit(footage, time)) for time in times]

        def describe(pictures: Sequence[Frame]) -> str:
            reply = ask(
                run["captioner"], "videoagent/caption", CaptionReply, frames=pictures, default=None
            )
            return "" if reply is None else reply.caption

        return dict(zip(frames, fanout(describe, shown), strict=True))

    def predict(self, footage: Footage, state: State, question: Question, run: Run) -> Guess:
        """The answer that the notes support, with its reason."""
        return guess(
            run["llm"],
            "videoagent/predict",
            question,
            draft="answer",
            seen=story(footage, state),
            length=length(footage),
        )

    def reflect(
        self, footage: Footage, state: State, question: Question, prediction: Guess, run: Run
    ) -> int:
        """Confidence from 1 to 3; 1 if the reply is unreadable."""
        reply = ask(
            run["llm"],
            "videoagent/grade",
            ConfidenceReply,
            default=ConfidenceReply(confidence=1),
            question=question,
            seen=story(footage, state),
            length=length(footage),
            guess=with_reason(prediction, question),
        )
        return reply.confidence

    def missing(
        self, footage: Footage, state: State, question: Question, run: Run
    ) -> list[Wish] | list[str] | None:
        """The frames that the model asks for: in listed segments, or without selection anywhere.

        ``None`` if its reply is unreadable and that voids the round.
        """
        voids = self.invalid_request == "void_round"
        slots: dict[str, Any] = {
            "question": question,
            "seen": story(footage, state),
            "length": length(footage),
        }
        if not self.segment_selection:
            anywhere = ask(
                run["llm"],
                "videoagent/missing_anywhere",
                DescriptionsReply,
                default=None if voids else DescriptionsReply(missing=[]),
                most=self._most(),
                **slots,
            )
            return None if anywhere is None else anywhere.missing[: self.max_requests]
        listed = []
        for number, (a, b) in enumerate(pairwise(sorted(state)), start=1):
            if b - a > 1 or not self.unseen_only:  # some frame in it may be chosen
                segment = Segment(float(footage.times[a]), float(footage.times[b]))
                listed.append(f"{number}. {show(segment, 'segment')}")
        wishes = ask(
            run["llm"],
            "videoagent/missing",
            WishesReply,
            default=None if voids else WishesReply(missing=[]),
            segments=Plain("\n".join(listed)),
            most=self._most(len(listed)),
            **slots,
        )
        return None if wishes is None else wishes.missing[: self.max_requests]

    def voids(self, wishes: Sequence[Wish | str], segments: int) -> bool:
        """Whether one of the requests voids all of its round."""
        if self.invalid_request == "drop":
            return False
        named = [wish.segment for wish in wishes if isinstance(wish, Wish)]
        invalid = [segment for segment in named if not 1 <= segment <= segments]
        if invalid:
            note("requests_void", segments=invalid, why="no such segment")
        return bool(invalid)

    def _most(self, segments: int | None = None) -> str:
        """How many pictures may be asked for, in words."""
        if self.max_requests is None:
            return phrase("videoagent", "any_number")
        max_number = self.max_requests if segments is None else min(self.max_requests, segments)
        return phrase("videoagent", "at_most", number=max_number)

    def retrieve(self, footage: Footage, state: State, wishes: Sequence[Wish | str]) -> list[int]:
        """For each wish, the closest unseen frame of its segment, or of the film without one."""
        gaps, seen = list(pairwise(sorted(state))), set(state)
        chosen: list[int] = []
        for wish in wishes:
            if isinstance(wish, str):
                named, wanted = None, wish
            else:
                named, wanted = wish.segment, wish.description
            if named is not None and not 1 <= named <= len(gaps):
                note("request_dropped", segment=named, why="no such segment")
                continue
            begin, end = (-1, len(footage.times)) if named is None else gaps[named - 1]
            inside = range(begin + 1, end if self.unseen_only else min(end + 1, len(footage.times)))
            rows = [row for row in inside if not (self.unseen_only and row in seen)]
            if not rows:
                note("request_dropped", segment=named, why="nothing in it is unseen")
                continue
            best = rows[int(np.argmax(self._similarity(footage, wanted)[rows]))]
            if best in seen:
                note("request_dropped", segment=named, why="the closest frame was seen before")
                continue
            seen.add(best)
            chosen.append(best)
        if not chosen and self.unseen_only:
            middle = widest_middle(sorted(state), len(footage.times))
            if middle is not None:
                note("looked_in_the_widest_gap", frame=middle)
                chosen.append(middle)
        return chosen

    def conclude(
        self,
        footage: Footage,
        question: Question,
        state: State,
        prediction: Guess,
        confidence: int | None,
    ) -> Answer:
        """The answer, citing the three notes closest in meaning; confidence as a share of 3."""
        share = None if confidence is None else confidence / 3
        noted = [frame for frame in sorted(state) if state[frame]]
        if prediction.abstained or not noted:
            return prediction.as_answer(confidence=share)
        chosen = option(question, prediction.choice) or prediction.text
        captions = [state[frame] for frame in noted]
        closeness = likeness(footage, f"{question.text} {chosen}", captions)
        best = np.argsort(-closeness, kind="stable")[:3]
        cited = []
        for index in sorted(best.tolist()):
            score = round(float(closeness[index]), 4)
            segment = _moment(footage, noted[index])
            cited.append(Evidence(segment, "caption", captions[index], score))
        return prediction.as_answer(confidence=share, evidence=cited)

    def _unit(self, footage: Footage, time: float) -> list[float]:
        """The moments that are captioned together as one."""
        if self.caption_unit == "frame":
            return [time]
        around = (time - self.clip_seconds, time, time + self.clip_seconds)
        last = float(footage.times[-1])
        return [moment for moment in around if 0 <= moment <= last]

    def _similarity(self, footage: Footage, text: str) -> NDArray[np.float32]:
        """How close each frame of the grid is to a text."""
        if self.retrieval == "fused":
            scores = fused(footage, text)
        else:
            scores = footage.embeddings() @ footage.encode([text])[0]
        moments = [Segment(time, time) for time in footage.times.tolist()]
        note_scores(f"similarity: {text}", moments, scores)
        return np.asarray(scores, np.float32)


def widest_middle(seen: Sequence[int], count: int) -> int | None:
    """The middle of the widest run of unseen frames; ``None`` if all were seen."""
    edges = [-1, *seen, count]
    begin, end = max(pairwise(edges), key=lambda gap: gap[1] - gap[0])
    return (begin + end) // 2 if end - begin > 1 else None


def story(footage: Footage, state: State) -> list[Line]:
    """The notes in time order; frames without a caption are left out."""
    notes = [Line(_moment(footage, frame), state[frame]) for frame in sorted(state) if state[frame]]
    # in the form of a note, so that prompts keep their shape
    return notes or [Line(Segment(0.0, 0.0), phrase("videoagent", "nothing_seen"))]


def with_reason(prediction: Guess, question: Question) -> str:
    """An answer with its reason, as the next step reads it."""
    if prediction.abstained:
        return phrase("videoagent", "no_answer")
    return f"{in_words(question, prediction.choice, prediction.text)} ({prediction.reason})"


def _moment(footage: Footage, frame: int) -> Segment:
    time = float(footage.times[frame])
    return Segment(time, time)
