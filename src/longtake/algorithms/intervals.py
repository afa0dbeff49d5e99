"""Measures how much of a film some segments cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

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


def elsewhere(segments: Iterable[Segment], duration: float, chance: Random) -> list[Segment]:
    """Random stretches of a film outside of the segments, of the same lengths.

    A stretch that reaches one of the segments continues after it. The segments must not cover more
    than half of the film.
    """
    taken = union(segments)
    lengths = [segment.duration for segment in taken]
    chance.shuffle(lengths)
    slack = duration - 2 * sum(lengths)
    if slack < 0:
        raise ValueError("the segments cover more than half of the film")
    # places in a film from which the segments were cut out, with random gaps in between
    pieces = []
    for number, place in enumerate(sorted(chance.uniform(0.0, slack) for _ in lengths)):
        start = place + sum(lengths[:number])
        pieces.append(Segment(start, start + lengths[number]))
    for cut in taken:
        moved = []
        for piece in pieces:
            if piece.start < cut.start < piece.end:
                moved.append(Segment(piece.start, cut.start))
                piece = Segment(cut.start, piece.end)
            if piece.start >= cut.start:
                piece = Segment(piece.start + cut.duration, piece.end + cut.duration)
            moved.append(piece)
        pieces = moved
    return pieces


def coverage(segments: Iterable[Segment], within: Segment) -> float:
    """Share of ``within`` that the segments cover, 0 to 1; an empty segment counts as covered."""
    if within.duration == 0:
        return 1.0
    covered = sum(segment.overlap(within) for segment in union(segments))
    return min(1.0, covered / within.duration)  # the sum may exceed 1 by rounding


NEAR = 5.0
"""Maximum distance in seconds between a citation and evidence that it matches."""


def gap(one: Segment, other: Segment) -> float:
    """Seconds between two segments; 0 if they touch or overlap."""
    return max(0.0, one.start - other.end, other.start - one.end)


def precision(cited: Sequence[Segment], evidence: Sequence[Segment]) -> float | None:
    """The share of citations that match the evidence; ``None`` if nothing is cited."""
    if not cited:
        return None
    return sum(_is_near(citation, evidence) for citation in cited) / len(cited)


def recall(cited: Sequence[Segment], evidence: Sequence[Segment]) -> float | None:
    """The share of the evidence that is cited; ``None`` if no evidence is known."""
    # the same with the roles exchanged
    return precision(evidence, cited)


def _is_near(one: Segment, others: Sequence[Segment]) -> bool:
    return any(gap(one, other) <= NEAR for other in others)


def tightness(cited: Sequence[Segment], evidence: Sequence[Segment]) -> float:
    """Intersection over union of everything cited and everything true, in seconds."""
    covered, true, both = _measured(cited, evidence)
    either = covered + true - both
    return both / either if either > 0 else 0.0


def seconds(cited: Sequence[Segment], evidence: Sequence[Segment]) -> tuple[float, float, float]:
    """Precision, recall and F1 of the seconds cited; all 0 if nothing true is cited."""
    covered, true, both = _measured(cited, evidence)
    if both == 0:
        return 0.0, 0.0, 0.0
    right, recalled = both / covered, both / true
    return right, recalled, 2 * right * recalled / (right + recalled)


def _measured(cited: Sequence[Segment], evidence: Sequence[Segment]) -> tuple[float, float, float]:
    """Seconds that are cited, that are true, and that are both."""
    covered, true = union(cited), union(evidence)
    both = sum(one.overlap(other) for one in covered for other in true)
    cited_seconds = sum(segment.duration for segment in covered)
    return cited_seconds, sum(segment.duration for segment in true), both


def iou(predicted: Segment, evidence: Sequence[Segment]) -> float:
    """The best intersection over hull with a true interval (NExT-GQA's tIoU)."""
    best = 0.0
    for true in evidence:
        hull = max(predicted.end, true.end) - min(predicted.start, true.start)
        if predicted.duration > 0:
            best = max(best, predicted.overlap(true) / hull)
    return best


def iop(predicted: Segment, evidence: Sequence[Segment]) -> float:
    """The best share of the prediction that lies inside a true interval (NExT-GQA's tIoP)."""
    if predicted.duration == 0:
        return float(any(true.start <= predicted.start <= true.end for true in evidence))
    shared = max((predicted.overlap(true) for true in evidence), default=0.0)
    return shared / predicted.duration
