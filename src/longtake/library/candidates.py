"""The films that may answer a question, by search.

One option of a question is right and the others are wrong, so what counts for a film is its best
option: how much of the question and that option the film states. That is a share of their words,
which can be compared between searches, and is fused with the search for the question itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from longtake.library.searching import SHARP, FilmHits, Found, Moment, ranked
from longtake.types import Question

PASSAGES = 3
"""Moments of a film that are shown to a model."""

Search = Callable[[str], Found]


def candidates(search: Search, question: Question, most: int) -> Found:
    """The likeliest films, best first, with the moments that speak for them."""
    found = search(question.text)
    if not question.options:
        return found
    best: dict[str, FilmHits] = {}
    for option in question.options:
        for hits in search(f"{question.text} {option}").films:
            known = best.get(hits.entry.fingerprint)
            if known is None or hits.stated > known.stated:
                best[hits.entry.fingerprint] = hits
    return replace(found, films=_fused(found.films, list(best.values()))[:most])


def _fused(plain: Sequence[FilmHits], with_option: Sequence[FilmHits]) -> list[FilmHits]:
    """Two lists of films as one, by reciprocal rank; films that state as much have one rank."""
    films: dict[str, FilmHits] = {hits.entry.fingerprint: hits for hits in [*with_option, *plain]}
    scores = dict.fromkeys(films, 0.0)
    for rank, hits in enumerate(plain, start=1):
        scores[hits.entry.fingerprint] += 1 / (SHARP + rank)
    ranks = ranked([hits.stated for hits in with_option])
    for hits, rank in zip(with_option, ranks, strict=True):
        film = hits.entry.fingerprint
        scores[film] += 1 / (SHARP + rank)
        if films[film] is not hits:
            moments = _alternating(films[film].moments, hits.moments)
            films[film] = replace(films[film], moments=tuple(moments))
    order = sorted(films, key=lambda film: -scores[film])
    return [films[film] for film in order]


def _alternating(one: Iterable[Moment], other: Iterable[Moment]) -> list[Moment]:
    """The best moments of two lists in turn, each once."""
    in_turn = chain.from_iterable(zip_longest(one, other))
    distinct = {moment.segment: moment for moment in in_turn if moment is not None}
    return list(distinct.values())[:PASSAGES]
