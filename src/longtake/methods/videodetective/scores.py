"""Scores: of scenes before they are observed (eq. 5), of texts (eq. 9 and 10), and their trust."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.floating]


def prior(
    keyword: Rows, event: Rows, *, weight: float = 0.5, printed: bool = False
) -> NDArray[np.float64]:
    """Eq. 5, a row per facet: w · keyword–scene cosine + (1 − w) · query–event cosine.

    The paper adds raw cosines (``printed``). But cosines between pictures and words are far smaller
    than those between sentences, so by default the first are clipped at zero and the second are
    stretched to [0, 1] over the film.
    """
    if not printed:
        keyword, event = np.maximum(0.0, keyword), stretched(event)
    return np.asarray(weight * keyword + (1 - weight) * event, np.float64)


def stretched(values: Rows) -> NDArray[np.float64]:
    """Rescale each row to [0, 1]; a constant row is only clipped."""
    lowest = values.min(axis=-1, keepdims=True)
    reach = values.max(axis=-1, keepdims=True) - lowest
    divisor = np.where(reach > 0, reach, 1.0)  # avoids 0/0, whose result is not used
    rescaled = np.where(reach > 0, (values - lowest) / divisor, np.clip(values, 0.0, 1.0))
    return np.asarray(rescaled, np.float64)


def pieces(text: str, words: int = 50) -> list[str]:
    """Divide a text into pieces of at most ``words`` words, which fit into a text encoder."""
    parts = text.split()
    return [" ".join(parts[at : at + words]) for at in range(0, len(parts), words)]


def semantic(text: Rows, queries: Rows) -> float:
    """Eq. 9: the highest cosine between a piece of the text and a query; 0 if either is empty.

    Both are matrices of unit rows.
    """
    if len(text) == 0 or len(queries) == 0:
        return 0.0
    return float((text @ queries.T).max())


def source_aware(lexical: float, meaning: float, weight: float) -> float:
    """Eq. 10: λ·s_lex + (1 − λ)·s_sem, not below zero; λ depends on the source of the text."""
    return max(0.0, weight * lexical + (1 - weight) * meaning)


def distrust(
    scores: Sequence[float],
    *,
    peak: float = 0.4,
    mean: float = 0.2,
    gap: float = 0.15,
    low: float = 0.2,
    share: float = 0.7,
) -> str | None:
    """Return why the observed scores cannot single out relevant scenes; ``None`` if they can."""
    if not scores:
        return "nothing was observed"
    # nothing relevant seen, too little of it, nothing that stands out, or mostly irrelevant scenes
    values = np.asarray(scores, np.float64)
    if values.max() < peak:
        return f"no score reaches {peak:g}"
    if values.mean() < mean:
        return f"scores are below {mean:g} on average"
    if values.max() - values.mean() < gap:
        return f"the best score stands out by less than {gap:g}"
    if (values < low).mean() > share:
        return f"more than {share:.0%} of the scores are below {low:g}"
    return None
