"""How much of a text a film states: the words that a single sentence, or two of them, hold.

BM25 counts the words of a whole segment, in which one sentence may have the person and another the
deed; a sentence that has both is what was asked for. A question with two parts ("what does the
person who … do there?") is stated by two sentences of one film.

Words are compared by their base forms, and neighbouring words count as pairs: "the red coat" is
not a red hat beside a blue coat (the sequential dependence model of Metzler and Croft, SIGIR 2005,
whose weight of pairs is taken).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations, pairwise
from operator import attrgetter
from typing import NamedTuple

from longtake.algorithms.lexical import lemma
from longtake.library.segment_index import Stored, query_words

PAIRS = 0.15
"""Weight of the pairs of neighbouring words; the words themselves have the rest."""
PARTNERS = 8
"""Best rows of a film of which any two are taken together."""
_END = re.compile(r"(?<=[.!?])\s+")
_SHARE = attrgetter("share")


class Statement(NamedTuple):
    """What a sentence holds of a text: words and pairs of neighbouring words."""

    words: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()
    share: float = 0.0
    """The share of the text that this is, 0 to 1."""


NOTHING = Statement()


class Asked:
    """A text that the lines of films are compared with; each line is read once."""

    def __init__(self, text: str) -> None:
        words = _base_forms(text)
        self._words, self._pairs = frozenset(words), frozenset(pairwise(words))
        self._known: dict[str, Statement] = {}

    def best(self, texts: Sequence[str]) -> list[Statement]:
        """For each text, what its best sentence holds."""
        for text in texts:
            if text not in self._known:
                held = [self._held(_base_forms(sentence)) for sentence in _END.split(text)]
                self._known[text] = max(held, key=_SHARE)
        return [self._known[text] for text in texts]

    def of_rows(self, rows: Sequence[Stored]) -> list[Statement]:
        """The same for rows, whose sentences are those of all their lines."""
        statements = []
        for row in rows:
            texts = [line.text for lines in row.lines.values() for line in lines]
            statements.append(max(self.best(texts), key=_SHARE, default=NOTHING))
        return statements

    def together(self, statements: Iterable[Statement]) -> float:
        """The largest share that two statements hold together."""
        leading = sorted(statements, key=_SHARE, reverse=True)[:PARTNERS]
        shares = [leading[0].share] if leading else [0.0]
        for one, other in combinations(leading, 2):
            words, pairs = one.words | other.words, one.pairs | other.pairs
            # together they may hold nothing that one of them does not
            if len(words) > len(one.words) or len(pairs) > len(one.pairs):
                shares.append(self._share(words, pairs))
        return max(shares)

    def _held(self, sentence: Sequence[str]) -> Statement:
        words = self._words.intersection(sentence)
        pairs = self._pairs.intersection(pairwise(sentence)) if len(words) > 1 else frozenset()
        return Statement(words, pairs, self._share(words, pairs))

    def _share(self, words: Collection[str], pairs: Collection[tuple[str, str]]) -> float:
        share = len(words) / max(1, len(self._words))
        if not self._pairs:
            return share
        return (1 - PAIRS) * share + PAIRS * len(pairs) / len(self._pairs)


def _base_forms(text: str) -> list[str]:
    return [lemma(word) for word in query_words(text)]
