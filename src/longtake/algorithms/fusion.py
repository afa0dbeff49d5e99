"""Fuses several rankings into one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""


def reciprocal_rank(
    rankings: Sequence[Sequence[T]], *, k: int = K, weights: Sequence[float] | None = None
) -> list[tuple[T, float]]:
    """Score items by ``Σ weight / (k + rank)`` over the rankings that contain them, best first.

    Ranks start at 1. Only ranks are used, since scores of different sources cannot be compared. An
    item counts once per ranking, at its best rank. Ties keep the order of first appearance.
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
    """Fuse rankings of *times*: hits of different sources within ``apart`` seconds add up.

    Returns ``(time, score, {source: its time})``, best first. The time is that of the best-ranked
    hit. Each source contributes only its best hit to a moment; its later hits nearby are absorbed.
    """
    hits: list[tuple[int, str, float]] = []
    for source, times in rankings.items():
        hits += [(rank, source, time) for rank, time in enumerate(times, start=1)]
    moments: list[_Moment] = []
    for rank, source, time in sorted(hits):
        near = [moment for moment in moments if abs(moment.time - time) <= apart]
        if near:
            nearest = min(near, key=lambda moment: abs(moment.time - time))
            # hits come by rank, so the first one of a source is its best
            nearest.members.setdefault(source, (rank, time))
        else:
            moments.append(_Moment(time, {source: (rank, time)}))
    fused = [(moment.time, moment.score(k), moment.times) for moment in moments]
    return sorted(fused, key=lambda entry: (-entry[1], entry[0]))


@dataclass(frozen=True)
class _Moment:
    """Hits that lie close together in time: rank and time by source."""

    time: float
    members: dict[str, tuple[int, float]]

    def score(self, k: int) -> float:
        return sum(1 / (k + rank) for rank, _ in self.members.values())

    @property
    def times(self) -> dict[str, float]:
        return {source: time for source, (_, time) in self.members.items()}
