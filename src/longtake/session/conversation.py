"""Follow-up questions: what was asked and answered before goes along with the next question.

The text that is carried is plain, and whoever asks can see it, change it and drop it.
"""

from __future__ import annotations

from longtake.prompts import phrase

CARRIED = 20_000
"""Characters of a conversation that are carried; its end matters most."""


def with_carried(question: str, carried: str) -> str:
    """The question as a method is asked it, with what it refers to."""
    text, earlier = question.strip(), carried.strip()
    return f"{text}\n{phrase('shared', 'earlier', earlier=earlier)}" if earlier else text


def carry_on(carried: str, question: str, answer: str) -> str:
    """What the next question carries: as before, and this question with its answer."""
    turn = f"Q: {' '.join(question.split())}\nA: {' '.join(answer.split())}"
    return f"{carried}\n{turn}".strip()[-CARRIED:]
