"""How relevant scenes are, before and after they are looked at, and whether that can be trusted (VideoDetective)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.floating]


def prior(
    keyword: Rows, event: Rows, *, weight: float = 0.5, printed: bool = False
) -> NDArray[np.float64]:
    """Eq. 5, a row per facet: ``weight`` · keyword–scene cosine + (1 − ``weight``) · query–event cosine.

    As printed, raw cosines are added, though those between pictures and words are far smaller than those between
    sentences; so here the first is clipped at zero and the second stretched to 0 … 1 over the film.
    """
    if printed:
        return np.asarray(weight * keyword + (1 - weight) * event, np.float64)
    return np.asarray(
        weight * np.maximum(0.0, keyword) + (1 - weight) * stretched(event), np.float64
    )


def stretched(values: Rows) -> NDArray[np.float64]:
    """Each row on 0 … 1 between its least and its most; zeros where all are equal."""
    least = values.min(axis=-1, keepdims=True)
    reach = values.max(axis=-1, keepdims=True) - least
    return np.asarray(
        np.where(reach > 0, (values - least) / np.where(reach > 0, reach, 1.0), 0.0), np.float64
    )


def pieces(text: str, words: int = 50) -> list[str]:
    """A text in stretches of at most so many words, so that an encoder's limit cuts nothing off."""
    parts = text.split()
    return [" ".join(parts[at : at + words]) for at in range(0, len(parts), words)]


def semantic(text: Rows, queries: Rows) -> float:
    """Eq. 9: the highest cosine between a piece of the text and a query, both unit rows; 0 where either is missing."""
    return float((text @ queries.T).max()) if len(text) and len(queries) else 0.0


def source_aware(lexical: float, meaning: float, weight: float) -> float:
    """Eq. 10: λ·s_lex + (1 − λ)·s_sem, with λ of the source the text comes from; never below zero."""
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
    """Why the observed scores cannot tell relevant scenes from others; ``None`` where they can."""
    if not scores:
        return "nothing was observed"
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
