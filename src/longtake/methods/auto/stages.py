"""One question on its way through the stages of ``auto``; the numbers are lines of its loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longtake.algorithms.asking import kind
from longtake.errors import BudgetSpent, LongtakeError, ModelError
from longtake.events import STAGE, note, step
from longtake.footage.protocol import Footage
from longtake.methods.auto.fitting import LEAST, Room, fitted, frames_that_fit, limits_frames
from longtake.methods.auto.notes import merged, relevant, split
from longtake.methods.auto.planning import (
    NOTES,
    has_to_wait,
    is_limited,
    misfit,
    only_time_is_limited,
    unaffordable,
)
from longtake.methods.auto.stopping import (
    NOTHING,
    Ahead,
    Decision,
    decide,
    follows,
    frames_of,
    keys,
    usual,
)
from longtake.methods.auto.voices import Standing, Voice, same_vote, standing
from longtake.methods.base import checks_itself, name_of
from longtake.models.replies.letters import plain
from longtake.steps.answer import guess
from longtake.steps.calibration import StageFacts
from longtake.steps.run import Run
from longtake.steps.showing import length
from longtake.steps.signals import LENGTH, doublings, is_given, signals
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
        self.misfit = misfit(self.rule, run.names.values(), footage.has)
        self.length = {LENGTH: round(doublings(footage.duration), 4)}
        self.left: list[str] = []
        self.after: dict[str, str] = {}
        self.ran: set[str] = set()
        self.shown: dict[str, int] = {}
        """The most frames that stages of a name were asked to show."""

    def through(self, stages: Sequence[str]) -> Answer:
        """Lines 2 to 8."""
        self.left = keys(stages)
        self.after = follows(self.left)
        turn = self.choose().next  # 2
        number = 0
        while turn is not None:
            self.left.remove(turn.key)
            self.ran.add(turn.key)
            number += 1
            try:
                with step("stage", method=turn.key, number=number):
                    self.enter(turn)  # 3 to 6
            except BudgetSpent as spent:
                if self.standing is None:
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

    def ahead(self) -> list[Ahead]:
        """The stages that can come next; those that the budget does not pay for are dropped."""
        possible = []
        for key in list(self.left):
            before = self.after.get(key)
            if before in self.left:
                continue  # notes follow the stage before them
            each = self.fitted(key) if before is None or before in self.ran else "nothing to note"
            why = self.too_dear(each) if isinstance(each, Ahead) else each
            if not why and isinstance(each, Ahead):
                possible.append(each)
            elif self.standing is not None:
                note("stage_skipped", stage=key, why=why)
                self.left.remove(key)
        if possible or self.standing is not None:
            return possible
        # even a stage that is too dear is tried if there is no answer otherwise
        return self.first()

    def first(self) -> list[Ahead]:
        """The first stage of the list, as small as it can be."""
        first = [key for key in self.left if key not in self.after][:1]
        return [Ahead(key, key, LEAST if frames_of(key) else None) for key in first]

    def fitted(self, key: str) -> Ahead | str:
        """A stage with as many frames as fit; or why it is not worth a call."""
        name = name_of(key)
        if frames_of(key) is None or "vlm" not in self.run:
            return Ahead(key, key)
        # for a calibration each stage is rated as itself, whatever the old one knows
        known = [] if self.settings.stop == "never" else list(self.rule.stages)
        room = Room(
            min(frames_that_fit(self.run["vlm"], self.run), len(self.footage.times)),
            self.shown.get(name, 0),
            limited=limits_frames(self.run.ledger.limits),
        )
        return fitted(key, room, [frames_of(each) or 0 for each in known if name_of(each) == name])

    def too_dear(self, ahead: Ahead) -> str:
        """Why the rest of the budget does not pay for a stage; empty if it does, or may."""
        facts = usual(self.rule.stages.get(ahead.rated, StageFacts()), kind(self.question.text))
        if ahead.frames is not None:
            # its frames were fitted to these limits
            facts = replace(facts, tokens=0.0, cost=0.0, frames=0.0)
        return unaffordable(facts, self.run.ledger.limits, self.run.usage)

    def enter(self, turn: Ahead) -> None:
        """Run a stage and hear its answer."""
        before = self.run.usage
        stage = StageRun(self.run, self.notebook, self.suggest)
        settles = name_of(turn.key) == NOTES
        answer = self.settle(stage) if settles else self.ask(turn, stage)
        voice = None
        if answer is not None and is_given(answer):
            voice = self.heard(turn, answer, stage)
            self.voices.append(voice)
            self.standing = standing(self.voices, self.question, self.rule.pool)
            self.run.propose(self.leading(), complete=True)
        elif answer is not None:
            self.failure, self.refused = None, answer
        self.tell(turn.rated, voice, subtract(self.run.usage, before))

    def drop_lost(self, error: LongtakeError) -> None:
        """Leave out the stages that would wait for a model in vain."""
        if not (isinstance(error, ModelError) and error.problem == "unavailable"):
            return
        lost = {role for role, model in self.run.names.items() if model == error.model}
        for key in list(self.left):
            if lost & set(self.roles(key)):
                note("stage_skipped", stage=key, why=f"{error.model} is unavailable")
                self.left.remove(key)

    def roles(self, key: str) -> tuple[str, ...]:
        """The roles whose models a stage asks."""
        return ("llm",) if name_of(key) == NOTES else self.settings.method(key).roles

    def ask(self, turn: Ahead, stage: StageRun) -> Answer:
        """The answer of a stage's method."""
        if turn.frames is not None:
            name = name_of(turn.key)
            self.shown[name] = max(turn.frames, self.shown.get(name, 0))
        method = self.settings.method(turn.key, turn.frames)
        return method.answer(self.footage, self.question, stage)

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

    def heard(self, turn: Ahead, answer: Answer, stage: StageRun) -> Voice:
        """An answer with its check and its probability (lines 4 and 5)."""
        key = turn.rated
        method = None if name_of(key) == NOTES else self.settings.method(key)
        checked = self.check(answer, stage, itself=method is not None and checks_itself(method))
        found = signals(answer, checked, self.question, self.footage.duration)
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

    def go_on(self, key: str) -> Ahead | None:
        """The stage after this one, ``None`` to stop; the decision is an event."""
        decision = self.choose(key)
        if self.standing is None:
            note("decided", stage=key, stop=decision.next is None, why="no answer yet")
            return decision.next
        chance, stops = self.standing.probability, decision.next is None
        note("decided", stage=key, stop=stops, probability=chance, why=decision.why)
        return decision.next

    def choose(self, key: str = "") -> Decision:
        """The rule in force, or what replaces it in comparisons."""
        settings, rule = self.settings, self.rule
        ahead = self.ahead()
        following = ahead[0] if ahead else None
        stop_at = rule.stop_at if settings.stop_at is None else settings.stop_at
        least = self.least_gain()
        by_calls = only_time_is_limited(self.run.ledger.limits)
        asked = kind(self.question.text)
        if self.standing is None:
            if has_to_wait(self.run.ledger.limits, self.footage):
                # how long decoding many frames takes is not known, and a first answer comes first
                return Decision(next(iter(self.first()), None), "the film is not indexed yet")
            first = Decision(following, "the first stage")
            if settings.stop == "calibrated":
                known = {NOTHING: 1.0, **self.length}
                first = decide(
                    rule, 0.0, known, asked, ahead, stop_at=1.0, least_gain=0.0, by_calls=by_calls
                )
            return first if first.next else Decision(following, "no answer yet")
        chance = self.standing.probability
        if settings.stop == "never":
            return Decision(following, "all stages were asked for")
        if settings.stop == "random":
            drawn = self.run.random("stop", self.question.text, key).random()
            return Decision(None if drawn < settings.stop_chance else following, "by chance")
        if settings.stop == "stated":
            told = f"the stages state {chance:.2f}"
            return Decision(None if chance >= stop_at else following, told)
        if self.misfit and settings.stop_at is None:
            return Decision(None, self.misfit)
        known = dict(self.standing.signals)
        return decide(
            rule, chance, known, asked, ahead, stop_at=stop_at, least_gain=least, by_calls=by_calls
        )

    def least_gain(self) -> float:
        """What 100,000 more tokens must gain; under a budget anything, since it is to be used."""
        if self.settings.least_gain is not None:
            return self.settings.least_gain
        return 0.0 if is_limited(self.run.ledger.limits) else self.rule.least_gain

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
        chance = self.standing.probability
        # the correction is learned from where the rule stops; a budget stops elsewhere
        if self.settings.stop == "calibrated" and not is_limited(self.run.ledger.limits):
            chance = self.rule.final_probability(chance, kind(self.question.text))
        return replace(self.standing.voice.answer, confidence=chance)

    def conclude(self) -> Answer:
        """The leader; without one, the last abstention or error, whichever came later."""
        if self.standing is not None:
            return self.leading()
        if self.failure is not None:
            raise self.failure
        return self.refused or Answer(status="abstained")
