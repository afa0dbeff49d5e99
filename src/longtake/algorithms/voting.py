"""Votes without labels: LVAgent's selection of a team from a library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def pseudo_labels(votes: Sequence[str | None]) -> frozenset[str]:
    """What most voters say of one question; all of them where several answers tie, none where nobody votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    most = max(counts.values(), default=0)
    return frozenset(vote for vote, count in counts.items() if count == most)


def agreement(votes: Mapping[str, Sequence[str | None]]) -> dict[str, list[bool]]:
    """LVAgent, equation 1, before the mean: per voter and question, ``[A_i(Q, T, O, V) = L_v]``.

    ``Acc(A_i)`` is the mean of a voter's row. Who does not vote agrees with nothing.
    """
    questions = list(zip(*votes.values(), strict=True))
    labels = [pseudo_labels(given) for given in questions]
    return {
        name: [
            vote is not None and vote in label for vote, label in zip(given, labels, strict=True)
        ]
        for name, given in votes.items()
    }
