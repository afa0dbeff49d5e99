"""Several rankings of the same things made into one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

K = 60
"""Damping of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""


def reciprocal_rank(
    rankings: Sequence[Sequence[T]], *, k: int = K, weights: Sequence[float] | None = None
) -> list[tuple[T, float]]:
    """Items by ``Σ weight / (k + rank)`` over the rankings that hold them, best first.

    Ranks count from 1. Scores of different sources are never compared, only places; an item is counted once
    per ranking, at its best place. Ties keep the order in which items first appear.
    """
    if weights is None:
        weights = [1.0] * len(rankings)
    if len(weights) != len(rankings):
        raise ValueError(f"{len(weights)} weights for {len(rankings)} rankings")
    scores: dict[T, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), start=1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def by_moment(
    rankings: Mapping[str, Sequence[float]], *, apart: float = 2.0, k: int = K
) -> list[tuple[float, float, dict[str, float]]]:
    """Fuse rankings of *moments*: hits of different sources within ``apart`` seconds support one another.

    Gives ``(time, score, {source: its time})``, best first. The time is that of the best-placed member. A
    moment takes at most one hit from each source, its best; later hits near it are the same moment.
    """
    places = sorted(
        (rank, source, time)
        for source, times in rankings.items()
        for rank, time in enumerate(times, start=1)
    )
    moments: list[tuple[float, dict[str, tuple[int, float]]]] = []
    for rank, source, time in places:
        near = [moment for moment in moments if abs(moment[0] - time) <= apart]
        if near:
            nearest = min(near, key=lambda moment: abs(moment[0] - time))
            nearest[1].setdefault(source, (rank, time))
        else:
            moments.append((time, {source: (rank, time)}))
    scored = [
        (
            time,
            sum(1 / (k + rank) for rank, _ in members.values()),
            {s: t for s, (_, t) in members.items()},
        )
        for time, members in moments
    ]
    return sorted(scored, key=lambda moment: (-moment[1], moment[0]))
