"""Whether answers cite the evidence, where a benchmark says where the evidence is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from longtake.algorithms import grounding
from longtake.evals.items import Item
from longtake.types import Segment

GROUNDED = 0.5
"""Least IoP of a grounded answer in Acc@GQA (NExT-GQA's authors)."""


@dataclass(frozen=True)
class Citations:
    """Means over questions; a mean over nothing is ``None``."""

    questions: int
    """Questions whose evidence is known."""
    precision: float | None
    """Share of citations within five seconds of the evidence, where the answer is right."""
    recall: float | None
    """Share of the evidence with a citation within five seconds, where the answer is right."""
    tightness: float | None
    """Intersection over union of what is cited and what is true, where the answer is right."""
    cited_right: float | None
    """Share of questions with a right answer whose strongest citation is at the evidence."""
    uncited: float | None
    """Share of right answers that cite nothing."""
    miou: float | None
    """Of the strongest citation, over all questions (NExT-GQA)."""
    miop: float | None
    acc_gqa: float | None
    """Share of questions with a right answer whose strongest citation has an IoP of 0.5 or more."""

    def figures(self) -> dict[str, float]:
        """The means that exist, by the names that reports use."""
        named = {
            "precision (right answers, within 5 s)": self.precision,
            "recall (right answers, within 5 s)": self.recall,
            "tightness (right answers, IoU)": self.tightness,
            "right with the right moment cited": self.cited_right,
            "right answers without a citation": self.uncited,
            "mIoU": self.miou,
            "mIoP": self.miop,
            "Acc@GQA": self.acc_gqa,
        }
        return {name: value for name, value in named.items() if value is not None}


def measure(
    items: Sequence[Item], rows: Sequence[Mapping[str, Any]], right: Sequence[bool]
) -> Citations | None:
    """The citations of a run; ``None`` if the benchmark names no evidence."""
    known = [
        (item.evidence, cited(row), is_right)
        for item, row, is_right in zip(items, rows, right, strict=True)
        if item.evidence
    ]
    if not known:
        return None
    sound = [(truth, citations) for truth, citations, is_right in known if is_right]
    overlaps = [(_strongest(citations), truth) for truth, citations, _ in known]
    ious = [grounding.iou(best, truth) if best else 0.0 for best, truth in overlaps]
    iops = [grounding.iop(best, truth) if best else 0.0 for best, truth in overlaps]
    hits = [is_right and iop >= GROUNDED for (_, _, is_right), iop in zip(known, iops, strict=True)]
    return Citations(
        len(known),
        precision=_mean([grounding.precision(citations, truth) for truth, citations in sound]),
        recall=_mean([grounding.recall(citations, truth) for truth, citations in sound]),
        tightness=_mean([grounding.tightness(citations, truth) for truth, citations in sound]),
        cited_right=_mean([float(_at_evidence(*each)) for each in known]),
        uncited=_mean([float(not citations) for _, citations in sound]),
        miou=_mean(ious),
        miop=_mean(iops),
        acc_gqa=_mean([float(hit) for hit in hits]),
    )


def cited(row: Mapping[str, Any]) -> list[Segment]:
    """What a result cites, the strongest first; results of older runs are in time order."""
    pairs = row.get("evidence") or []
    return [Segment(float(start), float(end)) for start, end, *_ in pairs]


def _at_evidence(truth: Sequence[Segment], citations: Sequence[Segment], right: bool) -> bool:
    return right and bool(grounding.precision(citations[:1], truth))


def _strongest(citations: Sequence[Segment]) -> Segment | None:
    return citations[0] if citations else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
