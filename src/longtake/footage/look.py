"""A look at some moments of a film: as pictures, or as captions where there are no pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.footage.footage import Footage
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


def rows_within(footage: Footage, segment: Segment) -> NDArray[np.int64]:
    """The places of the grid inside a segment; the nearest one where it holds none."""
    inside = np.flatnonzero((footage.times >= segment.start) & (footage.times < segment.end))
    return inside if len(inside) else np.array([int(np.abs(footage.times - segment.middle).argmin())])


def cite(footage: Footage, look: Look, text: str, most: int) -> tuple[Evidence, ...]:
    """The looked-at moments closest to a text, in time order."""
    closeness = footage.embeddings()[list(look.rows)] @ footage.encode([text])[0]
    cited = []
    for place in sorted(np.argsort(-closeness, kind="stable")[:most].tolist()):
        time = float(footage.times[look.rows[place]])
        source, words = ("caption", look.captions[place].text) if look.captions else ("frame", "")
        cited.append(Evidence(Segment(time, time), source, words, round(float(closeness[place]), 4)))
    return tuple(cited)
