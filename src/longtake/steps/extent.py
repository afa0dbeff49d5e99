"""Gives cited moments the time that they last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longtake.footage.protocol import Footage
from longtake.types import Evidence, Segment

REACH = 30
"""Moments on either side in which the same caption counts as the same moment."""


def with_extent(evidence: Evidence, footage: Footage) -> Evidence:
    """Evidence that lasts as long as what it shows: a moment is cited as its step of the grid.

    A caption lasts as long as it stays the same. What has a length already keeps it.
    """
    times = footage.times
    if evidence.segment.duration > 0 or not len(times):
        return evidence
    row = int(np.searchsorted(times, evidence.segment.start, side="right")) - 1
    first = last = max(0, row)
    if "captions" in footage.has:
        first, last = _same_caption(footage, first)
    end = float(times[last + 1]) if last + 1 < len(times) else footage.duration
    start = min(float(times[first]), evidence.segment.start)
    return replace(evidence, segment=Segment(start, max(start, end)))


def _same_caption(footage: Footage, row: int) -> tuple[int, int]:
    """The first and last row around a row whose captions are the same as its own."""
    low, high = max(0, row - REACH), min(len(footage.times), row + REACH + 1)
    captions = footage.captions(footage.times[low:high].tolist())
    first = last = row
    while first > low and captions[first - 1 - low] == captions[row - low]:
        first -= 1
    while last + 1 < high and captions[last + 1 - low] == captions[row - low]:
        last += 1
    return first, last
