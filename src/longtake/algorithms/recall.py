"""Recall of text-to-clip retrieval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TIED = 1e-6
"""Scores that differ by no more than this are equal."""


def recall(scores: NDArray[np.floating], k: int) -> float:
    """Recall@k of ``scores[text, clip]``: how often clip i is among the best ``k`` for text i.

    Tied scores have no order, so a clip tied with others counts by the probability that a random
    order puts it among the best ``k``.
    """
    if len(scores) == 0:
        return 0.0
    own = np.diag(scores)[:, None]
    better = (scores > own + TIED).sum(axis=1)
    tied = (np.abs(scores - own) <= TIED).sum(axis=1)  # itself included
    return float(np.clip((k - better) / tied, 0.0, 1.0).mean())
