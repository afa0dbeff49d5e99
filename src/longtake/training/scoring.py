"""How well scores retrieve the right clip, and the scale they are on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.recall import recall
from longtake.perception.pooling import MeanPooling
from longtake.training.pairs import Pairs

KS = (1, 5, 10)


def recalls(scores: NDArray[np.floating], ks: Sequence[int] = KS) -> dict[str, float]:
    """Recall at 1, 5 and 10 for ``scores[text, clip]``, where matching pairs share an index."""
    return {str(k): round(recall(scores, k), 6) for k in ks}


def pooled_scores(pairs: Pairs) -> NDArray[np.float32]:
    """``scores[text, clip]`` by mean pooling, the baseline for a trained head."""
    texts, pooling = np.asarray(pairs.texts, np.float32), MeanPooling()
    return np.stack([pooling.scores(pairs.clip(number), texts) for number in range(len(pairs))]).T


def scale_of(scores: NDArray[np.floating]) -> tuple[float, float] | None:
    """The scores that count as 0 and as 1, or ``None`` if they cannot be told apart.

    These are the median score of clips with other captions and with their own.
    """
    own = np.diag(scores)
    other = scores[~np.eye(len(scores), dtype=bool)]
    if not len(other):
        return None
    low, high = float(np.median(other)), float(np.median(own))
    return (round(low, 6), round(high, 6)) if high > low else None
