"""Symphony, a multi-agent system for long-video understanding (supplement: agents, tools, prompts)::

    history ← nothing
    for at most max_steps
        planner, from the question, the film's length and the history:
            grounding         where to look: retrieve, or score every minute
            visual_perception look: summary, inspector, several stretches
            subtitles         what is said about it
            finish            the answer
        grounding, perception, subtitles: what they report joins the history
        finish: the reflection agent judges the whole course
            credible: that is the answer
            otherwise its comment joins the history, and planning goes on

Departures. What grounding says must be looked at before the end: the paper asks its planner for that, here the loop
refuses a finish until somebody was sent to look, at the cost of a step. The planner has ``max_steps``; on the last it
may only finish. A plan that cannot be read twice over ends the search: the answer is then asked for by itself. A
proposal is reviewed at most ``max_reflections`` times, then it stands. Lines that the subtitle agent quotes are passed
on only if the film has them. ``coarse_to_fine`` scoring and the bound on scorings are ours. Citations are moments that
were looked at, those that the answer's reason names first, and quoted lines; the paper cites nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Field

from longtake.errors import check_least
from longtake.events import note, step
from longtake.footage.look import cite, look_at
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.methods.symphony.grounding import Grounding, ground
from longtake.methods.symphony.history import (
    FINISH,
    GROUNDING,
    PERCEPTION,
    REFLECTION,
    Turn,
    uninspected,
    written,
)
from longtake.methods.symphony.perception import Perception, perceive
from longtake.methods.symphony.subtitles import listen
from longtake.models.replies.letters import read_letter
from longtake.steps.answer import Guess, guess, in_words
from longtake.steps.ask import ask
from longtake.steps.run import Run
from longtake.steps.showing import length
from longtake.timecode import parse_time
from longtake.types import Answer, Evidence, Question

CITED = 3
"""Moments that an answer cites; quoted lines come on top, as many again."""
SMALL_PIECE = 2000
"""Tokens of subtitles that even a small model holds at once, for estimates."""
LOOK_FIRST = "Not yet: what grounding claims was not looked at. Send visual_perception there first."
_CLOCK = re.compile(r"\b\d{1,2}:[0-5]\d:[0-5]\d\b")


class Plan(BaseModel):
    """Who acts next."""

    reason: str = Field("", description="why this agent, in one sentence")
    agent: Literal["grounding", "visual_perception", "subtitles", "finish"]
    instruct: str = Field(
        "", description="what the agent is to find out; for visual_perception also where"
    )
    answer: str = Field(
        "", description="with finish alone: the answer, by its letter where there are options"
    )


class Verdict(BaseModel):
    """The review of a course and its answer."""

    credible: bool
    comment: str | None = Field(
        None, description="where not credible: what is wrong, and what would settle it"
    )


@dataclass(frozen=True)
class Symphony:
    """A planner sends agents to ground, look and listen; a reflection agent accepts the answer or sends it back."""

    name: ClassVar[str] = "symphony"
    paper: ClassVar[str] = (
        "Symphony: A Cognitively-Inspired Multi-Agent System for Long-Video Understanding"
    )
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"grounding": Grounding(scoring="full", max_scorings=1_000_000)},
        "released": {
            "grounding": Grounding(scored_seconds=30.0, scored_frames=15),
            "perception": Perception(inspector_frames=70, cue_frames=20, summary_frames=30),
        },
    }

    max_steps: int = 17
    """Plans; on the last the planner may only finish."""
    max_reflections: int = 1
    """Reviews of a proposed answer; one proposed after that stands."""
    grounding: Grounding = field(default_factory=Grounding)
    """Where to look: ``grounding.scoring``, ``grounding.score_calls`` and the rest."""
    perception: Perception = field(default_factory=Perception)
    """How to look: ``perception.max_tool_calls``, frames and lengths of each tool."""
    subtitle_tokens: int = 6000
    """Most tokens of subtitles in one prompt (ours); more are read in pieces, never more than half of the context."""

    def __post_init__(self) -> None:
        check_least(self, self.name, max_steps=1, max_reflections=0, subtitle_tokens=1)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """The loop above."""
        history: list[Turn] = []
        reviews, refused = 0, False
        for number in range(1, self.max_steps + 1):
            last = number == self.max_steps
            with step("plan", number=number):
                plan = None if last else self.plan(footage, question, history, run)
                if plan is not None and plan.agent != FINISH:
                    history.append(self.send(plan, footage, question, history, run))
                    continue
                if plan is not None and uninspected(history):
                    note("finish_refused", why=LOOK_FIRST)
                    history.append(Turn(FINISH, "an answer was proposed", (LOOK_FIRST,)))
                    continue
                said = self.proposed(plan, footage, question, history, run)
                answer = self.conclude(footage, question, history, said)
                run.propose(answer)
                if reviews >= self.max_reflections or said.abstained:
                    note(
                        "not_reviewed",
                        why="nothing to review" if said.abstained else "reviews are used up",
                    )
                    return (
                        replace(answer, status="not_credible")
                        if last and refused and not said.abstained
                        else answer
                    )
                reviews += 1
                verdict = self.reflect(footage, question, history, said, run)
                if verdict.credible:
                    return answer
                refused = True
                if last:
                    return replace(answer, status="not_credible")
                proposed = in_words(question, said.choice, said.text)
                told = f"{proposed} was judged not credible. {verdict.comment or ''}".strip()
                history.append(Turn(REFLECTION, "reviewed a proposed answer", (told,)))
        raise AssertionError("the last plan always ends the loop")

    def plan(
        self, footage: Footage, question: Question, history: Sequence[Turn], run: Run
    ) -> Plan | None:
        """What the planner wants next; ``None``, an end, where its reply cannot be read."""
        return ask(
            run["llm"],
            "symphony/plan",
            Plan,
            default=None,
            question=question,
            length=length(footage),
            history=written(history),
        )

    def send(
        self, plan: Plan, footage: Footage, question: Question, history: Sequence[Turn], run: Run
    ) -> Turn:
        """The chosen agent's turn."""
        instruct = plan.instruct or question.text
        if plan.agent == GROUNDING:
            before = [turn.scored_for for turn in history if turn.scored_for]
            return ground(self.grounding, footage, question, instruct, run, scored_for=before)
        if plan.agent == PERCEPTION:
            return perceive(self.perception, footage, question, instruct, run)
        return listen(footage, question, instruct, run, most_tokens=self.subtitle_tokens)

    def proposed(
        self,
        plan: Plan | None,
        footage: Footage,
        question: Question,
        history: Sequence[Turn],
        run: Run,
    ) -> Guess:
        """The plan's answer; where it names none, or there is no plan, what the history says."""
        if plan is not None and question.options and (letter := read_letter(plan.answer, question)):
            return Guess(letter, "", plan.reason)
        if plan is not None and not question.options and plan.answer.strip():
            return Guess(None, plan.answer.strip(), plan.reason)
        return guess(
            run["llm"],
            "symphony/finish",
            question,
            length=length(footage),
            history=written(history),
        )

    def reflect(
        self, footage: Footage, question: Question, history: Sequence[Turn], said: Guess, run: Run
    ) -> Verdict:
        """Whether the course and its answer hold; an unreadable review accepts, and an event says so."""
        return ask(
            run["llm"],
            "symphony/reflect",
            Verdict,
            default=Verdict(credible=True, comment=None),
            question=question,
            length=length(footage),
            history=written(history),
            proposed=f"Proposed answer: {in_words(question, said.choice, said.text)}",
        )

    def conclude(
        self, footage: Footage, question: Question, history: Sequence[Turn], said: Guess
    ) -> Answer:
        """The answer with what speaks for it: moments that were looked at, and lines that were quoted."""
        if said.abstained:
            return said.as_answer()
        about = f"{question.text} {in_words(question, said.choice, said.text)}"
        looked = sorted({row for turn in history for row in turn.looked})
        quoted = list(dict.fromkeys(line for turn in history for line in turn.quoted))
        evidence = [*moments(footage, looked, said.reason, about), *closest(footage, quoted, about)]
        return said.as_answer(evidence=sorted(evidence, key=lambda one: one.segment))

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Every step sends the agent that costs most, and the film is scored as often as it may be."""
        own = self.perception
        scorings = min(self.grounding.max_scorings, self.max_steps - 1)
        one_scoring = self.grounding.calls(duration)
        spoken = round(5 * duration)  # words; nobody speaks faster for long
        pieces = -(-2 * spoken // min(self.subtitle_tokens, SMALL_PIECE))
        usual = max(2 * own.max_tool_calls + 1, pieces)
        sent = self.max_steps - 1
        scoring = max(0, one_scoring + 1 - usual)
        calls = sent + sent * usual + scorings * scoring + 1 + self.max_reflections
        asked = words([question.text, *question.options])
        told = 60 * min(one_scoring, 40) + 200 * self.max_steps
        return Bounds(
            calls=calls,
            frames=sent * own.max_tool_calls * own.most_frames
            + scorings * one_scoring * self.grounding.scored_frames,
            prompt_words=calls * (asked + 250)
            + (self.max_steps + self.max_reflections) * told
            + sent * spoken,
            reply_words=calls * 80,
            steps=self.max_steps * 2 + sent * (2 * own.max_tool_calls + 1) + self.max_reflections,
        )


def moments(footage: Footage, looked: Sequence[int], reason: str, about: str) -> list[Evidence]:
    """Moments that were looked at: those that the reason names by the clock, then those closest to the answer."""
    if not looked:
        return []
    times = footage.times[list(looked)]
    named: dict[int, None] = {}
    for text in _CLOCK.findall(reason):
        place = int(np.abs(times - parse_time(text)).argmin())
        if abs(float(times[place]) - parse_time(text)) <= 1.0:
            named[looked[place]] = None
    first = list(named)[:CITED]
    rest = [row for row in looked if row not in named]
    return [
        *cite(footage, look_at(footage, first, pictures=False), about, CITED),
        *cite(footage, look_at(footage, rest, pictures=False), about, CITED - len(first)),
    ]


def closest(footage: Footage, quoted: Sequence[Evidence], about: str) -> list[Evidence]:
    """The quoted lines closest in meaning to the answer."""
    if not quoted:
        return []
    rows = footage.meanings([about, *(line.text for line in quoted)])
    closeness = rows[1:] @ rows[0]
    best = np.argsort(-closeness, kind="stable")[:CITED].tolist()
    return [replace(quoted[number], score=round(float(closeness[number]), 4)) for number in best]
