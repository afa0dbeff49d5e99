"""Earlier questions that are sent with a follow-up question.

The text that is sent is plain: users can see it, change it and drop it.
"""

from __future__ import annotations

from longtake.prompts import phrase

CARRIED = 20_000
"""Maximum length of the text that is sent; its end matters most."""


def with_carried(question: str, carried: str) -> str:
    """The question with the conversation that it may refer to."""
    text, earlier = question.strip(), carried.strip()
    return f"{text}\n{phrase('shared', 'earlier', earlier=earlier)}" if earlier else text


def carry_on(carried: str, question: str, answer: str) -> str:
    """The conversation with one more question and its answer, to be sent with the next one."""
    turn = f"Q: {' '.join(question.split())}\nA: {' '.join(answer.split())}"
    return f"{carried}\n{turn}".strip()[-CARRIED:]
