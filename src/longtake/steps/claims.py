"""Splits an open answer of several sentences into claims, each with its own citations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longtake.algorithms import lexical
from longtake.algorithms.passages import HELD, held
from longtake.types import Answer

# an end is followed by white space and a capital, digit or quote: not so in "2.5" and "e.g. a"
_BREAK = re.compile(r"(?<=[.!?])[\"”']?\s+(?=[\"“'(]?[A-Z0-9])")
# "Dr. Smith" and "J. Smith" are no ends
_TITLE = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs)|\b[A-Z])\.$")


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer."""

    text: str
    citations: tuple[int, ...]
    """Places in the answer's evidence, from 0, of what holds its words; may be empty."""


def claims(answer: Answer) -> tuple[Claim, ...]:
    """The claims of an open answer; none if it makes only one, which all its citations support."""
    if answer.choice is not None:
        return ()
    parts = sentences(answer.text)
    if len(parts) < 2:
        return ()
    return tuple(Claim(part, _citations(part, answer)) for part in parts)


def sentences(text: str) -> list[str]:
    """The sentences of a text; abbreviations and decimals do not end one."""
    parts: list[str] = []
    for part in _BREAK.split(text.strip()):
        if parts and _TITLE.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part:
            parts.append(part)
    return parts


def _citations(sentence: str, answer: Answer) -> tuple[int, ...]:
    wanted = lexical.lemmas([sentence])
    shares = [held(sentence, wanted, cited.text) for cited in answer.evidence]
    return tuple(place for place, share in enumerate(shares) if share >= HELD)
