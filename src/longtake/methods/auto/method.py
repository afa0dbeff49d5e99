"""Auto: stages of growing cost, each a method of its own, until the answer can be trusted. Ours.

::

    1  plan ← the stages that can run, from roles, models, footage and film length
    2  while some stage of the plan is worth its cost and the rest of the budget pays for it
    3      answer ← the stage that gains most per token, with what earlier stages noted
    4      check the answer against the film, unless the same answer was supported before
    5      p ← probability that the answer is right, from its signals
    6      leader ← the answer for which most speaks, with the probability that it is right
    7      propose the leader; stop if it is likely enough
    8  return the leader

The probabilities come from a calibration (``longtake calibrate``); the one that is shipped was
fitted on development seeds of the laboratory and says so. Stages are taken from the registry, so
any installed method can be one; ``uniform@480`` is ``uniform`` with up to 480 frames. Two stages
are no methods: ``search`` shows the moments that the index finds for the question, and ``notes``
puts the question once more, with everything that models told about pictures so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, ClassVar, Literal

from longtake import registry
from longtake.algorithms.asking import kind
from longtake.errors import check_least
from longtake.events import note
from longtake.footage.protocol import Footage
from longtake.methods.auto.planning import NOTES, Needs, Plan, Situation, has_to_wait, plan
from longtake.methods.auto.searching import Search
from longtake.methods.auto.stages import Hunt
from longtake.methods.auto.stopping import frames_of, keys, usual
from longtake.methods.base import (
    SMALL,
    Bounds,
    Method,
    StageOdds,
    bounds_of,
    configure,
    name_of,
    needs_index,
)
from longtake.steps import calibration
from longtake.steps.calibration import Calibration
from longtake.steps.run import Run
from longtake.types import Answer, Question

SHIPPED = "calibration.json"
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
STEPS: Mapping[str, type[Method]] = {Search.name: Search}
"""Stages that are no methods by themselves."""


@dataclass(frozen=True)
class Auto:
    """Begins with the cheapest method and goes on until the answer is likely enough."""

    name: ClassVar[str] = "auto"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm", "captioner")
    optional_roles: ClassVar[tuple[str, ...]] = ("team",)
    """Filled only if the user gives a team."""
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
        "notes",
        "uniform@480",
        "search@480",
        "a4vl",
        "symphony",
        "notes",
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
    handover: bool = True
    """Keep notes and replies for later stages."""
    stop: Literal["calibrated", "stated", "random", "never"] = "calibrated"
    """What decides: the calibrated probability, the confidence that methods state themselves, a
    coin, or nothing, so that all stages run (for ``longtake calibrate`` and comparisons)."""
    stop_chance: float = 0.5
    """For ``stop = random``: the chance to stop after each stage."""
    max_notes: int = 40
    """Statements shown at once, at most; those closest to the question and its options."""
    stage_fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The fields of each stage's method; unset: those of its own section."""
    rule: Mapping[str, Any] = field(default_factory=dict)
    """The calibration, as it was written by ``longtake calibrate``; unset: the shipped one."""

    def __post_init__(self) -> None:
        check_least(self, self.name, max_notes=1)

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
        planned = self.plan(footage, question, run)  # 1
        note("planned", stages=list(planned.stages), skipped=dict(planned.skipped))
        return Hunt(self, footage, question, run).through(planned.stages)  # 2 to 8

    def plan(self, footage: Footage, question: Question, run: Run) -> Plan:
        """The stages for this question, with reasons for those left out."""
        needs = {}
        for stage in dict.fromkeys(self.stages):
            if name_of(stage) != NOTES:
                needs[stage] = self.needs(stage, footage.duration, question, run)
        return plan(self.stages, needs, situate(footage, run))

    def needs(self, stage: str, duration: float, question: Question, run: Run) -> Needs:
        """What a stage needs of the models."""
        method = self.method(stage)
        index = needs_index(method)
        most = bounds_of(method, duration, question)
        # frames that can be chosen, and the calls of longer methods, are fitted to the context
        if most is None or most.calls != 1 or frames_of(stage) is not None:
            return Needs(method.roles, index=index)
        picture = max((chat.card.picture_tokens or 0 for chat in run.chats), default=0)
        return Needs(method.roles, most.frames * picture + most.prompt_words, index)

    def method(self, key: str, frames: int | None = None) -> Method:
        """A stage's method with its fields; ``frames`` replaces those that the key asks for."""
        name, stage = name_of(key), key.partition("#")[0]
        kind: type[Method] = STEPS[name] if name in STEPS else registry.methods.get(name)
        fields = dict(self.stage_fields.get(stage, self.stage_fields.get(name, {})))
        shown = frames_of(key) if frames is None else frames
        if shown is not None:
            fields["frames"] = shown
        return configure(kind, fields, under=self.stage_defaults.get(stage))

    @property
    def calibration(self) -> Calibration:
        """The rule in force."""
        return calibration.from_plain(self.rule, "auto.rule") if self.rule else shipped()

    def odds(self, question: Question) -> tuple[StageOdds, ...]:
        """How often each stage is needed, and its usual tokens for such a question."""
        asked = kind(question.text)
        known = []
        for key in keys(self.stages):
            if key in self.calibration.stages:
                facts = usual(self.calibration.stages[key], asked)
                known.append(StageOdds(key, facts.reached, facts.stopped, round(facts.tokens)))
        return tuple(known)

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Every stage runs."""
        total = Bounds(0, 0, 0, 0, 0)
        for stage in self.stages:
            own = Bounds(1, 0, 40 * self.max_notes, 120, 1)
            if name_of(stage) != NOTES:
                own = bounds_of(self.method(stage), duration, question) or own
            total = Bounds(
                total.calls + own.calls,
                total.frames + own.frames,
                total.prompt_words + own.prompt_words,
                total.reply_words + own.reply_words,
                total.steps + own.steps,
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
