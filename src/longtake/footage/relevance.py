"""How well each moment of a video fits a text, judged by pictures and words together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import phrases
from longtake.footage.protocol import Footage
from longtake.types import Line


def fused(footage: Footage, text: str) -> NDArray[np.float32]:
    """One score per moment: the best of picture, speech and on-screen text.

    A cosine between a picture and a text cannot be compared with one between two sentences, but how
    far each stands out from its own source can. So each source is centred on its median and divided
    by its spread, and the largest value is taken. Moments without words are scored by their picture
    alone. A moment at which the text itself is said or shown outranks every picture.

    Only lines that are already known are used: ``longtake index`` therefore improves the result.
    """
    cosines = footage.embeddings() @ footage.encode([text])[0]
    scores = standing_out(np.asarray(cosines, np.float32))
    speech, onscreen = footage.known_lines()
    for lines in (speech, onscreen):
        if lines:
            closeness = _by_moment(footage, text, lines)
            known = ~np.isnan(closeness)
            scores[known] = np.maximum(scores[known], standing_out(closeness[known]))
    # a literal match must win whatever the pictures score, so it starts from the highest score
    highest = float(scores.max())
    for line in (*speech, *onscreen):
        fit = phrases.match(text, line.text)
        if fit >= phrases.SURE:
            rows = _rows(footage, line)
            scores[rows] = np.maximum(scores[rows], highest + fit)
    return scores


def standing_out(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Distance from the median in spreads (MAD, else standard deviation); 0 if all are equal."""
    centred = values - np.median(values)
    # 1.4826 makes the MAD of normal data equal to its standard deviation
    spread = 1.4826 * float(np.median(np.abs(centred))) or float(values.std())
    if spread <= 0:
        return np.zeros_like(values, np.float32)
    return np.asarray(centred / spread, np.float32)


def _by_moment(footage: Footage, text: str, lines: list[Line]) -> NDArray[np.float32]:
    """Closeness in meaning of the best line at each moment; NaN where there is no line."""
    # subtitles and signs repeat; each distinct text is encoded once
    texts = list(dict.fromkeys(line.text for line in lines))
    rows = footage.meanings([text, *texts])
    closeness = dict(zip(texts, (rows[1:] @ rows[0]).tolist(), strict=True))
    scores = np.full(len(footage.times), np.nan, np.float32)
    for line in lines:
        rows_of_line = _rows(footage, line)
        scores[rows_of_line] = np.fmax(scores[rows_of_line], closeness[line.text])
    return scores


def _rows(footage: Footage, line: Line) -> slice:
    """The rows of the grid at which a line is said or shown; always at least one."""
    # a line shorter than a step belongs to the moment before it
    begin = max(0, int(np.searchsorted(footage.times, line.segment.start, side="right")) - 1)
    end = int(np.searchsorted(footage.times, line.segment.end, side="left"))
    return slice(begin, max(begin + 1, end))
