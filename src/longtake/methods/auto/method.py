"""Auto: stages of growing cost, each a method of its own, until the answer can be trusted. Ours.

::

    1  plan ← the stages that can run, from roles, models, footage and film length
    2  while some stage of the plan is worth its cost and the rest of the budget pays for it
    3      answer ← the stage that gains most per token
    4      check the answer against the film, unless the same answer was supported before
    5      p ← probability that the answer is right, from its signals
    6      leader ← the answer for which most speaks, with the probability that it is right
    7      propose the leader; stop if it is likely enough
    8  return the leader

The probabilities come from a calibration (``longtake calibrate``); the one that is shipped was
fitted on development seeds of the laboratory and says so. Stages are taken from the registry, so
any installed method can be one; ``uniform@480`` is ``uniform`` with up to 480 frames. The stage
``search`` is no method: it shows the moments that the index finds for the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from longtake import registry
from longtake.agents import calibration
from longtake.agents.answer import guess, shown_to
from longtake.agents.calibration import (
    LENGTH,
    Calibration,
    StageFacts,
    doublings,
    is_given,
    signals,
)
from longtake.agents.run import Run, StageRun, subtract
from longtake.agents.verify import Checked, check
from longtake.algorithms.question_kinds import asks_for_words, search_kind
from longtake.errors import BudgetSpent, LongtakeError, ModelError, check_least
from longtake.footage.look import Look, look_at
from longtake.footage.protocol import Footage
from longtake.llm.structured.letters import normalized_text
from longtake.methods.auto.plan import (
    LEAST,
    NOTHING,
    Decision,
    Leader,
    Needs,
    NextStage,
    Room,
    Situation,
    StagePlan,
    StageVote,
    decide,
    fitted,
    frames_of,
    frames_that_fit,
    has_to_wait,
    is_limited,
    leader_among,
    limits_frames,
    misfit,
    only_time_is_limited,
    plan,
    same_vote,
    unaffordable,
    usual,
)
from longtake.methods.base import (
    SMALL,
    Bounds,
    Method,
    StageOdds,
    bounds_of,
    checks_itself,
    configure,
    name_of,
    needs_index,
    words,
)
from longtake.prompts import phrase
from longtake.tracing.events import STAGE, note, step
from longtake.types import Answer, Evidence, Line, Question, Segment, Usage

SHIPPED = "calibration.json"
LOOKUP = "lookup"

STAGE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    # chosen on development seeds: a third of the tokens, and nearly the same accuracy
    "symphony": {
        "grounding": {"scored_frames": 10, "max_scorings": 1},
        "perception": {
            "summary_frames": 24,
            "inspector_frames": 16,
            "cue_frames": 4,
            "segment_frames": 24,
        },
    }
}

BRIEF: Mapping[str, Mapping[str, Any]] = {
    # chosen on one half of real captions and held on the other: see docs/auto.md
    "lookup": {"passages_for_options": 2}
}


@dataclass(frozen=True)
class Auto:
    """Begins with the cheapest method and goes on until the answer is likely enough."""

    name: ClassVar[str] = "auto"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm", "captioner")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # the shipped rule was fitted to models that see; with a small one, further stages were
        # measured on real captions to cost tokens and gain nothing once `lookup` has answered
        SMALL: {
            "stages": ("lookup", "videoagent"),
            "stop_at": 0.0,
            "least_gain": 0.0,
            "brief": True,
        }
    }
    verifies: ClassVar[bool] = True
    """Each stage is checked, so that the final answer need not be."""

    stages: tuple[str, ...] = (
        "lookup",
        "search@16",
        "videoagent",
        "search@64",
        "search@256",
        "videodetective",
        "uniform@480",
        "search@480",
        "a4vl",
        "symphony",
    )
    """Methods by growing cost, some with the most frames that they may show."""
    stop_at: float | None = None
    """Probability at which to stop; unset: the calibration's."""
    least_gain: float | None = None
    """Probability that 100,000 more tokens must gain; unset: the calibration's."""
    verify: bool = True
    """Check the answer of every stage; the signals of the check decide where to stop."""
    brief: bool = False
    """Give stages less to read, where a small model was measured to answer as well from less."""
    stop: Literal["calibrated", "stated", "random", "never"] = "calibrated"
    """What decides: the calibrated probability, the confidence that methods state themselves, a
    coin, or nothing, so that all stages run (for ``longtake calibrate`` and comparisons)."""
    stop_chance: float = 0.5
    """For ``stop = random``: the chance to stop after each stage."""
    stage_fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The fields of each stage's method; unset: those of its own section."""
    rule: Mapping[str, Any] = field(default_factory=dict)
    """The calibration, as it was written by ``longtake calibrate``; unset: the shipped one."""

    def __post_init__(self) -> None:
        check_least(self, self.name)

    @property
    def stage_defaults(self) -> Mapping[str, Mapping[str, Any]]:
        """Fields that stages have in place of their methods' defaults."""
        return {**STAGE_DEFAULTS, **(BRIEF if self.brief else {})}

    def composed(
        self, stage_fields: Mapping[str, Mapping[str, Any]], rule: Mapping[str, Any]
    ) -> Auto:
        """The same with the settings of its stages, and the user's calibration if there is one."""
        return replace(
            self, stage_fields={**stage_fields, **self.stage_fields}, rule=self.rule or rule
        )

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """The loop above."""
        if asks_for_words(question) and LOOKUP in self.stages:
            # counting words takes no model, and no model counts better
            answer = self.method(LOOKUP).answer(footage, question, run)
            if answer.status == "answered":
                return answer
        planned = self.plan(footage, question, run)  # 1
        note("planned", stages=list(planned.stages), skipped=dict(planned.skipped))
        return Cascade(self, footage, question, run).answer(planned.stages)  # 2 to 8

    def plan(self, footage: Footage, question: Question, run: Run) -> StagePlan:
        """The stages for this question, with reasons for those left out."""
        needs = {}
        for stage in dict.fromkeys(self.stages):
            needs[stage] = self.needs(stage, footage.duration, question, run)
        return plan(self.stages, needs, situate(footage, run))

    def needs(self, stage: str, duration: float, question: Question, run: Run) -> Needs:
        """What a stage needs of the models."""
        method = self.method(stage)
        index = needs_index(method)
        bounds = bounds_of(method, duration, question)
        # frames that can be chosen, and the calls of longer methods, are fitted to the context
        if bounds is None or bounds.calls != 1 or frames_of(stage) is not None:
            return Needs(method.roles, index=index)
        picture = max((chat.card.picture_tokens or 0 for chat in run.chats), default=0)
        return Needs(method.roles, bounds.frames * picture + bounds.prompt_words, index)

    def method(self, key: str, frames: int | None = None) -> Method:
        """A stage's method with its fields; ``frames`` replaces those that the key asks for."""
        name = name_of(key)
        kind: type[Method] = STEPS[name] if name in STEPS else registry.methods.get(name)
        fields = dict(self.stage_fields.get(key, self.stage_fields.get(name, {})))
        shown = frames_of(key) if frames is None else frames
        if shown is not None:
            fields["frames"] = shown
        return configure(kind, fields, under=self.stage_defaults.get(key))

    @property
    def calibration(self) -> Calibration:
        """The rule in force."""
        return calibration.from_plain(self.rule, "auto.rule") if self.rule else shipped()

    def odds(self, question: Question) -> tuple[StageOdds, ...]:
        """How often each stage is needed, and its usual tokens for such a question."""
        question_kind = search_kind(question.text)
        known = []
        for key in dict.fromkeys(self.stages):
            if key in self.calibration.stages:
                facts = usual(self.calibration.stages[key], question_kind)
                known.append(StageOdds(key, facts.reached, facts.stopped, round(facts.tokens)))
        return tuple(known)

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Every stage runs."""
        total = Bounds(0, 0, 0, 0, 0)
        for stage in self.stages:
            bounds = bounds_of(self.method(stage), duration, question) or Bounds(1, 0, 0, 120, 1)
            total = Bounds(
                total.calls + bounds.calls,
                total.frames + bounds.frames,
                total.prompt_words + bounds.prompt_words,
                total.reply_words + bounds.reply_words,
                total.steps + bounds.steps,
            )
        return total


def situate(footage: Footage, run: Run) -> Situation:
    """What footage and models offer."""
    roles = {role for role in ("llm", "vlm", "captioner") if role in run}
    captions = "captions" in footage.has
    sees = captions or ("vlm" in run and run["vlm"].card.vision is not False)
    contexts = [chat.card.context for chat in run.chats if chat.card.context is not None]
    return Situation(
        roles=frozenset(roles | ({"team"} if run.team else set())),
        sees=sees,
        context=min(contexts, default=None),
        waits=has_to_wait(run.ledger.limits, footage),
    )


def shipped() -> Calibration:
    """The calibration that comes with longtake."""
    return calibration.read(files(__package__) / SHIPPED)  # type: ignore[arg-type]


class Cascade:
    """One question on its way through the stages."""

    def __init__(self, settings: Auto, footage: Footage, question: Question, run: Run) -> None:
        self.settings = settings
        self.footage, self.question, self.run = footage, question, run
        self.rule = settings.calibration
        self.votes: list[StageVote] = []
        self.leader: Leader | None = None
        self.refused: Answer | None = None
        self.failure: LongtakeError | None = None
        self.strangers = [model for model in run.names.values() if not self.rule.knows(model)]
        self.misfit = misfit(self.strangers, footage.has)
        self.length = {LENGTH: round(doublings(footage.duration), 4)}
        self.left: list[str] = []
        self.shown: dict[str, int] = {}
        """The most frames that stages of a name were asked to show."""

    def answer(self, stages: Sequence[str]) -> Answer:
        """Lines 2 to 8."""
        self.left = list(dict.fromkeys(stages))
        turn = self.choose().next  # 2
        number = 0
        while turn is not None:
            self.left.remove(turn.key)
            number += 1
            try:
                with step("stage", method=turn.key, number=number):
                    self.enter(turn)  # 3 to 6
            except BudgetSpent as spent:
                if self.leader is None:
                    raise
                # the leader was complete, and checked, before this stage began
                note("stage_cut", stage=turn.key, why=str(spent))
                break
            except LongtakeError as error:
                note("stage_failed", stage=turn.key, why=str(error))
                self.failure, self.refused = error, None
                self.drop_lost(error)
                turn = self.choose().next
                continue
            turn = self.go_on(turn.key)  # 7
        return self.conclude()  # 8

    def ahead(self) -> list[NextStage]:
        """The stages that can come next; those that the budget does not pay for are dropped."""
        possible = []
        for key in list(self.left):
            each = self.fitted(key)
            why = self.over_budget(each) if isinstance(each, NextStage) else each
            if not why and isinstance(each, NextStage):
                possible.append(each)
            elif self.leader is not None:
                note("stage_skipped", stage=key, why=why)
                self.left.remove(key)
        if possible or self.leader is not None:
            return possible
        # even a stage over budget is tried if there is no answer otherwise
        return self.first()

    def first(self) -> list[NextStage]:
        """The first stage of the list, as small as it can be."""
        return [NextStage(key, key, LEAST if frames_of(key) else None) for key in self.left[:1]]

    def fitted(self, key: str) -> NextStage | str:
        """A stage with as many frames as fit; or why it is not worth a call."""
        name = name_of(key)
        if frames_of(key) is None or "vlm" not in self.run:
            return NextStage(key, key)
        # for a calibration each stage is rated as itself, whatever the old one knows
        known = [] if self.settings.stop == "never" else list(self.rule.stages)
        room = Room(
            min(frames_that_fit(self.run["vlm"], self.run), len(self.footage.times)),
            self.shown.get(name, 0),
            limited=limits_frames(self.run.ledger.limits),
        )
        return fitted(key, room, [frames_of(each) or 0 for each in known if name_of(each) == name])

    def over_budget(self, ahead: NextStage) -> str:
        """Why the rest of the budget does not pay for a stage; empty if it does, or may."""
        facts = usual(
            self.rule.stages.get(ahead.rated, StageFacts()), search_kind(self.question.text)
        )
        if ahead.frames is not None:
            # its frames were fitted to these limits
            facts = replace(facts, tokens=0.0, cost=0.0, frames=0.0)
        return unaffordable(facts, self.run.ledger.limits, self.run.usage)

    def enter(self, turn: NextStage) -> None:
        """Run a stage and rate its answer."""
        before = self.run.usage
        stage = StageRun(self.run, self.suggest)
        answer = self.ask(turn, stage)
        vote = None
        if is_given(answer):
            vote = self.rate(turn, answer, stage)
            self.votes.append(vote)
            self.leader = leader_among(self.votes, self.question, self.rule.pool)
            self.run.propose(self.leading_answer(), complete=True)
        else:
            self.failure, self.refused = None, answer
        self.record(turn.rated, vote, subtract(self.run.usage, before))

    def drop_lost(self, error: LongtakeError) -> None:
        """Leave out the stages that would wait for a model in vain."""
        if not (isinstance(error, ModelError) and error.problem == "unavailable"):
            return
        # several roles may share the model that failed
        lost = {role for role, model in self.run.names.items() if model == error.model}
        for key in list(self.left):
            if lost & set(self.settings.method(key).roles):
                note("stage_skipped", stage=key, why=f"{error.model} is unavailable")
                self.left.remove(key)

    def ask(self, turn: NextStage, stage: StageRun) -> Answer:
        """The answer of a stage's method."""
        if turn.frames is not None:
            name = name_of(turn.key)
            self.shown[name] = max(turn.frames, self.shown.get(name, 0))
        method = self.settings.method(turn.key, turn.frames)
        return method.answer(self.footage, self.question, stage)

    def rate(self, turn: NextStage, answer: Answer, stage: StageRun) -> StageVote:
        """An answer with its check and its probability (lines 4 and 5)."""
        key = turn.rated
        checked = self.check(answer, stage, itself=checks_itself(self.settings.method(key)))
        measured = signals(answer, checked, self.question, self.footage.duration)
        chance = self.rule.confidence(key, measured)
        # a method that no calibration knows is taken at its word, else at even odds
        if self.settings.stop == "stated" or chance is None:
            chance = answer.confidence if answer.confidence is not None else 0.5
        return StageVote(key, checked, chance, measured)

    def check(self, answer: Answer, stage: StageRun, *, itself: bool) -> Checked:
        """The check of an answer, once for each different answer that found support."""
        if itself and answer.evidence:
            return Checked(answer, done=True, supports=len(answer.evidence))
        if not (self.settings.verify and self.run.checks):
            return Checked(answer)
        # the same answer with support needs no second check
        for vote in self.votes:
            if vote.checked.supports and same_vote(vote.answer, answer):
                evidence = vote.answer.evidence
                return replace(vote.checked, answer=replace(answer, evidence=evidence))
        return check(answer, self.footage, self.question, stage)

    def suggest(self, answer: Answer) -> None:
        """A stage's own proposal counts while no stage has concluded."""
        if self.leader is None:
            self.run.propose(answer)

    def go_on(self, key: str) -> NextStage | None:
        """The stage after this one, ``None`` to stop; the decision is an event."""
        decision = self.choose(key)
        if self.leader is None:
            note("decided", stage=key, stop=decision.next is None, why="no answer yet")
            return decision.next
        chance, stops = self.leader.probability, decision.next is None
        note("decided", stage=key, stop=stops, probability=chance, why=decision.why)
        return decision.next

    def choose(self, key: str = "") -> Decision:
        """The rule in force, or what replaces it in comparisons."""
        settings, rule = self.settings, self.rule
        ahead = self.ahead()
        following = ahead[0] if ahead else None
        stop_at = rule.stop_at if settings.stop_at is None else settings.stop_at
        by_calls = only_time_is_limited(self.run.ledger.limits)
        question_kind = search_kind(self.question.text)
        if self.leader is None:
            if has_to_wait(self.run.ledger.limits, self.footage):
                # how long decoding many frames takes is not known, and a first answer comes first
                return Decision(next(iter(self.first()), None), "the film is not indexed yet")
            first = Decision(following, "the first stage")
            if settings.stop == "calibrated":
                known = {NOTHING: 1.0, **self.length}
                first = decide(
                    rule,
                    0.0,
                    known,
                    question_kind,
                    ahead,
                    stop_at=1.0,
                    least_gain=0.0,
                    by_calls=by_calls,
                )
            return first if first.next else Decision(following, "no answer yet")
        chance = self.leader.probability
        # the rest of the rules exist for comparisons, except the calibrated one at the end
        if settings.stop == "never":
            return Decision(following, "all stages were asked for")
        if settings.stop == "random":
            drawn = self.run.random("stop", self.question.text, key).random()
            return Decision(None if drawn < settings.stop_chance else following, "by chance")
        if settings.stop == "stated":
            why = f"the stages state {chance:.2f}"
            return Decision(None if chance >= stop_at else following, why)
        # a probability that was set by hand outweighs the doubt about the rule
        if self.misfit and settings.stop_at is None:
            return Decision(None, self.misfit)
        known = dict(self.leader.signals)
        return decide(
            rule,
            chance,
            known,
            question_kind,
            ahead,
            stop_at=stop_at,
            least_gain=self.least_gain(),
            by_calls=by_calls,
        )

    def least_gain(self) -> float:
        """What 100,000 more tokens must gain; under a budget anything, since it is to be used."""
        if self.settings.least_gain is not None:
            return self.settings.least_gain
        return 0.0 if is_limited(self.run.ledger.limits) else self.rule.least_gain

    def record(self, key: str, vote: StageVote | None, used: Usage) -> None:
        """The event that a calibration is fitted from; it holds no label."""
        fields: dict[str, Any] = {
            "stage": key,
            "tokens": used.tokens_in + used.tokens_out,
            "frames": used.frames,
            "calls": used.calls,
            "seconds": used.seconds,
            "cost": used.cost,
        }
        if vote is not None and self.leader is not None:
            leading = self.leader.vote.answer
            fields |= {
                "choice": vote.answer.choice,
                "text": vote.answer.text,
                "signals": dict(vote.signals),
                "probability": vote.probability,
                "leader": leading.choice or normalized_text(leading.text),
                "standing": self.leader.probability,
                "standing_signals": dict(self.leader.signals),
            }
        note(STAGE, **fields)

    def leading_answer(self) -> Answer:
        """The leader with its probability as confidence, if that was fitted to these models."""
        assert self.leader is not None
        if self.settings.stop == "calibrated" and self.strangers:
            return replace(self.leader.vote.answer, confidence=None)
        chance = self.leader.probability
        # the correction is learned from where the rule stops; a budget stops elsewhere
        if self.settings.stop == "calibrated" and not is_limited(self.run.ledger.limits):
            chance = self.rule.final_probability(chance, search_kind(self.question.text))
        return replace(self.leader.vote.answer, confidence=chance)

    def conclude(self) -> Answer:
        """The leader; without one, the last abstention or error, whichever came later."""
        if self.leader is not None:
            return self.leading_answer()
        if self.failure is not None:
            raise self.failure
        return self.refused or Answer(status="abstained")


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


STEPS: Mapping[str, type[Method]] = {SearchStage.name: SearchStage}
"""Stages that are no methods by themselves."""


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
