"""When to stop: the leader is likely enough, or what lies ahead gains too little for its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from longtake.algorithms.calibration import probability
from longtake.steps.calibration import Calibration, StageFacts

UNIT = 100_000
"""Tokens that a gain is worth one ``least_gain`` for."""


@dataclass(frozen=True)
class Decision:
    """Whether to stop, and why."""

    stop: bool
    why: str


def keys(stages: Sequence[str]) -> list[str]:
    """A name for each stage; the second ``notes`` is called ``notes#2``."""
    seen: Counter[str] = Counter()
    named = []
    for stage in stages:
        seen[stage] += 1
        named.append(stage if seen[stage] == 1 else f"{stage}#{seen[stage]}")
    return named


def name_of(key: str) -> str:
    """The stage that a key stands for."""
    return key.partition("#")[0]


def usual(facts: StageFacts, kind: str) -> StageFacts:
    """What a stage usually uses for a question of some kind."""
    tokens = facts.by_kind.get(kind, facts.tokens)
    # money and frames follow the tokens, of which pictures are the largest part
    share = tokens / facts.tokens if facts.tokens else 1.0
    return replace(
        facts,
        tokens=tokens,
        cost=share * facts.cost,
        frames=share * facts.frames,
        calls=share * facts.calls,
        seconds=share * facts.seconds,
    )


def outlook(
    rule: Calibration, signals: Mapping[str, float], kind: str, ahead: Sequence[str]
) -> list[tuple[str, float, float]]:
    """For each stage ahead: its key, the probability that what leads then is right, and the tokens
    until then. Stages that the calibration does not know are passed over.
    """
    expected = []
    tokens = 0.0
    for key in ahead:
        tokens += usual(rule.stages.get(key, StageFacts()), kind).tokens
        weights = rule.prospects.get(key)
        if weights is not None:
            expected.append((key, probability(weights, {**signals, kind: 1.0}), tokens))
    return expected


def decide(
    rule: Calibration,
    chance: float,
    signals: Mapping[str, float],
    kind: str,
    ahead: Sequence[str],
    *,
    stop_at: float,
    least_gain: float,
) -> Decision:
    """Stop if the leader is likely enough, or if no stage ahead is worth its tokens.

    A stage is worth its tokens if it raises the probability by ``least_gain`` per 100,000 of them.
    """
    if chance >= stop_at:
        return Decision(True, f"probability {chance:.2f} is at least {stop_at:.2f}")
    expected = outlook(rule, signals, kind, ahead)
    if not expected:
        return Decision(False, f"probability {chance:.2f} is below {stop_at:.2f}")
    worth = [after - chance - least_gain * tokens / UNIT for _, after, tokens in expected]
    best = worth.index(max(worth))
    key, after, tokens = expected[best]
    told = f"{key} would raise {chance:.2f} to {after:.2f} for {tokens:,.0f} tokens"
    return Decision(worth[best] <= 0, told)
