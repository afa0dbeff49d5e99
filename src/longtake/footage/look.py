"""A look at some moments of a film: as pictures, or as captions where there are no pictures."""

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
    """Places in the footage's grid."""
    frames: tuple[Frame, ...] = ()
    captions: tuple[Line, ...] = ()


def look_at(footage: Footage, rows: Sequence[int], *, pictures: bool = True) -> Look:
    """These moments of the grid; ``pictures=False`` fetches none, for what needs the moments alone."""
    times = [float(footage.times[row]) for row in rows]
    captions = footage.captions(times)
    if captions is None:
        return Look(tuple(rows), frames=tuple(footage.at(times)) if pictures else ())
    lines = [Line(Segment(time, time), text) for time, text in zip(times, captions, strict=True)]
    return Look(tuple(rows), captions=tuple(lines))


def look_closely(footage: Footage, segment: Segment, most: int) -> Look:
    """``most`` pictures of a segment, from between the moments of the grid where it holds fewer.

    Fewer where the film itself has no more; captions there are only those of the grid.
    """
    rows = rows_within(footage, segment)
    if len(rows) >= most or footage.captions([]) is not None:
        return look_at(footage, rows[sampling.uniform(len(rows), most)].tolist())
    times = np.linspace(segment.start, segment.end, most, endpoint=False).tolist()
    shown = {frame.time: frame for frame in footage.at(times)}
    return Look(tuple(rows.tolist()), frames=tuple(shown.values()))


def together(one: Look, other: Look) -> Look:
    """Both looks as one, nothing twice."""
    frames = {frame.time: frame for frame in (*one.frames, *other.frames)}
    captions = {line.segment: line for line in (*one.captions, *other.captions)}
    return Look(
        tuple(sorted({*one.rows, *other.rows})),
        tuple(frames[time] for time in sorted(frames)),
        tuple(captions[segment] for segment in sorted(captions)),
    )


def rows_within(footage: Footage, segment: Segment) -> NDArray[np.int64]:
    """The places of the grid inside a segment; the nearest one where it holds none."""
    inside = np.flatnonzero((footage.times >= segment.start) & (footage.times < segment.end))
    return (
        inside if len(inside) else np.array([int(np.abs(footage.times - segment.middle).argmin())])
    )


def cite(footage: Footage, look: Look, text: str, most: int) -> tuple[Evidence, ...]:
    """The looked-at moments closest to a text, in time order."""
    closeness = footage.embeddings()[list(look.rows)] @ footage.encode([text])[0]
    cited = []
    for place in sorted(np.argsort(-closeness, kind="stable")[:most].tolist()):
        time = float(footage.times[look.rows[place]])
        source, words = ("caption", look.captions[place].text) if look.captions else ("frame", "")
        cited.append(
            Evidence(Segment(time, time), source, words, round(float(closeness[place]), 4))
        )
    return tuple(cited)
