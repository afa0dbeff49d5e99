"""Probabilities: the votes of stages, their signals, and the weights that make a probability.

A calibration is a file of fits (``longtake calibrate`` writes it). A fit is about one method with
one model and one kind of footage, and says nothing about others.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from longtake.agents.verify import Checked
from longtake.algorithms import passages
from longtake.algorithms.calibration import log_odds, probability
from longtake.errors import ConfigError
from longtake.llm.structured.letters import normalized_text
from longtake.types import Answer, Question

FILE = "calibration.json"
"""Name of the user's calibration, beside ``config.toml``."""


@dataclass(frozen=True)
class Vote:
    """What a method or a stage said: all that a probability rests on."""

    stage: str
    choice: str | None = None
    text: str = ""
    stated: float | None = None
    """Its own confidence: the odds of the letter where they are known, else a grade or a share."""
    supported: bool = False
    contradicted: bool = False

    def agrees(self, other: Vote) -> bool:
        """Whether both are one answer: one letter, or words of which one holds the other."""
        if self.choice or other.choice:
            return self.choice == other.choice
        one, two = normalized_text(self.text), normalized_text(other.text)
        # as much of an answer as counts as quoted in a passage
        return max(passages.match(one, two), passages.match(two, one)) >= 0.8


def vote_of(stage: str, answer: Answer, checked: Checked) -> Vote:
    """The vote for an answer after its check; ``answer`` is the one before, with its confidence."""
    final = checked.answer
    stated = final.confidence if checked.changed else answer.confidence
    found = checked.supports > 0, checked.contradicts > 0
    return Vote(stage, final.choice, final.text, stated, *found)


def grouped(votes: Sequence[Vote]) -> list[list[int]]:
    """The places of the votes for each different answer."""
    groups: list[list[int]] = []
    for place, vote in enumerate(votes):
        group = next((each for each in groups if vote.agrees(votes[each[0]])), None)
        if group is None:
            groups.append(group := [])
        group.append(place)
    return groups


def signals(votes: Sequence[Vote], group: Sequence[int], question: Question) -> dict[str, float]:
    """Signals of the answer that a group of the votes is for; those that are zero are left out."""
    behind = [votes[place] for place in group]
    stated = [vote.stated for vote in behind if vote.stated is not None]
    values: dict[str, float] = {
        "odds": log_odds(max(stated)) if stated else 0.0,
        "silent": not stated,
        "supported": any(vote.supported for vote in behind),
        "contradicted": any(vote.contradicted for vote in behind),
        "agreeing": len(group) - 1,
        "against": len(votes) - len(group),
        "open": not question.options,
        f"by {behind[-1].stage}": True,
    }
    return {name: round(float(value), 4) for name, value in values.items() if value}


@dataclass(frozen=True)
class Fit:
    """A probability for the answers of one method with one model about one kind of footage."""

    method: str
    model: str
    footage: str
    """``pictures``, ``captions`` or ``words``."""
    weights: Mapping[str, float]
    stop_at: float | None = None
    """Probability at which ``auto`` stops; ``None``: its answers were not compared by stage."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Benchmarks, number of questions, date, and how far the probabilities could be trusted."""

    @property
    def about(self) -> tuple[str, str, str]:
        """What it applies to."""
        return self.method, self.model, self.footage

    @property
    def wants_odds(self) -> bool:
        """Whether it rests on the odds of letters, which may take a call more."""
        return "odds" in self.weights


def leader(votes: Sequence[Vote], question: Question, fit: Fit | None) -> tuple[int, float | None]:
    """The place of the leading vote, and the probability that it is right.

    The likeliest answer leads; where nothing is fitted the latest with support, or else the latest,
    since later stages saw more. The latest supported vote for an answer speaks for it.
    """
    groups, chance = grouped(votes), None
    places: Sequence[int] = range(len(votes))
    if fit is not None:
        rated = [signals(votes, group, question) for group in groups]
        chances = [round(probability(fit.weights, each), 4) for each in rated]
        chance = max(chances)
        places = groups[chances.index(chance)]
    return max(places, key=lambda place: (votes[place].supported, place)), chance


def footage_kind(has: Collection[str]) -> str:
    """What answers about footage rest on."""
    return next((kind for kind in ("pictures", "captions") if kind in has), "words")


def model_of(names: Mapping[str, str], footage: str) -> str:
    """The model that a probability is about: the one that looks, or without pictures reads."""
    roles = ("vlm", "llm") if footage == "pictures" else ("llm", "vlm")
    return next((names[role] for role in roles if role in names), "")


def find(
    fits: Sequence[Fit],
    method: str,
    names: Mapping[str, str],
    has: Collection[str],
    question: Question,
) -> Fit | None:
    """The first fit for a method with the models of these roles about footage that has these."""
    footage = footage_kind(has)
    wanted = (method, model_of(names, footage), footage)
    found = next((fit for fit in fits if fit.about == wanted), None)
    # answers in words are right less often than letters
    return found if found and (question.options or "open" in found.weights) else None


def fits_from(values: Any, source: str) -> tuple[Fit, ...]:
    """Check values that were read from a file or recorded with a run."""
    try:
        return TypeAdapter(tuple[Fit, ...]).validate_python(values)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise ConfigError(f"{source}: {why}; 'longtake calibrate' writes it anew") from error


def read(path: Path) -> tuple[Fit, ...]:
    """The fits in a file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: malformed JSON ({error})") from error
    return fits_from(values, str(path))


def shipped() -> tuple[Fit, ...]:
    """The fits that come with longtake."""
    return read(Path(__file__).with_name(FILE))
