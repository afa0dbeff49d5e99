"""How well each moment of a film fits a text, from pictures and from words together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import phrases
from longtake.footage.protocol import Footage
from longtake.types import Line


def fused(footage: Footage, text: str) -> NDArray[np.float32]:
    """Per moment of the grid, the best of picture, speech and on-screen text, each on its own scale.

    A cosine of pictures and a cosine of sentences cannot be compared; how far each stands out from its own
    source can. So each source is centred on its median and divided by its spread before the larger is taken.
    Moments without words have only their picture, and where the text itself is said or shown no picture stands out
    more. Only words that are already known count: nothing is listened to or read for this, so ``longtake index``
    makes it better.
    """
    scores = standing_out(np.asarray(footage.embeddings() @ footage.encode([text])[0], np.float32))
    for lines in footage.known_lines():
        if lines:
            words = _by_moment(footage, text, lines)
            known = ~np.isnan(words)
            scores[known] = np.maximum(scores[known], standing_out(words[known]))
    most = float(scores.max())
    for line in (line for lines in footage.known_lines() for line in lines):
        if (fit := phrases.match(text, line.text)) >= phrases.SURE:
            place = _moments(footage, line)
            scores[place] = np.maximum(scores[place], most + fit)
    return scores


def standing_out(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Distance from the median in spreads (MAD, else standard deviation); zeros where nothing differs."""
    centred = values - np.median(values)
    spread = 1.4826 * float(np.median(np.abs(centred))) or float(values.std())
    return np.asarray(centred / spread if spread > 0 else np.zeros_like(values), np.float32)


def _by_moment(footage: Footage, text: str, lines: list[Line]) -> NDArray[np.float32]:
    """Closeness in meaning of the closest line at each moment; NaN where there is none."""
    texts = list(dict.fromkeys(line.text for line in lines))
    rows = footage.meanings([text, *texts])
    closeness = dict(zip(texts, (rows[1:] @ rows[0]).tolist(), strict=True))
    scores = np.full(len(footage.times), np.nan, np.float32)
    for line in lines:
        place = _moments(footage, line)
        scores[place] = np.fmax(scores[place], closeness[line.text])
    return scores


def _moments(footage: Footage, line: Line) -> slice:
    """The moments of the grid at which a line is said or shown, the one before it where it is shorter than a step."""
    begin = max(0, int(np.searchsorted(footage.times, line.segment.start, side="right")) - 1)
    return slice(
        begin, max(begin + 1, int(np.searchsorted(footage.times, line.segment.end, side="left")))
    )
