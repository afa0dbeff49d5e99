"""Text in plots."""

from __future__ import annotations

from longtake.display import visible
from longtake.types import Answer


def plain(text: str) -> str:
    """A text that matplotlib shows as it is; it would read "$" as the start of mathematics."""
    return visible(text).replace("$", r"\$")


def title_of(answer: Answer) -> str:
    """The title of a plot about an answer."""
    letter = f"{answer.choice}. " if answer.choice else ""
    return plain(f"{letter}{answer.text}"[:120]) or "(no answer)"
