"""Voting without labels: LVAgent's selection of a team from a library of agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def pseudo_labels(votes: Sequence[str | None]) -> frozenset[str]:
    """Return the majority answers to one question: several if they tie, none if nobody votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    most = max(counts.values(), default=0)
    return frozenset(vote for vote, count in counts.items() if count == most)


def agreement(votes: Mapping[str, Sequence[str | None]]) -> dict[str, list[bool]]:
    """LVAgent, equation 1, before the mean: ``[A_i(Q, T, O, V) = L_v]`` per voter and question.

    ``Acc(A_i)`` is the mean of a voter's row. A missing vote agrees with nothing.
    """
    labels = [pseudo_labels(given) for given in zip(*votes.values(), strict=True)]
    agreed: dict[str, list[bool]] = {}
    for name, given in votes.items():
        # labels never contain None, so a missing vote is in none of them
        agreed[name] = [vote in majority for vote, majority in zip(given, labels, strict=True)]
    return agreed
