"""Which models are small: they are asked less, in shorter prompts.

A small model reads slowly on the machines it runs on, loses the thread in long prompts, and is
always sure of itself. Methods have a preset ``small`` for such models, which is used unless another
is named.
"""

from __future__ import annotations

import re

from longtake.models.chat import Card

SMALL_BILLIONS = 4.0
"""Models with at most so many parameters are small,"""
SMALL_CONTEXT = 4096
"""those with at most this context,"""
SLOW_READING = 100.0
"""and those that read fewer prompt tokens per second, where that was measured."""
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,2})?)\s?([bBmM])(?![A-Za-z0-9])")


def why_small(card: Card, *, reading: float | None = None, enforced: bool = True) -> str:
    """Why a model counts as small; empty if it does not.

    ``reading`` is its measured speed, ``enforced`` whether its server holds it to a form.
    """
    billions = parameters(card.model or card.name)
    if billions is not None and billions <= SMALL_BILLIONS:
        return f"{billions:g} billion parameters"
    # a large model that its server does not hold to a form needs twice the room for its replies
    least = SMALL_CONTEXT if enforced else 2 * SMALL_CONTEXT
    if card.context is not None and card.context <= least:
        return f"a context of {card.context} tokens"
    if reading is not None and reading < SLOW_READING:
        return f"it reads {reading:g} tokens per second"
    return ""


def parameters(name: str) -> float | None:
    """Billions of parameters, where a model's name tells: ``qwen2.5-1.5b-instruct`` has 1.5."""
    sizes = []
    for number, unit in _SIZE.findall(name):
        sizes.append(float(number) if unit in "bB" else float(number) / 1000)
    # a name with several numbers, such as a mixture's, counts by its largest
    return max(sizes, default=None)
