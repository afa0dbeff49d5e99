"""Overlap of a text with keywords, weighted by rarity (VideoDetective, eq. 8 and appendix E.4.2).

For English. Word frequencies come from ``wordfreq`` and base forms from ``simplemma``; both are
installed tables, and nothing is looked up online.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

Z_LEX = 3.0
"""Sum of weights at which the overlap is complete."""
UNKNOWN_IDF = 1.5
"""Weight of a word that is not in the table: a name, or a misreading."""

_CLOCK = re.compile(r"\[\d+:\d\d(?::\d\d)?\]")
# letters and digits, with an apostrophe inside: "don't"
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
STOP = frozenset(
    _WORD.findall(
        """
        a about above after again against all also am an and any are as at be because been before
        being below between both but by can could did do does doing done down during each either
        else ever every few for from further get gets got had has have having he her here hers
        herself him himself his how i if in into is it its itself just let may me might more most
        much must my myself neither no nor not now of off on once one only onto or other our ours
        ourselves out over own per rather same shall she should since so some somebody someone
        something such than that the their theirs them themselves then there these they this those
        through thus to too toward towards under until up upon us very was we were what when where
        whether which while who whom whose why will with within without would yet you your yours
        according film video clip scene
        """
    )
)
"""Words without content; the last ones occur in most questions about films."""


def untimed(text: str) -> str:
    """Remove the bracketed times that precede lines of speech and on-screen text."""
    return " ".join(_CLOCK.sub(" ", text).split())


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning, in lower case, each once and without times."""
    found = _WORD.findall(untimed(text).lower().replace("’", "'"))
    words = (word.removesuffix("'s") for word in found)
    return list(dict.fromkeys(word for word in words if word not in STOP))


def lemmas(texts: Iterable[str]) -> frozenset[str]:
    """Return the base forms of the content words of some texts, without stop words."""
    words = {word for text in texts for word in content_words(text)}
    # a content word may have a stop word as its base form
    return frozenset({lemma(word) for word in words} - STOP)


@lru_cache(maxsize=65536)
def lemma(word: str) -> str:
    """Return the base form of a word: ``wash`` for ``washes``."""
    from simplemma import lemmatize  # late: loads its table

    return str(lemmatize(word, lang="en")).lower()


@lru_cache(maxsize=65536)
def idf(word: str) -> float:
    """IDF(t) = clip((9 − zipf(t)) / 4, 0, 2), or 1.5 for unknown words.

    The Zipf value is log₁₀ of the occurrences per billion words: 7.7 for "the", 4 for "harbour".
    With a raw −log p, a single common word would reach Z.
    """
    from wordfreq import zipf_frequency  # late: loads 60 MB

    zipf = float(zipf_frequency(word, "en"))
    if zipf <= 0:  # not in the table
        return UNKNOWN_IDF
    return min(2.0, max(0.0, (9.0 - zipf) / 4.0))


def overlap(text: frozenset[str], keywords: frozenset[str], *, z: float = Z_LEX) -> float:
    """Eq. 8: min(1, Σ_{t ∈ e ∩ K} IDF(t) / Z), over lemmas."""
    shared = sorted(text & keywords)  # sorted, because the order of a sum shows in its last digits
    return min(1.0, sum(idf(word) for word in shared) / z)
