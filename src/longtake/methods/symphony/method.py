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
NO_CUT = 1_000_000
"""Tokens: more than the subtitles of any film."""
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


@dataclass
class SearchState:
    """The state of a search."""

    footage: Footage
    question: Question
    run: Run
    history: list[HistoryEntry] = field(default_factory=list)
    reviews: int = 0
    """Proposals that were reviewed."""
    rejected: bool = False
    """Whether one of them was not credible."""
    answer: Answer = field(default_factory=lambda: Answer(status="abstained"))
    """The latest proposal."""

    def told(self) -> dict[str, Any]:
        """Question, length and history, as slots of the prompts of those who never look."""
        told = written(self.history)
        return {"question": self.question, "length": length(self.footage), "history": told}


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
            "subtitle_tokens": NO_CUT,
            "grounding": Grounding(max_scorings=NO_LIMIT, named_times=False, report_share=1.0),
            "perception": Perception(max_tool_calls=NO_LIMIT, show_question=False),
        },
        "released": {
            "look_before_finish": False,
            "unfinished": "no_answer",
            "subtitle_tokens": NO_CUT,
            "grounding": Grounding(
                retrieved_seconds=None,
                scored_seconds=30.0,
                scored_frames=15,
                scored_every=2.0,
                by_time=True,
                max_scorings=NO_LIMIT,
                report_share=1.0,
            ),
            "perception": Perception(
                max_tool_calls=6,
                inspector_frames=70,
                inspector_rate=1.0,
                least_seconds=0,
                most_seconds=None,
                cue_frames=20,
                cue_seconds=0,
                cue_apart=None,
                summary_frames=30,
                summary_seconds=0,
                summary_ends=False,
                show_question=False,
            ),
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
    """Steps of the planner; on the last it can only finish (``unfinished``)."""
    unfinished: Literal["answer", "no_answer"] = "answer"
    """On the last step, and after an unreadable plan, the planner answers from the history; or, as
    released, it plans on every step, and a search that ends without an accepted answer has none."""
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
        search = SearchState(footage, question, run)  # 1
        for number in range(1, self.max_steps + 1):  # 2
            last = number == self.max_steps
            with step("plan", number=number):
                plan = self.plan(search, last=last)  # 3
                if plan is not None and plan.agent != FINISH:
                    search.history.append(self.send(plan, search))  # 4 to 6, 8
                elif plan is not None and self.look_before_finish and uninspected(search.history):
                    search.history.append(look_first())
                elif plan is not None or self.unfinished == "answer":
                    proposal = self.propose(plan, search)  # 7
                    verdict = self.review(search, proposal, last=last)  # 9
                    if verdict.credible:
                        return search.answer  # 10
                    search.history.append(rejection(question, proposal, verdict))  # 11
        if self.unfinished == "no_answer":
            return Answer(status="abstained")
        return replace(search.answer, status="not_credible")

    def plan(self, search: SearchState, *, last: bool) -> PlanReply | None:
        """What the planner wants next; ``None`` on the last step, or if its reply is unreadable."""
        if last and self.unfinished == "answer":
            return None
        planner = search.run["planner"]
        return ask(planner, "symphony/plan", PlanReply, default=None, **search.told())

    def send(self, plan: PlanReply, search: SearchState) -> HistoryEntry:
        """Let the chosen agent act; its report becomes an entry of the history."""
        footage, question, run = search.footage, search.question, search.run
        instruct = plan.instruct or question.text
        if plan.agent == GROUNDING:
            before = [entry.scored_for for entry in search.history if entry.scored_for]
            return self.grounding.ground(footage, question, instruct, run, scored_for=before)
        if plan.agent == PERCEPTION:
            return self.perception.perceive(footage, question, instruct, run)
        return listen(footage, question, instruct, run, most_tokens=self.subtitle_tokens)

    def propose(self, plan: PlanReply | None, search: SearchState) -> Guess:
        """The planner's proposal, with its evidence."""
        proposal = self.proposed(plan, search)
        search.answer = self.conclude(search, proposal)
        search.run.propose(search.answer)
        return proposal

    def proposed(self, plan: PlanReply | None, search: SearchState) -> Guess:
        """The plan's answer; without one, an answer from the history."""
        question = search.question
        if plan is not None and question.options:
            letter = read_letter(plan.answer, question)
            if letter:
                return Guess(letter, "", plan.reason)
        elif plan is not None and plan.answer.strip():
            return Guess(None, plan.answer.strip(), plan.reason)
        slots = search.told()
        return guess(search.run["planner"], "symphony/finish", slots.pop("question"), **slots)

    def review(self, search: SearchState, proposal: Guess, *, last: bool) -> VerdictReply:
        """Whether a proposal stands: as reflection says, while reviews are left.

        Later ones stand without a review, unless the steps run out after a rejection.
        """
        if not proposal.abstained and search.reviews < self.max_reflections:
            search.reviews += 1
            verdict = self.reflect(search, proposal)
            search.rejected |= not verdict.credible
            return verdict
        why = "nothing to review" if proposal.abstained else "reviews are used up"
        note("not_reviewed", why=why)
        doubtful = last and search.rejected and self.unfinished == "answer"
        return VerdictReply(credible=proposal.abstained or not doubtful, comment=None)

    def reflect(self, search: SearchState, proposal: Guess) -> VerdictReply:
        """Whether search and answer are credible; an unreadable review accepts, with an event."""
        answer = in_words(search.question, proposal.choice, proposal.text)
        return ask(
            search.run["reflector"],
            "symphony/reflect",
            VerdictReply,
            default=VerdictReply(credible=True, comment=None),
            proposed=phrase("symphony", "proposed", answer=answer),
            **search.told(),
        )

    def conclude(self, search: SearchState, proposal: Guess) -> Answer:
        """The answer with its evidence: moments that were looked at, and lines that were quoted."""
        if proposal.abstained:
            return proposal.as_answer()
        footage, question = search.footage, search.question
        about = f"{question.text} {in_words(question, proposal.choice, proposal.text)}"
        looked = sorted({row for entry in search.history for row in entry.looked})
        quoted = list(dict.fromkeys(line for entry in search.history for line in entry.quoted))
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
