"""What tells how far an answer can be trusted, as numbers that a calibration weighs."""

from __future__ import annotations

from longtake.algorithms.asking import kind
from longtake.steps.verify import Checked
from longtake.types import GIVEN, Answer, Question

MANY = 4
"""Supporting moments beyond which more of them add nothing."""


def signals(before: Answer, checked: Checked, question: Question) -> dict[str, float]:
    """Signals of an answer, from the method's own answer and from its check.

    ``stated`` is the confidence that the method states: the odds of the letters where they are
    known, else its grade, its vote or its exit round. Signals that are zero are left out.
    """
    found: dict[str, float] = {
        "stated": before.confidence or 0.0,
        "silent": before.confidence is None,
        "not_credible": before.status == "not_credible",
        "unchecked": not checked.done,
        "supported": checked.supports > 0,
        "support": min(MANY, checked.supports) / MANY,
        "contradicted": checked.contradicts > 0,
        "changed": checked.changed,
        "open": not question.options,
        kind(question.text): True,
    }
    return {name: round(float(value), 4) for name, value in found.items() if value}


def is_given(answer: Answer) -> bool:
    """Whether there is an answer at all."""
    return answer.status in GIVEN and bool(answer.choice or answer.text)
