"""What tells how far an answer can be trusted, as numbers that a calibration weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from longtake.algorithms.calibration import log_odds
from longtake.algorithms.question_kinds import KINDS, PLAIN, kind
from longtake.steps.verify import Checked
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
    found: dict[str, float] = {
        "stated": before.confidence or 0.0,
        "silent": before.confidence is None,
        "not_credible": before.status == "not_credible",
        "unchecked": not checked.done,
        SUPPORTED: checked.supports > 0,
        "support": min(MANY, checked.supports) / MANY,
        "contradicted": checked.contradicts > 0,
        "changed": checked.changed,
        "open": not question.options,
        kind(question.text): True,
        LENGTH: doublings(seconds),
    }
    return {name: round(float(value), 4) for name, value in found.items() if value}


def doublings(seconds: float) -> float:
    """The length of a film as a signal."""
    return min(LONGEST, max(SHORTEST, math.log2(max(1.0, seconds) / 3600)))


def weighed(found: Mapping[str, float]) -> dict[str, float]:
    """The signals as a calibration weighs them: those of :data:`BY_KIND` also by kind.

    Support for "Who leaves?" says more than support for "How many leave?".
    """
    told = dict(found)
    for asked in (*KINDS, PLAIN):
        if asked in found:
            told |= {f"{asked} {name}": found[name] for name in BY_KIND if name in found}
    return told


def ending(chance: float, kind: str) -> dict[str, float]:
    """The signals of a leader with which ``auto`` stopped, for the last correction.

    Only the kind is added: what else was tried fitted the accidents of the calibration's films.
    """
    return {ODDS: log_odds(chance)} | ({kind: 1.0} if kind else {})


def is_given(answer: Answer) -> bool:
    """Whether there is an answer at all."""
    return answer.status in GIVEN and bool(answer.choice or answer.text)
