"""Measures how much of a film some segments cover."""

from __future__ import annotations

from collections.abc import Iterable

from longtake.types import Segment


def union(segments: Iterable[Segment]) -> list[Segment]:
    """Merge overlapping and touching segments; the result is disjoint and in time order."""
    merged: list[Segment] = []
    for segment in sorted(segments):  # by start, so only the last one can overlap the next
        if merged and segment.start <= merged[-1].end:
            last = merged[-1]
            merged[-1] = Segment(last.start, max(last.end, segment.end))
        elif segment.duration > 0:
            merged.append(segment)
    return merged


def coverage(segments: Iterable[Segment], within: Segment) -> float:
    """Share of ``within`` that the segments cover, 0 to 1; an empty segment counts as covered."""
    if within.duration == 0:
        return 1.0
    covered = sum(segment.overlap(within) for segment in union(segments))
    return min(1.0, covered / within.duration)  # the sum may exceed 1 by rounding
