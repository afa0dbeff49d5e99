"""How well texts find their clips."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TIED = 1e-6
"""Scores that differ by less are equal."""


def recall(scores: NDArray[np.floating], k: int) -> float:
    """Recall@k of ``scores[text, clip]``, the clip of text ``i`` being ``i``: the share found among the best ``k``.

    Equal scores stand in no order: a clip tied with others counts for the share of orders in which it is found.
    """
    own = np.diag(scores)[:, None]
    better = (scores > own + TIED).sum(axis=1)
    tied = (np.abs(scores - own) <= TIED).sum(axis=1)  # itself included
    return float(np.clip((k - better) / tied, 0.0, 1.0).mean()) if len(scores) else 0.0
