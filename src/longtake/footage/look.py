"""A look at some moments of a video: as pictures, or as captions if it is made of captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.footage.protocol import Footage
from longtake.types import Evidence, Frame, Line, Segment


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
    captions = zip(times, footage.captions(times), strict=True)
    lines = [Line(Segment(time, time), text) for time, text in captions]
    return Look(tuple(rows), captions=tuple(lines))


def look_closely(footage: Footage, segment: Segment, most: int) -> Look:
    """Look at up to ``most`` pictures of a segment, also between the moments of the grid.

    There are fewer if the film itself has fewer frames there. Captions exist only on the grid.
    """
    rows = rows_within(footage, segment)
    if len(rows) >= most or "captions" in footage.has:
        return look_at(footage, rows[sampling.uniform(len(rows), most)].tolist())
    times = np.linspace(segment.start, segment.end, most, endpoint=False).tolist()
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
    if len(inside):  # a segment shorter than a step may contain no row
        return inside
    return np.array([int(np.abs(footage.times - segment.middle).argmin())])


def cite(footage: Footage, look: Look, text: str, most: int) -> tuple[Evidence, ...]:
    """The moments of a look that are closest to a text, in time order."""
    # cited by closeness to the text: no model says which frames it relied on
    closeness = footage.embeddings()[list(look.rows)] @ footage.encode([text])[0]
    best = np.argsort(-closeness, kind="stable")[:most]
    cited = []
    for index in sorted(best.tolist()):
        time = float(footage.times[look.rows[index]])
        source, words = ("caption", look.captions[index].text) if look.captions else ("frame", "")
        score = round(float(closeness[index]), 4)
        cited.append(Evidence(Segment(time, time), source, words, score))
    return tuple(cited)
