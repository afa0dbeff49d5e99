"""Words that a text shares with keywords, rare ones counting more (VideoDetective, eq. 8 and appendix E.4.2). English.

How rare a word is comes from a table of word frequencies that is installed with the package (``wordfreq``), its base
form from another (``simplemma``); nothing is looked up elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

Z_LEX = 3.0
"""Sum of weights from which the overlap is complete."""
UNKNOWN_IDF = 1.5
"""Weight of a word that the table does not hold: a name, or something misread."""

_CLOCK = re.compile(r"\[\d+:\d\d(?::\d\d)?\]")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
STOP = frozenset(
    _WORD.findall(
        """
        a about above after again against all also am an and any are as at be because been before being
        below between both but by can could did do does doing done down during each either else ever every
        few for from further get gets got had has have having he her here hers herself him himself his how i
        if in into is it its itself just let may me might more most much must my myself neither no nor not
        now of off on once one only onto or other our ours ourselves out over own per rather same shall she
        should since so some somebody someone something such than that the their theirs them themselves then
        there these they this those through thus to too toward towards under until up upon us very was we
        were what when where whether which while who whom whose why will with within without would yet you
        your yours according film video clip scene
        """
    )
)
"""Words that tell nothing; the last ones are what questions about films are made of."""


def untimed(text: str) -> str:
    """A text without the times in brackets that stand before what was read and heard."""
    return " ".join(_CLOCK.sub(" ", text).split())


def content_words(text: str) -> list[str]:
    """The words of a text that carry meaning, in lower case, each once; times in brackets are no words."""
    found = _WORD.findall(untimed(text).lower().replace("’", "'"))
    words = (word.removesuffix("'s") for word in found)
    return list(dict.fromkeys(word for word in words if word not in STOP))


def lemmas(texts: Iterable[str]) -> frozenset[str]:
    """The base forms of the content words of some texts, stop words among them left out."""
    found = {lemma(word) for text in texts for word in content_words(text)}
    return frozenset(found - STOP)


@lru_cache(maxsize=65536)
def lemma(word: str) -> str:
    """``washes`` as ``wash``."""
    from simplemma import lemmatize  # late: reads its table

    return str(lemmatize(word, lang="en")).lower()


@lru_cache(maxsize=65536)
def idf(word: str) -> float:
    """IDF(t) = clip((9 − zipf(t)) / 4, 0, 2), 1.5 for unknown words.

    Zipf is log₁₀ of occurrences per thousand million words: 7.7 for "the", 4 for "harbour". A raw −log p would
    let one common word fill Z.
    """
    from wordfreq import zipf_frequency  # late: reads 60 MB

    zipf = float(zipf_frequency(word, "en"))
    return min(2.0, max(0.0, (9.0 - zipf) / 4.0)) if zipf > 0 else UNKNOWN_IDF


def overlap(text: frozenset[str], keywords: frozenset[str], *, z: float = Z_LEX) -> float:
    """Eq. 8: min(1, Σ_{t ∈ e ∩ K} IDF(t) / Z), over lemmas."""
    return min(1.0, sum(idf(word) for word in sorted(text & keywords)) / z)
