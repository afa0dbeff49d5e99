"""How much of a text a film states: the words that a single sentence, or two of them, hold.

BM25 counts the words of a whole segment, in which one sentence may have the person and another the
deed; a sentence that has both is what was asked for. A question with two parts ("what does the
person who … do there?") is stated by two sentences of one film.

Words are compared by their stems, and neighbouring words count as pairs: "the red coat" is not a
red hat beside a blue coat (the sequential dependence model of Metzler and Croft, SIGIR 2005, whose
weight of pairs is taken).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from longtake.library.segment_index import Stored
from longtake.library.stems import Stemmer

PAIRS = 0.15
"""Weight of the pairs of neighbouring words; the words themselves have the rest."""
PARTNERS = 8
"""Best rows of a film of which any two are taken together."""
_END = re.compile(r"(?<=[.!?])\s+")
_stemmer = Stemmer()


@dataclass(frozen=True)
class Statement:
    """The words and the pairs of neighbouring words that a sentence holds."""

    words: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()

    def within(self, other: Statement) -> Statement:
        """What both hold."""
        return Statement(self.words & other.words, self.pairs & other.pairs)

    def with_(self, other: Statement) -> Statement:
        """What either holds."""
        return Statement(self.words | other.words, self.pairs | other.pairs)


NOTHING = Statement()


class Asked:
    """A text that rows are compared with."""

    def __init__(self, text: str) -> None:
        self.whole = _statement(_stemmer.stems(text))

    def share(self, statement: Statement) -> float:
        """The share of the text that a statement holds, 0 to 1."""
        held = statement.within(self.whole)
        words = len(held.words) / max(1, len(self.whole.words))
        if not self.whole.pairs:
            return words
        return (1 - PAIRS) * words + PAIRS * len(held.pairs) / len(self.whole.pairs)

    def best(self, texts: Sequence[str]) -> list[Statement]:
        """For each text, what its best sentence holds of the text that is asked for."""
        sentences = [_END.split(text) for text in texts]
        flat = [sentence for each in sentences for sentence in each]
        stems = iter(_stemmer.stems_of(flat))
        found = []
        for each in sentences:
            held = [_statement(next(stems)).within(self.whole) for _ in each]
            found.append(max(held, key=self.share, default=NOTHING))
        return found

    def of_rows(self, rows: Sequence[Stored]) -> list[Statement]:
        """The same for rows, whose sentences are those of all their lines."""
        return self.best([_text(row) for row in rows])

    def together(self, statements: Iterable[Statement]) -> float:
        """The largest share that two statements hold together."""
        leading = sorted(statements, key=self.share, reverse=True)[:PARTNERS]
        single = self.share(leading[0]) if leading else 0.0
        joint = [self.share(one.with_(other)) for one, other in combinations(leading, 2)]
        return max([single, *joint])


def _statement(stems: Sequence[str]) -> Statement:
    return Statement(frozenset(stems), frozenset(pairwise(stems)))


def _text(row: Stored) -> str:
    lines = [line.text for lines in row.lines.values() for line in lines]
    # a line is at least a sentence, with a full stop or without
    return ". ".join(lines)
