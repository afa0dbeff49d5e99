"""Symphony, a multi-agent system for long-video understanding (supplement)::

     1  history ← nothing
     2  for at most max_steps
     3      planner, from the question, the film's length and the history:
     4          grounding          where to look: retrieve, or score every minute
     5          visual_perception  look: summary, inspector, several stretches
     6          subtitles          what is said about it
     7          finish             the answer
     8      grounding, perception, subtitles: what they report joins the history
     9      finish: the reflection agent judges the whole course
    10          credible: that is the answer
    11          otherwise its comment joins the history, and planning goes on

Departures. The paper asks its planner to look at what grounding claims before it finishes; here the
loop rejects a finish until an agent has looked, which costs a step. The planner has ``max_steps``
steps and can only finish on the last. A plan that is unreadable twice ends the search; the answer
is then asked for separately. At most ``max_reflections`` proposals are reviewed; the next one
stands. Lines that the subtitle agent quotes are passed on only if the film contains them. The limit
on scorings is ours. Citations are moments that were looked at, first those that the answer's reason
names, and quoted lines; the paper cites nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Field

from longtake._util.timecode import CLOCK, parse_time
from longtake.agents.answer import Guess, guess, in_words, length
from longtake.agents.run import AGENT_ROLES, Run
from longtake.errors import check_least
from longtake.footage.look import cite, likeness, look_at
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ask
from longtake.llm.structured.letters import read_letter
from longtake.methods.symphony.grounding import (
    FINISH,
    GROUNDING,
    PERCEPTION,
    REFLECTION,
    Grounding,
    HistoryEntry,
    uninspected,
    written,
)
from longtake.methods.symphony.perception import Perception, listen
from longtake.prompts import phrase
from longtake.tracing.events import note, step
from longtake.types import Answer, Evidence, Question

NO_LIMIT = 50
"""Replaces limits that the paper does not give, since a run has to end."""
CITED = 3
"""Maximum number of moments cited for an answer, and of quoted lines."""

_CLOCK = re.compile(rf"\b{CLOCK}\b")


class PlanReply(BaseModel):
    """Who acts next."""

    reason: str = Field("", description="why this agent, in one sentence")
    agent: Literal["grounding", "visual_perception", "subtitles", "finish"]
    instruct: str = Field(
        "", description="what the agent should find out; for visual_perception also where"
    )
    answer: str = Field(
        "", description="only with finish: the answer, as a letter if there are options"
    )


class VerdictReply(BaseModel):
    """The review of a search and its answer."""

    credible: bool
    comment: str | None = Field(
        None, description="if not credible: what is wrong, and what would settle it"
    )


@dataclass(frozen=True)
class Symphony:
    """A planner sends agents to ground, look and listen; another reviews the answer."""

    name: ClassVar[str] = "symphony"
    paper: ClassVar[str] = (
        "Symphony: A Cognitively-Inspired Multi-Agent System for Long-Video Understanding"
    )
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm", *AGENT_ROLES)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "max_steps": NO_LIMIT,
            "max_reflections": NO_LIMIT,
            "look_before_finish": False,
            "subtitle_tokens": 1_000_000,
            "grounding": Grounding(max_scorings=NO_LIMIT, named_times=False, report_share=1.0),
            "perception": Perception(max_tool_calls=NO_LIMIT),
        },
        "released": {
            "look_before_finish": False,
            "grounding": Grounding(scored_seconds=30.0, scored_frames=15),
            "perception": Perception(inspector_frames=70, cue_frames=20, summary_frames=30),
        },
        "small": {"max_steps": 6, "subtitle_tokens": 2000},
    }

    # from the paper
    grounding: Grounding = field(default_factory=Grounding)
    """Where to look: clips, frames and how often the film is scored."""
    perception: Perception = field(default_factory=Perception)
    """How to look: ``perception.max_tool_calls``, frames and lengths of each tool."""

    # ours
    max_steps: int = 17
    """Steps of the planner; on the last it can only finish."""
    max_reflections: int = 1
    """Most reviews of a proposed answer; one proposed after that stands."""
    look_before_finish: bool = True
    """Reject a finish while no agent has looked at what grounding claims (ours); off, as in the
    paper, this is left to the planner."""
    subtitle_tokens: int = 6000
    """Most tokens of subtitles in one prompt (ours), and at most half of the context; more are read
    in pieces."""

    def __post_init__(self) -> None:
        check_least(self, self.name, max_reflections=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """The loop above."""
        history: list[HistoryEntry] = []  # 1
        reviews, rejected = 0, False
        for number in range(1, self.max_steps + 1):  # 2
            last = number == self.max_steps
            with step("plan", number=number):
                plan = None if last else self.plan(footage, question, history, run)  # 3
                if plan is not None and plan.agent != FINISH:
                    history.append(self.send(plan, footage, question, history, run))  # 4 to 6, 8
                    continue
                if plan is not None and self.look_before_finish and uninspected(history):
                    history.append(look_first())
                    continue
                proposal = self.proposed(plan, footage, question, history, run)  # 7
                answer = self.conclude(footage, question, history, proposal)
                run.propose(answer)
                if proposal.abstained or reviews >= self.max_reflections:
                    why = "nothing to review" if proposal.abstained else "reviews are used up"
                    note("not_reviewed", why=why)
                    doubtful = last and rejected and not proposal.abstained
                    return replace(answer, status="not_credible") if doubtful else answer
                reviews += 1
                verdict = self.reflect(footage, question, history, proposal, run)  # 9
                if verdict.credible:
                    return answer  # 10
                rejected = True
                if last:
                    return replace(answer, status="not_credible")
                history.append(rejection(question, proposal, verdict))  # 11
        raise AssertionError("the last plan always ends the loop")

    def plan(
        self, footage: Footage, question: Question, history: Sequence[HistoryEntry], run: Run
    ) -> PlanReply | None:
        """What the planner wants next; ``None`` ends the search, if its reply is unreadable."""
        return ask(
            run["planner"],
            "symphony/plan",
            PlanReply,
            default=None,
            question=question,
            length=length(footage),
            history=written(history),
        )

    def send(
        self,
        plan: PlanReply,
        footage: Footage,
        question: Question,
        history: Sequence[HistoryEntry],
        run: Run,
    ) -> HistoryEntry:
        """Let the chosen agent act; its report becomes an entry of the history."""
        instruct = plan.instruct or question.text
        if plan.agent == GROUNDING:
            before = [entry.scored_for for entry in history if entry.scored_for]
            return self.grounding.ground(footage, question, instruct, run, scored_for=before)
        if plan.agent == PERCEPTION:
            return self.perception.perceive(footage, question, instruct, run)
        return listen(footage, question, instruct, run, most_tokens=self.subtitle_tokens)

    def proposed(
        self,
        plan: PlanReply | None,
        footage: Footage,
        question: Question,
        history: Sequence[HistoryEntry],
        run: Run,
    ) -> Guess:
        """The plan's answer; without one, an answer from the history."""
        if plan is not None and question.options:
            letter = read_letter(plan.answer, question)
            if letter:
                return Guess(letter, "", plan.reason)
        elif plan is not None and plan.answer.strip():
            return Guess(None, plan.answer.strip(), plan.reason)
        return guess(
            run["planner"],
            "symphony/finish",
            question,
            length=length(footage),
            history=written(history),
        )

    def reflect(
        self,
        footage: Footage,
        question: Question,
        history: Sequence[HistoryEntry],
        proposal: Guess,
        run: Run,
    ) -> VerdictReply:
        """Whether search and answer are credible; an unreadable review accepts, with an event."""
        answer = in_words(question, proposal.choice, proposal.text)
        return ask(
            run["reflector"],
            "symphony/reflect",
            VerdictReply,
            default=VerdictReply(credible=True, comment=None),
            question=question,
            length=length(footage),
            history=written(history),
            proposed=phrase("symphony", "proposed", answer=answer),
        )

    def conclude(
        self, footage: Footage, question: Question, history: Sequence[HistoryEntry], proposal: Guess
    ) -> Answer:
        """The answer with its evidence: moments that were looked at, and lines that were quoted."""
        if proposal.abstained:
            return proposal.as_answer()
        about = f"{question.text} {in_words(question, proposal.choice, proposal.text)}"
        looked = sorted({row for entry in history for row in entry.looked})
        quoted = list(dict.fromkeys(line for entry in history for line in entry.quoted))
        evidence = [
            *moments(footage, looked, proposal.reason, about),
            *closest(footage, quoted, about),
        ]
        return proposal.as_answer(evidence=sorted(evidence, key=lambda one: one.segment))


def look_first() -> HistoryEntry:
    """The entry for a finish that was rejected because no agent had looked."""
    text = phrase("symphony", "look_first")
    note("finish_refused", why=text)
    return HistoryEntry(FINISH, phrase("symphony", "proposal"), (text,))


def rejection(question: Question, proposal: Guess, verdict: VerdictReply) -> HistoryEntry:
    """The entry for an answer that was not credible."""
    answer, comment = in_words(question, proposal.choice, proposal.text), verdict.comment or ""
    text = phrase("symphony", "not_credible", answer=answer, comment=comment).strip()
    return HistoryEntry(REFLECTION, phrase("symphony", "review"), (text,))


def moments(footage: Footage, looked: Sequence[int], reason: str, about: str) -> list[Evidence]:
    """Moments that were looked at: those the reason names, then those closest to the answer."""
    if not looked:
        return []
    times = footage.times[list(looked)]
    named: dict[int, None] = {}
    for text in _CLOCK.findall(reason):
        nearest = int(np.abs(times - parse_time(text)).argmin())
        # a time that nobody looked at is no evidence
        if abs(float(times[nearest]) - parse_time(text)) <= 1.0:
            named[looked[nearest]] = None
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
    closeness = likeness(footage, about, [line.text for line in quoted])
    best = np.argsort(-closeness, kind="stable")[:CITED].tolist()
    return [replace(quoted[index], score=round(float(closeness[index]), 4)) for index in best]
