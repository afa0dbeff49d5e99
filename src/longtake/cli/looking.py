"""What a question did not look at, in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from longtake.index.film import Film
from longtake.index.search import covered
from longtake.timecode import clock

LONG_SECONDS = 60.0
"""A stretch between two looks is worth a word from this long on,"""
LONG_SHARE = 0.1
"""and from this share of the film on."""
WORDS = {"speech": "speech", "onscreen": "text on screen"}


def unseen(film: Film, moments: Iterable[float]) -> list[str]:
    """What was not looked at: the longest stretch without a look, and words that nobody read."""
    told = []
    stretch = longest_gap(moments, film.duration)
    if stretch is None:
        told.append("the pictures")
    elif stretch[1] - stretch[0] >= max(LONG_SECONDS, LONG_SHARE * film.duration):
        told.append(f"{clock(stretch[0])}–{clock(stretch[1])}, the longest stretch without a look")
    known = covered(film)
    for source, name in WORDS.items():
        # a film without sound has nothing to hear
        if known[source] < 1 and (source != "speech" or film.video.info.audio):
            share = f"{known[source]:.0%} indexed" if known[source] else "not indexed"
            told.append(f"{name} ({share})")
    return told


def longest_gap(moments: Iterable[float], duration: float) -> tuple[float, float] | None:
    """The longest stretch between two looks, or to an end of the film; ``None`` without looks."""
    looks = sorted(moments)
    if not looks:
        return None
    edges = [0.0, *looks, duration]
    return max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
