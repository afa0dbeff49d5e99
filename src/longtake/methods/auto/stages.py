"""One question on its way through the stages of ``auto``; the numbers are lines of its loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longtake.algorithms.asking import kind
from longtake.errors import BudgetSpent, LongtakeError
from longtake.events import STAGE, note, step
from longtake.footage.protocol import Footage
from longtake.methods.auto.notes import merged, relevant, split
from longtake.methods.auto.planning import NOTES, unaffordable
from longtake.methods.auto.stopping import Decision, decide, keys, name_of, usual
from longtake.methods.auto.voices import Standing, Voice, same_vote, standing
from longtake.methods.base import checks_itself
from longtake.models.replies.letters import plain
from longtake.steps.answer import guess
from longtake.steps.calibration import StageFacts
from longtake.steps.run import Run
from longtake.steps.showing import length
from longtake.steps.signals import is_given, signals
from longtake.steps.stage import Notebook, StageRun, subtract
from longtake.steps.verify import Checked, check
from longtake.types import Answer, Line, Question, Usage

if TYPE_CHECKING:
    from longtake.methods.auto.method import Auto


class Hunt:
    """One question on its way through the stages."""

    def __init__(self, settings: Auto, footage: Footage, question: Question, run: Run) -> None:
        self.settings = settings
        self.footage, self.question, self.run = footage, question, run
        self.rule = settings.calibration
        self.notebook = Notebook() if settings.handover else None
        self.voices: list[Voice] = []
        self.standing: Standing | None = None
        self.refused: Answer | None = None
        self.failure: LongtakeError | None = None

    def through(self, stages: Sequence[str]) -> Answer:
        """Lines 2 to 8."""
        named = keys(stages)
        for number, key in enumerate(named, start=1):
            why = self.too_dear(key)  # 2
            if why and self.standing is not None:
                note("stage_skipped", stage=key, why=why)
                continue
            try:
                with step("stage", method=key, number=number):
                    self.enter(key)  # 3 to 6
            except BudgetSpent as spent:
                if self.standing is None:
                    raise
                # the leader was complete, and checked, before this stage began
                note("stage_cut", stage=key, why=str(spent))
                break
            except LongtakeError as error:
                note("stage_failed", stage=key, why=str(error))
                self.failure = error
                continue
            if self.enough(key, named[number:]):  # 7
                break
        return self.conclude()  # 8

    def too_dear(self, key: str) -> str:
        """Why the rest of the budget does not pay for a stage; empty if it does, or may."""
        facts = usual(self.rule.stages.get(key, StageFacts()), kind(self.question.text))
        return unaffordable(facts, self.run.ledger.limits, self.run.usage)

    def enter(self, key: str) -> None:
        """Run a stage and hear its answer."""
        before = self.run.usage
        stage = StageRun(self.run, self.notebook, self.suggest)
        name = name_of(key)
        answer = self.settle(stage) if name == NOTES else self.ask(name, stage)
        voice = None
        if answer is not None and is_given(answer):
            voice = self.heard(key, answer, stage)
            self.voices.append(voice)
            self.standing = standing(self.voices, self.question, self.rule.pool)
            self.run.propose(self.leading())
        elif answer is not None:
            self.refused = answer
        self.tell(key, voice, subtract(self.run.usage, before))

    def ask(self, name: str, stage: StageRun) -> Answer:
        """The answer of a stage's method."""
        return self.settings.method(name).answer(self.footage, self.question, stage)

    def settle(self, stage: StageRun) -> Answer | None:
        """The question once more, with everything noted; ``None`` if that adds nothing."""
        lines = self.notes()
        if not lines or len({name_of(voice.stage) for voice in self.voices} - {NOTES}) < 2:
            note("stage_skipped", stage=NOTES, why="no two stages noted anything")
            return None
        said = guess(
            stage["llm"], "auto/settle", self.question, length=length(self.footage), notes=lines
        )
        return said.as_answer()

    def notes(self) -> list[Line]:
        """What was told about pictures and what was cited: the statements that matter most."""
        noted = [] if self.notebook is None else self.notebook.lines
        for voice in self.voices:
            cited = [each for each in voice.answer.evidence if each.text]
            noted += [Line(each.segment, each.text) for each in cited]
        lines = merged(statement for line in noted for statement in split(line))
        return relevant(self.footage, self.question, lines, self.settings.max_notes)

    def heard(self, key: str, answer: Answer, stage: StageRun) -> Voice:
        """An answer with its check and its probability (lines 4 and 5)."""
        name = name_of(key)
        method = None if name == NOTES else self.settings.method(name)
        checked = self.check(answer, stage, itself=method is not None and checks_itself(method))
        found = signals(answer, checked, self.question)
        chance = self.rule.confidence(key, found)
        if self.settings.stop == "stated" or chance is None:
            chance = answer.confidence if answer.confidence is not None else 0.5
        return Voice(key, checked, chance, found)

    def check(self, answer: Answer, stage: StageRun, *, itself: bool) -> Checked:
        """The check of an answer, once for each different answer that found support."""
        if itself and answer.evidence:
            return Checked(answer, done=True, supports=len(answer.evidence))
        if not (self.settings.verify and self.run.checks):
            return Checked(answer)
        for voice in self.voices:
            if voice.checked.supports and same_vote(voice.answer, answer):
                evidence = voice.answer.evidence
                return replace(voice.checked, answer=replace(answer, evidence=evidence))
        return check(answer, self.footage, self.question, stage)

    def suggest(self, answer: Answer) -> None:
        """A stage's own proposal counts while no stage has concluded."""
        if self.standing is None:
            self.run.propose(answer)

    def enough(self, key: str, ahead: Sequence[str]) -> bool:
        """Whether to stop after a stage; the decision is an event."""
        if self.standing is None:
            note("decided", stage=key, stop=False, why="no answer yet")
            return False
        decision = self.decision(key, self.standing, ahead)
        chance = self.standing.probability
        note("decided", stage=key, stop=decision.stop, probability=chance, why=decision.why)
        return decision.stop

    def decision(self, key: str, standing: Standing, ahead: Sequence[str]) -> Decision:
        """The rule in force, or what replaces it in comparisons."""
        settings, rule = self.settings, self.rule
        stop_at = rule.stop_at if settings.stop_at is None else settings.stop_at
        if settings.stop == "never":
            return Decision(False, "all stages were asked for")
        if settings.stop == "random":
            drawn = self.run.random("stop", self.question.text, key).random()
            return Decision(drawn < settings.stop_chance, "by chance")
        if settings.stop == "stated":
            told = f"the stages state {standing.probability:.2f}"
            return Decision(standing.probability >= stop_at, told)
        least = rule.least_gain if settings.least_gain is None else settings.least_gain
        return decide(
            rule,
            standing.probability,
            standing.signals,
            kind(self.question.text),
            ahead,
            stop_at=stop_at,
            least_gain=least,
        )

    def tell(self, key: str, voice: Voice | None, used: Usage) -> None:
        """The event that a calibration is fitted from; it holds no label."""
        told: dict[str, Any] = {
            "stage": key,
            "tokens": used.tokens_in + used.tokens_out,
            "frames": used.frames,
            "calls": used.calls,
            "seconds": used.seconds,
            "cost": used.cost,
        }
        if voice is not None and self.standing is not None:
            leader = self.standing.voice.answer
            told |= {
                "choice": voice.answer.choice,
                "text": voice.answer.text,
                "signals": dict(voice.signals),
                "probability": voice.probability,
                "leader": leader.choice or plain(leader.text),
                "standing": self.standing.probability,
                "standing_signals": dict(self.standing.signals),
            }
        note(STAGE, **told)

    def leading(self) -> Answer:
        """The leader with its probability as confidence."""
        assert self.standing is not None
        return replace(self.standing.voice.answer, confidence=self.standing.probability)

    def conclude(self) -> Answer:
        """The leader; without one, the last abstention, or else the last error."""
        if self.standing is not None:
            return self.leading()
        if self.refused is not None or self.failure is None:
            return self.refused or Answer(status="abstained")
        raise self.failure
