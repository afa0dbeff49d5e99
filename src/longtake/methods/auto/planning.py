"""Which stages a question is worth, and in which order: a pure function of what is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from longtake.config import BudgetSettings
from longtake.footage.protocol import Footage
from longtake.steps.calibration import Calibration, StageFacts
from longtake.types import Usage

NOTES = "notes"
"""The stage that answers from what earlier ones noted; a step of ``auto`` itself, not a method."""
FIRST_CALL = 1.0
"""Seconds that a call is taken to need while none was made."""


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
class Plan:
    """Stages in order, and those left out with the reason."""

    stages: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)


def plan(stages: Sequence[str], needs: Mapping[str, Needs], situation: Situation) -> Plan:
    """The stages that can run, in the given order."""
    kept: list[str] = []
    skipped = {}
    for name in stages:
        why = obstacle(needs.get(name, Needs()), situation)
        if why:
            skipped[name] = why
        else:
            kept.append(name)
    # without a stage before it, nothing was noted
    while kept and kept[0] == NOTES:
        kept.pop(0)
    return Plan(tuple(kept), skipped)


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


def misfit(rule: Calibration, models: Iterable[str], has: Collection[str]) -> str:
    """Why the first answer stands, whatever its probability; empty if the rule decides.

    A rule says little about models that it was not fitted with. Further stages still see more
    than earlier ones where there are pictures; captions were all searched by the first.
    """
    strangers = [model for model in models if not rule.knows(model)]
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
    """Whether a stage is dear for its calls, and not for what they show."""
    paid = (limits.tokens, limits.cost, limits.frames)
    return is_limited(limits) and all(limit is None for limit in paid)


def pace(spent: Usage) -> float:
    """Seconds that a call takes, from those made so far.

    The seconds of a calibration are of another machine and another model.
    """
    return spent.seconds / spent.calls if spent.calls else FIRST_CALL


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
