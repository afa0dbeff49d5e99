"""Makes text from films, files and models safe to print."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return the text with control characters escaped; line breaks are kept.

    A file name must not move the cursor, change colours or fake a line of output.
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return character.encode("unicode_escape").decode()


def on_one_line(text: str) -> str:
    """Return the same without line breaks, runs of spaces joined."""
    return visible(" ".join(text.split()))
