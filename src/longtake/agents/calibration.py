"""Calibrated confidence: the signals of an answer, and the weights that make them a probability.

A calibration is a file (``longtake calibrate`` writes it). It also holds the rule by which ``auto``
stops.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from longtake.agents.verify import Checked
from longtake.algorithms.calibration import log_odds, probability
from longtake.algorithms.question_kinds import PLAIN, SEARCH_KINDS, search_kind
from longtake.errors import ConfigError
from longtake.types import GIVEN, Answer, Question

MANY = 4
"""Supporting moments beyond which more of them add nothing."""
LENGTH = "length"
"""The signal of how long a film is: doublings of an hour."""
SHORTEST, LONGEST = -2.0, 1.5
"""Doublings beyond which a film counts as no shorter, or longer: nothing else was calibrated."""
ODDS = "odds"
"""The signal of a probability that is weighed once more."""
SUPPORTED = "supported"
BY_KIND = (ODDS, SUPPORTED, LENGTH)
"""Signals that mean something else for each kind of question."""


def signals(
    before: Answer, checked: Checked, question: Question, seconds: float
) -> dict[str, float]:
    """Signals of an answer, from the method's own answer and from its check.

    ``stated`` is the confidence that the method states: the odds of the letters where they are
    known, else its grade, its vote or its exit round. ``seconds`` is the length of the film.
    Signals that are zero are left out.
    """
    values: dict[str, float] = {
        "stated": before.confidence or 0.0,
        "silent": before.confidence is None,
        "not_credible": before.status == "not_credible",
        "unchecked": not checked.done,
        SUPPORTED: checked.supports > 0,
        "support": min(MANY, checked.supports) / MANY,
        "contradicted": checked.contradicts > 0,
        "changed": checked.changed,
        "open": not question.options,
        search_kind(question.text): True,
        LENGTH: doublings(seconds),
    }
    return {name: round(float(value), 4) for name, value in values.items() if value}


def doublings(seconds: float) -> float:
    """The length of a film as a signal."""
    return min(LONGEST, max(SHORTEST, math.log2(max(1.0, seconds) / 3600)))


def weighed(signals_by_name: Mapping[str, float]) -> dict[str, float]:
    """The signals as a calibration weighs them: those of :data:`BY_KIND` also by kind.

    Support for "Who leaves?" says more than support for "How many leave?".
    """
    all_signals = dict(signals_by_name)
    for question_kind in (*SEARCH_KINDS, PLAIN):
        if question_kind in signals_by_name:
            all_signals |= {
                f"{question_kind} {name}": signals_by_name[name]
                for name in BY_KIND
                if name in signals_by_name
            }
    return all_signals


def ending(chance: float, kind: str) -> dict[str, float]:
    """The signals of a leader with which ``auto`` stopped, for the last correction.

    Only the kind is added: what else was tried fitted the accidents of the calibration's films.
    """
    return {ODDS: log_odds(chance)} | ({kind: 1.0} if kind else {})


def is_given(answer: Answer) -> bool:
    """Whether there is an answer at all."""
    return answer.status in GIVEN and bool(answer.choice or answer.text)


FILE = "calibration.json"
"""Name of the user's calibration, beside ``config.toml``."""
SIMULATED = "lab/"
"""How the names of the laboratory's models begin."""


@dataclass(frozen=True)
class StageFacts:
    """What a stage did for the questions of a calibration."""

    accuracy: float = 0.0
    """Share of the questions that it answered right by itself."""
    answered: float = 1.0
    """Share of the questions that it answered at all."""
    tokens: float = 0.0
    seconds: float = 0.0
    cost: float = 0.0
    frames: float = 0.0
    calls: float = 0.0
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """Tokens by kind of question."""
    reached: float = 1.0
    """Share of the questions that come this far."""
    stopped: float = 0.0
    """Share of the questions that end here."""


@dataclass(frozen=True)
class Calibration:
    """Weights by method, the rule of ``auto``, and their provenance."""

    methods: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Weights of the signals of each method's answers."""
    pool: Mapping[str, float] = field(default_factory=dict)
    """Weights of what several stages say together."""
    final: Mapping[str, float] = field(default_factory=dict)
    """Weights that correct the probability with which ``auto`` stops, where it does stop."""
    prospects: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """For each stage: weights of the probability that what leads after it is right, as seen from
    before it."""
    stop_at: float = 0.8
    """Probability at which ``auto`` stops."""
    least_gain: float = 0.0
    """Probability that 100,000 more tokens must gain; else ``auto`` stops."""
    stages: Mapping[str, StageFacts] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Data, seeds, number of questions, date, and calibration error before and after."""

    def confidence(self, method: str, signals: Mapping[str, float]) -> float | None:
        """The probability that an answer is right; ``None`` for a method without weights."""
        weights = self.methods.get(method)
        return None if weights is None else round(probability(weights, weighed(signals)), 4)

    def final_probability(self, chance: float, kind: str = "") -> float:
        """The probability to state for the leader with which ``auto`` stopped."""
        if not self.final:
            return chance
        return round(probability(self.final, ending(chance, kind)), 4)

    @property
    def models(self) -> frozenset[str]:
        """The models that it was fitted with; empty if it does not say."""
        names: set[str] = set()
        for run in self.provenance.get("runs", []):
            # anyone may write to the file
            if isinstance(run, Mapping):
                names |= set(str(run.get("models", "")).split(", ")) - {""}
        return frozenset(names)

    def knows(self, model: str) -> bool:
        """Whether it was fitted with a model; simulated models count as one."""
        families = {_family(name) for name in self.models}
        return not families or _family(model) in families

    def plain(self) -> dict[str, Any]:
        """As it is written to a file."""
        return asdict(self)


def _family(model: str) -> str:
    return SIMULATED if model.startswith(SIMULATED) else model


def from_plain(values: Mapping[str, Any], source: str) -> Calibration:
    """Check values that were read from a file or recorded with a run."""
    try:
        return TypeAdapter(Calibration).validate_python(dict(values))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ConfigError(f"{source}: {place}: {problem['msg']}", key=place) from error


def read(path: Path) -> Calibration:
    """The calibration in a file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: malformed JSON ({error})") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: is not a calibration")
    return from_plain(values, str(path))
