"""Title cards: what a film writes on the screen to name the part that follows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby

from longtake.algorithms import lexical
from longtake.types import Line, Segment

MAX_LINES = 3
MAX_WORDS = 8
"""What a card holds at most; pages and screens hold more."""
ALIKE = 0.6
"""How alike the texts of one card are, which may appear letter by letter."""
_NUMBERED = re.compile(r"(?:(?:part|chapter|step|no|number)\W*)?#?\d{1,2}\b\W*\w", re.IGNORECASE)


def title_cards(shown: Sequence[Line], spoken: Sequence[Line], duration: float) -> list[Line]:
    """The cards in time order; none unless at least two divide the film.

    If two or more are numbered, these are the cards. Others are cards only where nobody speaks,
    since captions look alike; and those that begin in the second half are credits.
    """
    cards: list[Line] = []
    for segment, lines in groupby(shown, key=lambda line: line.segment):
        texts = [line.text.strip() for line in lines]
        card = Line(segment, " ".join(texts))
        if not _may_be_card(texts, card.text):
            continue
        if cards and _is_same(cards[-1], card):
            longer = max(cards[-1], card, key=lambda each: each.segment.duration)
            cards[-1] = Line(Segment(cards[-1].segment.start, segment.end), longer.text)
        else:
            cards.append(card)
    # a logo is shown again and again
    counts = Counter(card.text.casefold() for card in cards)
    cards = [card for card in cards if counts[card.text.casefold()] == 1]
    numbered = [card for card in cards if _NUMBERED.match(card.text)]
    cards = numbered if len(numbered) > 1 else [card for card in cards if _silent(card, spoken)]
    return cards if len(cards) > 1 and cards[0].segment.start < duration / 2 else []


def _may_be_card(texts: Sequence[str], text: str) -> bool:
    words = lexical.content_words(text)
    known = any(len(word) > 3 and lexical.is_known(word) for word in words)
    return known and len(texts) <= MAX_LINES and len(text.split()) <= MAX_WORDS


def _is_same(card: Line, other: Line) -> bool:
    """Whether a card goes on, read a little differently."""
    alike = SequenceMatcher(None, card.text.casefold(), other.text.casefold()).ratio() > ALIKE
    return alike and other.segment.start - card.segment.end <= 1.0


def _silent(card: Line, spoken: Sequence[Line]) -> bool:
    heard = sum(card.segment.overlap(line.segment) for line in spoken)
    return heard < card.segment.duration / 2
