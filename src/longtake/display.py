"""Text from films, files and models, before anybody is shown it."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with control characters shown, not obeyed; lines stay.

    A file name must not move the cursor, recolour the terminal or fake a line of output.
    """
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def on_one_line(text: str) -> str:
    """The same without line breaks."""
    return visible(" ".join(text.split()))
