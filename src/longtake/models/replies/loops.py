"""Replies that repeat themselves until they are cut off.

Greedy decoding makes small models fall into loops: the same words again and again, to the last
token. What came before the loop is all that was said.
"""

from __future__ import annotations

REPEATS = 4
"""Times that the same characters must end a text to be a loop …"""
SHORTEST = 80
"""… and how many characters that must be in all."""
WINDOW = 8_000
"""Characters at the end of a text that are searched."""


def cut_loop(text: str) -> str | None:
    """The text up to the end of the first round of the loop that it ends in, if it ends in one."""
    tail = text.rstrip()[-WINDOW:]
    backwards = tail[::-1]
    matches = _prefix_matches(backwards)
    longest, period = 0, 0
    for shift in range(1, len(backwards) // REPEATS + 1):
        # if the text and itself shifted agree so far, that stretch repeats every ``shift``
        covered = shift + matches[shift]
        if covered >= max(SHORTEST, REPEATS * shift) and covered > longest:
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
