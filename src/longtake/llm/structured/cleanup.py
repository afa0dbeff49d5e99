"""Replies before they are read: surrogates, thinking and loops are taken out."""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD.

    JSON can spell half of a surrogate pair (``"\\ud83d"``), which no encoding can write: a single
    one in a reply would keep an answer from being printed, traced or stored.
    """
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


_OPEN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking and the answer in a reply.

    A block that was never closed is all thinking: the answer never came. A closing tag without an
    opening one ends thinking that the chat template began.
    """
    thoughts: list[str] = []
    opening, closing = _OPEN.search(text), _CLOSE.search(text)
    if closing and (opening is None or closing.start() < opening.start()):
        thoughts.append(text[: closing.start()])
        text = text[closing.end() :]
    answer: list[str] = []
    while opening := _OPEN.search(text):
        answer.append(text[: opening.start()])
        closing = _CLOSE.search(text, opening.end())
        thoughts.append(text[opening.end() : closing.start() if closing else len(text)])
        text = text[closing.end() :] if closing else ""
    answer.append(text)
    return "\n".join(thought.strip() for thought in thoughts), "".join(answer).strip()


MIN_REPEATS = 4
"""Times that the same characters must end a text to be a loop …"""
MIN_LOOP = 80
"""… and how many characters that must be in all."""


def cut_loop(text: str) -> str | None:
    """The text up to the end of the first round of the loop that it ends in, if it ends in one."""
    # loops are found at the end of a text; searching more of it takes longer
    tail = text.rstrip()[-8_000:]
    backwards = tail[::-1]
    matches = _prefix_matches(backwards)
    longest, period = 0, 0
    for shift in range(1, len(backwards) // MIN_REPEATS + 1):
        # if the text and itself shifted agree so far, that stretch repeats every ``shift``
        covered = shift + matches[shift]
        if covered >= max(MIN_LOOP, MIN_REPEATS * shift) and covered > longest:
            longest, period = covered, shift
    if not period or not any(char.isalnum() for char in backwards[:period]):
        return None  # rows of dashes or dots are ornaments
    start = len(text.rstrip()) - longest
    return text[: start + period]


def _prefix_matches(text: str) -> list[int]:
    """For each position, how many characters from there on repeat the start (the Z function)."""
    matches = [0] * len(text)
    left = right = 0
    for at in range(1, len(text)):
        count = min(right - at, matches[at - left]) if at < right else 0
        while at + count < len(text) and text[count] == text[at + count]:
            count += 1
        matches[at] = count
        if at + count > right:
            left, right = at, at + count
    return matches
