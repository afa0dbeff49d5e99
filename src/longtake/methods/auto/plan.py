"""Which stage comes next, with how many frames, when to stop, and which answer leads.

Pure functions of what is known: roles, models, the film, the budget, the calibration, and what the
stages before have answered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from longtake.agents.calibration import LENGTH, ODDS, SUPPORTED, Calibration, StageFacts, weighed
from longtake.agents.run import Run
from longtake.agents.verify import Checked
from longtake.algorithms import passages
from longtake.algorithms.calibration import log_odds, pooled, probability
from longtake.algorithms.question_kinds import search_kind
from longtake.config import BudgetSettings
from longtake.footage.protocol import Footage
from longtake.llm.capabilities import capabilities_of
from longtake.llm.chat import Card, Chat
from longtake.llm.structured.letters import normalized_text
from longtake.methods.base import name_of
from longtake.types import Answer, Question, Usage


@dataclass(frozen=True)
class Needs:
    """What a stage needs, from its method's roles."""

    roles: tuple[str, ...] = ()
    prompt_tokens: int = 0
    """Tokens of its largest call."""
    index: bool = False
    """Whether it has no answer before the film is indexed."""


@dataclass(frozen=True)
class Situation:
    """What is known before a question is asked."""

    roles: frozenset[str]
    """Roles that have a model; ``team`` if a team was given."""
    sees: bool = True
    """Whether a model can be shown pictures, or captions take their place."""
    context: int | None = None
    """Tokens that the smallest model takes; ``None``: unknown."""
    waits: bool = False
    """Whether the film is not indexed, and the time is limited."""


@dataclass(frozen=True)
class StagePlan:
    """Stages in order, and those left out with the reason."""

    stages: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)


def plan(stages: Sequence[str], needs: Mapping[str, Needs], situation: Situation) -> StagePlan:
    """The stages that can run, in the given order."""
    kept: list[str] = []
    skipped = {}
    for name in stages:
        why = obstacle(needs.get(name, Needs()), situation)
        if why:
            skipped[name] = why
        else:
            kept.append(name)
    return StagePlan(tuple(kept), skipped)


def obstacle(needs: Needs, situation: Situation) -> str:
    """Why a stage cannot run; empty if it can."""
    missing = [role for role in needs.roles if role not in situation.roles]
    if missing:
        return f"no model in the role {missing[0]}" if missing[0] != "team" else "no team was given"
    if "vlm" in needs.roles and not situation.sees:
        return "the model cannot be shown pictures"
    if needs.index and situation.waits:
        return "the film is not indexed yet, and the time is limited"
    if situation.context is not None and needs.prompt_tokens > situation.context:
        return f"a call of {needs.prompt_tokens} tokens does not fit {situation.context}"
    return ""


def misfit(strangers: Sequence[str], has: Collection[str]) -> str:
    """Why the first answer stands, whatever its probability; empty if the rule decides.

    A rule says little about strangers, models that it was not fitted with. Further stages still see
    more than earlier ones where there are pictures; captions were all searched by the first.
    """
    if strangers and "pictures" not in has:
        return f"captions, and no calibration for {strangers[0]}"
    return ""


def has_to_wait(limits: BudgetSettings, footage: Footage) -> bool:
    """Whether the film is not indexed, and the time is limited."""
    # asked in this order: whether a film is indexed takes a look into its store
    return limits.seconds is not None and not footage.indexed


def is_limited(limits: BudgetSettings) -> bool:
    """Whether any limit is set."""
    return any(limit is not None for limit in vars(limits).values())


def only_time_is_limited(limits: BudgetSettings) -> bool:
    """Whether a stage costs by its number of calls, and not by what they show."""
    paid = (limits.tokens, limits.cost, limits.frames)
    return is_limited(limits) and all(limit is None for limit in paid)


def pace(spent: Usage) -> float:
    """Seconds that a call takes, from those made so far.

    The seconds of a calibration are of another machine and another model.
    """
    return spent.seconds / spent.calls if spent.calls else 1.0  # a guess before the first call


def unaffordable(facts: StageFacts, limits: BudgetSettings, spent: Usage) -> str:
    """The limit that a stage would usually exceed; empty if what is left is enough."""
    usual = {
        "tokens": (facts.tokens, spent.tokens_in + spent.tokens_out),
        "cost": (facts.cost, spent.cost or 0.0),
        "frames": (facts.frames, spent.frames),
        "calls": (facts.calls, spent.calls),
        "seconds": (max(facts.seconds, facts.calls * pace(spent)), spent.seconds),
    }
    for name, (more, already) in usual.items():
        limit = getattr(limits, name)
        if limit is not None and already + more > limit:
            return f"{name}: usually {more:.4g} more, and {max(0.0, limit - already):.4g} are left"
    return ""


UNIT = 100_000
"""Tokens that ``least_gain`` refers to."""

NOTHING = "nothing"
"""The signal that no stage has answered yet."""


@dataclass(frozen=True)
class NextStage:
    """A stage that can come next."""

    key: str
    rated: str
    """The stage whose figures hold for it; another one if it shows fewer frames than usual."""
    frames: int | None = None
    """Frames that it shows, if that can be chosen."""


@dataclass(frozen=True)
class Decision:
    """The stage that comes next, ``None`` to stop, and why."""

    next: NextStage | None
    why: str


def frames_of(key: str) -> int | None:
    """The frames that a key asks for: 480 of ``uniform@480``."""
    number = key.partition("@")[2]
    return int(number) if number.isdecimal() else None


def usual(facts: StageFacts, kind: str) -> StageFacts:
    """What a stage usually uses for a question of some kind."""
    tokens = facts.by_kind.get(kind, facts.tokens)
    # money and frames follow the tokens, of which pictures are the largest part; calls do not
    share = tokens / facts.tokens if facts.tokens else 1.0
    return replace(facts, tokens=tokens, cost=share * facts.cost, frames=share * facts.frames)


def decide(
    rule: Calibration,
    chance: float,
    signals: Mapping[str, float],
    kind: str,
    ahead: Sequence[NextStage],
    *,
    stop_at: float,
    least_gain: float,
    by_calls: bool = False,
) -> Decision:
    """Stop if the leader is likely enough, or if no stage ahead is worth its tokens.

    Of those that raise the probability by ``least_gain`` per 100,000 tokens, the one that raises it
    most per token comes next; ``by_calls``: per call, which is what takes time. Stages that the
    calibration does not know come last, in order.
    """
    if chance >= stop_at:
        return Decision(None, f"probability {chance:.2f} is at least {stop_at:.2f}")
    known = [each for each in ahead if each.rated in rule.prospects]
    best, why = None, f"probability {chance:.2f}, and nothing ahead raises it enough"
    steepest, weighed_signals = 0.0, weighed({**signals, kind: 1.0})
    for each in known:
        after = probability(rule.prospects[each.rated], weighed_signals)
        facts = usual(rule.stages.get(each.rated, StageFacts()), kind)
        tokens, gain = max(1.0, facts.tokens), after - chance
        # a stage without calls still takes time to decode and search
        slope = gain / (1 + facts.calls if by_calls else tokens)
        if gain > least_gain * tokens / UNIT and slope > steepest:
            best, steepest = each, slope
            why = f"{each.key} would raise {chance:.2f} to {after:.2f} for {tokens:,.0f} tokens"
    if best is None and not known and ahead:
        return Decision(ahead[0], f"probability {chance:.2f} is below {stop_at:.2f}")
    return Decision(best, why)


CALL = 800
"""Tokens of a budget that are left for the words of the call and of its check."""

CHECK = 1.1
"""What a call costs together with its check, as a multiple."""


LEAST = 4
"""Frames with which a call is worth making."""

MORE = 1.5
"""How many times the frames shown before a further look shows, at least."""

NEARLY = 1.1
"""How many times its frames a stage may be meant to show and still be rated as that stage."""


@dataclass(frozen=True)
class Room:
    """Frames that a call may show now, and those that stages of the same name showed before."""

    fits: int
    shown: int = 0
    limited: bool = False
    """Whether what one look uses is lost to the next."""


def fitted(key: str, room: Room, sizes: Sequence[int]) -> NextStage | str:
    """A stage with as many frames as fit; or why it is not worth a call.

    ``sizes`` are the frames of the stages of its name that the calibration knows.
    """
    wanted, name = frames_of(key) or LEAST, name_of(key)
    frames = min(wanted, room.fits)
    if room.limited and wanted < room.fits < (1 + MORE) * wanted:
        frames = room.fits  # what would be left is too little for a second look
    if frames < max(LEAST, MORE * room.shown):
        return f"{frames} frames fit, and {room.shown} were shown"
    if frames * NEARLY >= wanted or not sizes:
        return NextStage(key, key, frames)
    # fewer frames tell as much as the next smaller stage
    smaller = [size for size in sizes if size <= NEARLY * frames]
    if smaller:
        return NextStage(key, f"{name}@{max(smaller)}", frames)
    # with fewer frames, the figures of the stage say nothing about it
    return NextStage(key, key, frames) if frames >= 0.5 * wanted else f"only {frames} frames fit"


def limits_frames(limits: BudgetSettings) -> bool:
    """Whether frames shown now leave fewer for later."""
    return any(limit is not None for limit in (limits.tokens, limits.cost, limits.frames))


def frames_that_fit(chat: Chat, run: Run) -> int:
    """The most frames that a call may show now."""
    card = chat.card
    # models that do not say are taken to use four tiles of 512 pixels at 170 tokens, plus 85, in a
    # context of 32,768; 10 tokens tell each picture's time
    each = (card.picture_tokens or 765) + 10
    # the rest of the context is for the words of the prompt and for the reply
    rooms = [((card.context or 32_768) - 4096) // each]
    if card.small:
        # small models lose track of more pictures
        rooms.append(32)
    capabilities = capabilities_of(chat)
    if capabilities is not None and capabilities.known.images is not None:
        rooms.append(capabilities.known.images)
    rooms += affordable_frames(card, run.ledger.limits, run.usage, each)
    return max(0, min(rooms))


def affordable_frames(card: Card, limits: BudgetSettings, spent: Usage, each: int) -> list[int]:
    """The most frames of ``each`` many tokens, by every limit that is set."""
    rooms = []
    if limits.tokens is not None:
        left = limits.tokens - spent.tokens_in - spent.tokens_out
        rooms.append(int((left / CHECK - CALL) // each))
    if limits.cost is not None and card.price is not None and card.price.prompt > 0:
        # the reply is paid too, at a higher price
        left_cost = limits.cost - (spent.cost or 0.0) - card.price.of(CALL, 0, CALL)
        rooms.append(int(left_cost / CHECK / card.price.of(each, 0, 0)))
    if limits.frames is not None:
        rooms.append(int((limits.frames - spent.frames) / CHECK))
    return rooms


@dataclass(frozen=True)
class StageVote:
    """The answer of one stage."""

    stage: str
    checked: Checked
    probability: float
    """That it is right, judged by itself."""
    signals: Mapping[str, float]

    @property
    def answer(self) -> Answer:
        """The answer after its check."""
        return self.checked.answer


@dataclass(frozen=True)
class Leader:
    """The leading answer, and the probability that it is right."""

    vote: StageVote
    probability: float
    signals: Mapping[str, float]


def vote_names(votes: Sequence[StageVote]) -> list[str]:
    """What each vote counts for: a letter, or the first answer in words that is the same."""
    names: list[str] = []
    for vote in votes:
        name = vote.answer.choice or normalized_text(vote.answer.text)
        if vote.answer.choice is None:
            alike = [known for known in names if same(name, known)]
            name = alike[0] if alike else name
        names.append(name)
    return names


def same_vote(one: Answer, other: Answer) -> bool:
    """Whether two answers are the same: one letter, or words of which one holds the other."""
    if one.choice or other.choice:
        return one.choice == other.choice
    return same(normalized_text(one.text), normalized_text(other.text))


def same(one: str, other: str) -> bool:
    """Whether one answer in words holds the other."""
    # as much of an answer as counts as quoted in a passage
    return max(passages.match(one, other), passages.match(other, one)) >= 0.8


def leader_among(
    votes: Sequence[StageVote], question: Question, weights: Mapping[str, float]
) -> Leader:
    """The answer that leads, by the votes' probabilities; ``weights`` correct for votes that err
    together.

    Of the votes for it, the one with support speaks, else the likeliest; of a tie, the latest.
    """
    names = vote_names(votes)
    # a wrong answer in words is one of about a dozen
    options = len(question.options) or 12
    chances = pooled(
        [(name, vote.probability) for name, vote in zip(names, votes, strict=True)], options
    )
    leader = max(chances, key=chances.__getitem__)
    behind = [vote for name, vote in zip(names, votes, strict=True) if name == leader]
    best = max(behind, key=lambda vote: (vote.checked.supports > 0, vote.probability))
    signals = {
        ODDS: log_odds(chances[leader]),
        "stages": float(len(votes)),
        "agreeing": float(len(behind) - 1),
        "against": float(len(votes) - len(behind)),
        SUPPORTED: float(best.checked.supports > 0),
        "open": float(not question.options),
        LENGTH: best.signals.get(LENGTH, 0.0),
        search_kind(question.text): 1.0,
    }
    signals = {name: round(value, 4) for name, value in signals.items() if value}
    chance = probability(weights or {ODDS: 1.0}, weighed(signals))
    return Leader(best, round(chance, 4), signals)
