"""Looks at moments of a video, as pictures or captions; closeness of moments to texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import passages, sampling
from longtake.footage.protocol import Footage
from longtake.perception.minilm import MeanPooling
from longtake.perception.protocols import VideoTextEncoder
from longtake.types import Evidence, Frame, Line, Segment

Default = TypeVar("Default", float, None)


@dataclass(frozen=True)
class Look:
    """What was looked at, in time order."""

    rows: tuple[int, ...]
    """Rows of the footage's grid."""
    frames: tuple[Frame, ...] = ()
    captions: tuple[Line, ...] = ()


def look_at(footage: Footage, rows: Sequence[int], *, pictures: bool = True) -> Look:
    """Look at the given rows of the grid.

    ``pictures=False`` decodes nothing, for callers that need only the moments.
    """
    times = [float(footage.times[row]) for row in rows]
    if "captions" not in footage.has:
        frames = footage.at(times) if pictures else []
        return Look(tuple(rows), frames=tuple(frames))
    return Look(tuple(rows), captions=tuple(captioned(footage, times)))


def captioned(footage: Footage, times: Sequence[float]) -> list[Line]:
    """The captions at the given times of footage that is made of captions."""
    captions = zip(times, footage.captions(times), strict=True)
    return [Line(Segment(time, time), text) for time, text in captions]


def likeness(footage: Footage, text: str, others: Sequence[str]) -> NDArray[np.float32]:
    """The closeness in meaning of several texts to one text."""
    rows = footage.meanings([text, *others])
    return np.asarray(rows[1:] @ rows[0], np.float32)


def look_closely(footage: Footage, segment: Segment, max_frames: int) -> Look:
    """Look at up to ``max_frames`` pictures of a segment, also between the moments of the grid.

    There are fewer if the film itself has fewer frames there. Captions exist only on the grid.
    """
    rows = rows_within(footage, segment)
    if len(rows) >= max_frames or "captions" in footage.has:
        return look_at(footage, rows[sampling.uniform(len(rows), max_frames)].tolist())
    times = np.linspace(segment.start, segment.end, max_frames, endpoint=False).tolist()
    # several of these times may show the same frame
    frames = {frame.time: frame for frame in footage.at(times)}
    return Look(tuple(rows.tolist()), frames=tuple(frames.values()))


def together(one: Look, other: Look) -> Look:
    """Both looks merged, without duplicates."""
    frames = {frame.time: frame for frame in (*one.frames, *other.frames)}
    captions = {line.segment: line for line in (*one.captions, *other.captions)}
    return Look(
        tuple(sorted({*one.rows, *other.rows})),
        tuple(frames[time] for time in sorted(frames)),
        tuple(captions[segment] for segment in sorted(captions)),
    )


def rows_within(footage: Footage, segment: Segment) -> NDArray[np.int64]:
    """The rows of the grid inside a segment, or the nearest row if it contains none."""
    inside = np.flatnonzero((footage.times >= segment.start) & (footage.times < segment.end))
    if len(inside):
        return inside
    return np.array([int(np.abs(footage.times - segment.middle).argmin())])


def cite(footage: Footage, look: Look, text: str, max_cited: int = 3) -> tuple[Evidence, ...]:
    """The moments of a look that are closest to a text, in time order."""
    closeness = footage.embeddings()[list(look.rows)] @ footage.encode([text])[0]
    best = np.argsort(-closeness, kind="stable")[:max_cited]
    cited = []
    for index in sorted(best.tolist()):
        time = float(footage.times[look.rows[index]])
        source, words = ("caption", look.captions[index].text) if look.captions else ("frame", "")
        score = round(float(closeness[index]), 4)
        cited.append(Evidence(Segment(time, time), source, words, score))
    return tuple(cited)


def threshold(
    card: Mapping[str, float], name: str, chosen: float | None, default: Default
) -> float | Default:
    """A threshold on similarities: the one that was set, else the card's, else the default."""
    if chosen is not None:
        return chosen
    return float(card[name]) if name in card else default


def clip_scorer(footage: Footage) -> VideoTextEncoder:
    """The footage's trained head if it has one, otherwise the mean of a clip's frames."""
    return footage.retriever or MeanPooling()


def fused(footage: Footage, text: str) -> NDArray[np.float32]:
    """One score per moment: the best of picture, speech and on-screen text.

    The cosines of pictures and of sentences cannot be compared, so each source is centred on its
    median and divided by its spread before the maximum is taken. Moments without words are scored
    by their picture alone. A moment at which the text itself is said or shown outranks all others.

    Only lines that are already known are used, so ``longtake index`` improves the result.
    """
    cosines = footage.embeddings() @ footage.encode([text])[0]
    scores = standing_out(np.asarray(cosines, np.float32))
    speech, onscreen = footage.known_lines()
    for lines in (speech, onscreen):
        if lines:
            closeness = _by_moment(footage, text, lines)
            known = ~np.isnan(closeness)
            scores[known] = np.maximum(scores[known], standing_out(closeness[known]))
    # a literal match exceeds the highest score
    highest = float(scores.max())
    for line in (*speech, *onscreen):
        fit = passages.match(text, line.text)
        if fit >= passages.SURE:
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
    # each distinct text is encoded once
    texts = list(dict.fromkeys(line.text for line in lines))
    closeness = dict(zip(texts, likeness(footage, text, texts).tolist(), strict=True))
    scores = np.full(len(footage.times), np.nan, np.float32)
    for line in lines:
        rows_of_line = _rows(footage, line)
        scores[rows_of_line] = np.fmax(scores[rows_of_line], closeness[line.text])
    return scores


def _rows(footage: Footage, line: Line) -> slice:
    """The rows of the grid at which a line is said or shown; always at least one."""
    # a line between two moments belongs to the earlier one
    begin = max(0, int(np.searchsorted(footage.times, line.segment.start, side="right")) - 1)
    end = int(np.searchsorted(footage.times, line.segment.end, side="left"))
    return slice(begin, max(begin + 1, end))
