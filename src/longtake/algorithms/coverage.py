"""How much of a film has been looked at."""

from __future__ import annotations

from collections.abc import Iterable

from longtake.types import Segment


def union(segments: Iterable[Segment]) -> list[Segment]:
    """Disjoint segments in time order that cover the same moments; touching ones become one."""
    merged: list[Segment] = []
    for segment in sorted(segments):
        if merged and segment.start <= merged[-1].end:
            merged[-1] = Segment(merged[-1].start, max(merged[-1].end, segment.end))
        elif segment.duration > 0:
            merged.append(segment)
    return merged


def coverage(segments: Iterable[Segment], within: Segment) -> float:
    """Share of ``within`` that the segments cover, 0 to 1; a stretch of no length is covered."""
    if within.duration == 0:
        return 1.0
    return min(1.0, sum(segment.overlap(within) for segment in union(segments)) / within.duration)
