"""What comes next: the stage that gains most for its tokens, or nothing if none gains enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from longtake.algorithms.calibration import probability
from longtake.methods.auto.planning import NOTES
from longtake.methods.base import name_of
from longtake.steps.calibration import Calibration, StageFacts
from longtake.steps.signals import weighed

UNIT = 100_000
"""Tokens that a gain is worth one ``least_gain`` for."""
NOTHING = "nothing"
"""The signal that no stage has answered yet."""


@dataclass(frozen=True)
class Ahead:
    """A stage that can come next."""

    key: str
    rated: str
    """The stage whose figures hold for it; another one if it shows fewer frames than usual."""
    frames: int | None = None
    """Frames that it shows, if that can be chosen."""


@dataclass(frozen=True)
class Decision:
    """The stage that comes next, ``None`` to stop, and why."""

    next: Ahead | None
    why: str


def keys(stages: Sequence[str]) -> list[str]:
    """A name for each stage; the second ``notes`` is called ``notes#2``."""
    seen: Counter[str] = Counter()
    named = []
    for stage in stages:
        seen[stage] += 1
        named.append(stage if seen[stage] == 1 else f"{stage}#{seen[stage]}")
    return named


def frames_of(key: str) -> int | None:
    """The frames that a key asks for: 480 of ``uniform@480``."""
    number = key.partition("#")[0].partition("@")[2]
    return int(number) if number.isdecimal() else None


def follows(keys: Sequence[str]) -> dict[str, str]:
    """For each key of ``notes`` the key before it: there is nothing new to note earlier."""
    pairs = pairwise(keys)
    return {key: before for before, key in pairs if name_of(key) == NOTES}


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
    ahead: Sequence[Ahead],
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
    best, told = None, f"probability {chance:.2f}, and nothing ahead raises it enough"
    steepest, told_by = 0.0, weighed({**signals, kind: 1.0})
    for each in known:
        after = probability(rule.prospects[each.rated], told_by)
        facts = usual(rule.stages.get(each.rated, StageFacts()), kind)
        tokens, gain = max(1.0, facts.tokens), after - chance
        slope = gain / (1 + facts.calls if by_calls else tokens)
        if gain > least_gain * tokens / UNIT and slope > steepest:
            best, steepest = each, slope
            told = f"{each.key} would raise {chance:.2f} to {after:.2f} for {tokens:,.0f} tokens"
    if best is None and not known and ahead:
        return Decision(ahead[0], f"probability {chance:.2f} is below {stop_at:.2f}")
    return Decision(best, told)
