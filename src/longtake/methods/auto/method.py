"""Auto: methods of increasing cost as stages, until the answer can be trusted. Ours.

::

    1  for each stage that can run, in order, with as many frames as fit model, film and budget
    2      answer ← the stage's answer
    3      check the answer against the film, unless the same answer was supported before
    4      leader ← the likeliest answer where a probability is fitted for this model and kind of
           footage; else the latest answer with support, or else the latest
    5      stop at the fitted probability; without a fit, stop when the leader is supported (if it
           rests on words alone, only if no later stage looks at pictures or the question is about
           speech); on footage without pictures, stop at the first answer
    6  return the leader, with its probability if one is fitted

Any installed method can be a stage; ``search@64`` is ``search`` with up to 64 frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from longtake import registry
from longtake.agents.calibration import Vote, find, fits_from, footage_kind, leader, vote_of
from longtake.agents.run import Run, StageRun
from longtake.agents.verify import Checked
from longtake.errors import BudgetSpent, LongtakeError, ModelError
from longtake.footage.protocol import Footage
from longtake.llm.capabilities import capabilities_of
from longtake.llm.chat import Card
from longtake.methods.base import Method, checked_by, configure, has_trait, name_of
from longtake.retrieval.question_kinds import asks_about_speech, asks_for_words
from longtake.tracing.events import STAGE, note, step
from longtake.types import Answer, Question

MIN_FRAMES = 4
"""A call is not worth making with fewer frames."""
MIN_GROWTH = 1.5
"""A further look shows at least this many times the frames of the look before."""
WORDS = 4096
"""Tokens of the context for the words of the prompt and for the reply."""
CALL, CHECK = 800, 1.1
"""Tokens for the words of a call, and the cost of a call with its check relative to the call."""


@dataclass(frozen=True)
class Auto:
    """Begins with the cheapest method and goes on until the answer can be trusted."""

    name: ClassVar[str] = "auto"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm", "captioner")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    verifies: ClassVar[bool] = True
    """Each stage is checked, so that the final answer need not be."""

    stages: tuple[str, ...] = ("lookup", "search@64", "search@256", "videoagent")
    """Methods by growing cost, some with the most frames that they may show."""
    every_stage: bool = False
    """Run every stage whatever the answers, so that ``longtake calibrate`` can compare them."""
    stage_fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The fields of each stage's method; unset: those of its own section."""
    calibration: Sequence[Mapping[str, Any]] = ()
    """The fits in force, as ``longtake calibrate`` writes them."""

    def composed(
        self,
        stage_fields: Mapping[str, Mapping[str, Any]],
        calibration: Sequence[Mapping[str, Any]],
    ) -> Auto:
        """A copy with the settings of its stages and the fits in force."""
        fields = {**stage_fields, **self.stage_fields}
        return replace(self, stage_fields=fields, calibration=self.calibration or calibration)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """The loop above."""
        if asks_for_words(question) and "lookup" in self.stages:
            # words are counted without a model
            answer = self.method("lookup").answer(footage, question, run)
            if answer.status == "answered":
                return answer
        obstacles = {key: obstacle(self.method(key), footage, run) for key in self.stages}
        stages = [key for key, why in obstacles.items() if not why]
        note("planned", stages=stages, skipped={key: why for key, why in obstacles.items() if why})
        return Cascade(self, footage, question, run).answer(stages)

    def method(self, key: str, frames: int | None = None) -> Method:
        """A stage's method with its fields; ``frames`` replaces those that the key asks for."""
        name = name_of(key)
        kind: type[Method] = registry.methods.get(name)
        fields = dict(self.stage_fields.get(key, self.stage_fields.get(name, {})))
        shown = frames_of(key) if frames is None else frames
        return configure(kind, fields if shown is None else {**fields, "frames": shown})


class Cascade:
    """The stages of one question."""

    def __init__(self, settings: Auto, footage: Footage, question: Question, run: Run) -> None:
        self.settings = settings
        self.footage, self.question, self.run = footage, question, run
        fits = fits_from(settings.calibration, "auto.calibration")
        self.fit = find(fits, settings.name, run.names, footage.has, question)
        run.odds = settings.every_stage or (self.fit is not None and self.fit.wants_odds)
        self.votes: list[Vote] = []
        self.checks: list[Checked] = []  # of the votes
        self.leader: int | None = None  # index of the leading vote
        self.probability: float | None = None  # that it is right, if one is fitted
        # the last abstention or error, which counts if nothing leads
        self.outcome: Answer | LongtakeError = Answer(status="abstained")
        self.left: list[str] = []
        self.shown: dict[str, int] = {}  # the most frames of the stages of a name

    def answer(self, stages: Sequence[str]) -> Answer:
        """Lines 1 to 6."""
        self.left = list(stages)
        while self.left:
            key = self.left.pop(0)
            frames = self.frames(key)  # 1
            if frames == 0:
                note("stage_skipped", stage=key, why="hardly more frames fit than were shown")
                continue
            try:
                with step("stage", method=key, number=len(stages) - len(self.left)):
                    self.enter(key, frames)  # 2 to 4
            except BudgetSpent as spent:
                if self.leader is None:
                    raise
                # the leader was complete, and checked, before this stage began
                note("stage_cut", stage=key, why=str(spent))
                break
            except LongtakeError as error:
                note("stage_failed", stage=key, why=str(error))
                self.outcome = error
                self.drop_lost(error)
                continue
            why = self.enough()  # 5
            note("decided", stage=key, stop=bool(why), why=why or "not to be trusted yet")
            if why and not self.settings.every_stage:
                break
        return self.conclude()  # 6

    def frames(self, key: str) -> int | None:
        """The frames that a stage shows, 0 if they are too few; ``None`` if it decides itself."""
        wanted = frames_of(key)
        if wanted is None or "vlm" not in self.run:
            return None
        shown = self.shown.get(name_of(key), 0)
        frames = frames_to_show(wanted, shown, self.footage, self.run)
        # even a stage over budget is tried if there is no answer otherwise
        frames = MIN_FRAMES if not frames and not self.left and self.leader is None else frames
        self.shown[name_of(key)] = max(frames, shown)
        return frames

    def enter(self, key: str, frames: int | None) -> None:
        """Run a stage, check its answer and count its vote, with an event for calibration."""
        stage, method = StageRun(self.run, self.suggest), self.settings.method(key, frames)
        answer = method.answer(self.footage, self.question, stage)
        vote: dict[str, Any] = {"stage": key}
        if answer.is_given:
            self.checks.append(self.check(method, answer, stage))
            self.votes.append(vote_of(key, answer, self.checks[-1]))
            self.leader, self.probability = leader(self.votes, self.question, self.fit)
            self.run.propose(self.conclude(), complete=True)
            vote = asdict(self.votes[-1])
        else:
            self.outcome = answer
        used, kind = stage.usage, footage_kind(self.footage.has)
        tokens = used.tokens_in + used.tokens_out
        note(STAGE, **vote, tokens=tokens, frames=used.frames, footage=kind)

    def check(self, method: Method, answer: Answer, stage: StageRun) -> Checked:
        """The check of an answer; an answer that was already supported is not checked again."""
        asked = Vote("", answer.choice, answer.text)
        cites_itself = has_trait(method, "checks_itself") and answer.evidence
        for vote, known in zip(self.votes, self.checks, strict=True):
            if self.run.checks and not cites_itself and vote.supported and vote.agrees(asked):
                return replace(known, answer=replace(answer, evidence=known.answer.evidence))
        return checked_by(method, answer, self.footage, self.question, stage)

    def suggest(self, answer: Answer) -> None:
        """Propose a stage's answer as long as no stage has concluded."""
        if self.leader is None:
            self.run.propose(answer)

    def drop_lost(self, error: LongtakeError) -> None:
        """Skip the stages that need an unavailable model."""
        if not (isinstance(error, ModelError) and error.problem == "unavailable"):
            return
        # several roles may share the model that failed
        lost = {role for role, model in self.run.names.items() if model == error.model}
        for key in list(self.left):
            if lost & set(self.settings.method(key).roles):
                note("stage_skipped", stage=key, why=f"{error.model} is unavailable")
                self.left.remove(key)

    def enough(self) -> str:
        """Why to stop with the leader; empty if the next stage should run."""
        if self.leader is None:
            return ""
        if self.fit is not None and self.fit.stop_at is not None:
            chance, stop_at = self.probability or 0.0, self.fit.stop_at
            return f"probability {chance:.2f}, {stop_at:.2f} is enough" if chance >= stop_at else ""
        if "pictures" not in self.footage.has:
            return "the first answer: later stages would read the same words"
        vote = self.votes[self.leader]
        if self.run.checks and not vote.supported:
            return ""
        looks = ["vlm" in self.settings.method(key).roles for key in (vote.stage, *self.left)]
        if looks[0] or not any(looks) or asks_about_speech(self.question.text):
            return "the answer is supported" if vote.supported else "answers are not checked"
        return ""

    def conclude(self) -> Answer:
        """The leader with its probability; without one, the last abstention or error."""
        if self.leader is not None:
            return replace(self.checks[self.leader].answer, confidence=self.probability)
        if isinstance(self.outcome, LongtakeError):
            raise self.outcome
        return self.outcome


def obstacle(method: Method, footage: Footage, run: Run) -> str:
    """Why a stage cannot run; empty if it can."""
    for role in method.roles:
        if role == "team" and not run.team:
            return "no team was given"
        if role != "team" and role not in run:
            return f"no model in the role {role}"
    if not footage.has and "captioner" in method.roles:
        return "there is nothing to look at"
    if "vlm" in method.roles and "pictures" not in footage.has:
        return "there are no pictures"
    if "vlm" in method.roles and run["vlm"].card.vision is False:
        return "the model cannot be shown pictures"
    hurried = run.ledger.limits.seconds is not None
    # last, because it reads the film's store
    if has_trait(method, "needs_index") and hurried and not footage.indexed:
        return "the film is not indexed yet, and the time is limited"
    return ""


def frames_of(key: str) -> int | None:
    """The frames that a key asks for: 480 of ``uniform@480``."""
    number = key.partition("@")[2]
    return int(number) if number.isdecimal() else None


def frames_to_show(wanted: int, shown: int, footage: Footage, run: Run) -> int:
    """The frames of a stage, 0 if a call is not worth making; ``shown`` were shown before."""
    fit, limits = min(frames_that_fit(run), len(footage.times)), run.ledger.limits
    frames = min(wanted, fit)
    limited = any(limit is not None for limit in (limits.tokens, limits.cost, limits.frames))
    if limited and wanted < fit < (1 + MIN_GROWTH) * wanted:
        frames = fit  # the rest of the budget would not pay for a second look
    return frames if frames >= max(MIN_FRAMES, MIN_GROWTH * shown) else 0


def frames_that_fit(run: Run) -> int:
    """The most frames that a call may show now."""
    card = run["vlm"].card
    # unless the card says otherwise, a picture is four tiles of 512 pixels at 170 tokens, plus 85,
    # and the context is 32,768; the time of a picture takes 10 tokens
    per_frame = (card.picture_tokens or 765) + 10
    rooms = [((card.context or 32_768) - WORDS) // per_frame]
    rooms += affordable_frames(card, run, per_frame)
    if card.small:
        # small models cannot keep track of more pictures
        rooms.append(32)
    capabilities = capabilities_of(run["vlm"])
    if capabilities is not None and capabilities.images is not None:
        rooms.append(capabilities.images)
    return max(0, min(rooms))


def affordable_frames(card: Card, run: Run, per_frame: int) -> list[int]:
    """The most frames that each budget limit pays for, at ``per_frame`` tokens a frame."""
    limits, spent, rooms = run.ledger.limits, run.usage, []
    if limits.tokens is not None:
        left = limits.tokens - spent.tokens_in - spent.tokens_out
        rooms.append(int((left / CHECK - CALL) // per_frame))
    if limits.cost is not None and card.price is not None and card.price.prompt > 0:
        # the reply costs something too
        left_cost = limits.cost - (spent.cost or 0.0) - card.price.of(CALL, 0, CALL)
        rooms.append(int(left_cost / CHECK / card.price.of(per_frame, 0, 0)))
    if limits.frames is not None:
        rooms.append(int((limits.frames - spent.frames) / CHECK))
    return rooms
