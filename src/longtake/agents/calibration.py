"""Calibration: the votes of stages, their signals, and the weights that give a probability.

A calibration is a file of fits (``longtake calibrate`` writes it). A fit applies to one method with
one model and one kind of footage.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import FiniteFloat, TypeAdapter, ValidationError

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
    """The answer of a method or a stage, with everything that its probability depends on."""

    stage: str
    choice: str | None = None
    text: str = ""
    stated: float | None = None
    """Its own confidence: the odds of the letter where they are known, else a grade or a share."""
    supported: bool = False
    contradicted: bool = False

    def agrees(self, other: Vote) -> bool:
        """Whether both give the same answer: the same letter, or words of which one contains the
        other."""
        if self.choice or other.choice:
            return self.choice == other.choice
        one, two = normalized_text(self.text), normalized_text(other.text)
        return max(passages.match(one, two), passages.match(two, one)) >= passages.SURE


def vote_of(stage: str, answer: Answer, checked: Checked) -> Vote:
    """The vote for an answer after its check; ``answer`` is the one before, with its confidence."""
    final = checked.answer
    stated = final.confidence if checked.changed else answer.confidence
    found = checked.supports > 0, checked.contradicts > 0
    return Vote(stage, final.choice, final.text, stated, *found)


def grouped(votes: Sequence[Vote]) -> list[list[int]]:
    """The indices of the votes for each different answer."""
    groups: list[list[int]] = []
    for place, vote in enumerate(votes):
        group = next((group for group in groups if vote.agrees(votes[group[0]])), None)
        if group is None:
            groups.append(group := [])
        group.append(place)
    return groups


def signals(votes: Sequence[Vote], group: Sequence[int], question: Question) -> dict[str, float]:
    """The signals of the answer that a group of votes is for, without those that are zero."""
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
    weights: Mapping[str, FiniteFloat]
    stop_at: FiniteFloat | None = None
    """Probability at which ``auto`` stops; ``None``: its answers were not compared by stage."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Benchmarks, number of questions, date, and how far the probabilities could be trusted."""

    @property
    def about(self) -> tuple[str, str, str]:
        """Method, model and kind of footage."""
        return self.method, self.model, self.footage

    @property
    def wants_odds(self) -> bool:
        """Whether it depends on the odds of letters, which may take another call."""
        return "odds" in self.weights


def leader(votes: Sequence[Vote], question: Question, fit: Fit | None) -> tuple[int, float | None]:
    """The index of the leading vote, and the probability that it is right.

    The likeliest answer leads; without a fit the latest supported one, or else the latest, since
    later stages see more. The latest supported vote represents an answer.
    """
    groups, chance = grouped(votes), None
    places: Sequence[int] = range(len(votes))
    if fit is not None:
        by_group = [signals(votes, group, question) for group in groups]
        chances = [round(probability(fit.weights, values), 4) for values in by_group]
        chance = max(chances)
        places = groups[chances.index(chance)]
    return max(places, key=lambda place: (votes[place].supported, place)), chance


def footage_kind(has: Collection[str]) -> str:
    """The kind of material that answers about footage depend on."""
    return next((kind for kind in ("pictures", "captions") if kind in has), "words")


def model_of(names: Mapping[str, str], footage: str) -> str:
    """The model that a fit is for: the one that sees pictures, or without pictures the reader."""
    roles = ("vlm", "llm") if footage == "pictures" else ("llm", "vlm")
    return next((names[role] for role in roles if role in names), "")


def find(
    fits: Sequence[Fit],
    method: str,
    names: Mapping[str, str],
    has: Collection[str],
    question: Question,
) -> Fit | None:
    """The first fit for a method, the models in its roles, and the materials of the footage."""
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
