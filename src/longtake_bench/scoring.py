"""Accuracy and differences in accuracy, with their uncertainty.

Results on the same video are correlated, so intervals treat videos, not questions, as the sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import intervals
from longtake.types import Segment
from longtake_bench.benchmarks import NOT_TOLD, SEVERAL, LabelledQuestion

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""
DRAWS = 2000
"""Bootstrap samples."""
ARTICLES = ("a", "an", "the")


@dataclass(frozen=True)
class Rate:
    """A proportion with its 95 % interval."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.value:6.1%} [{self.low:.1%}, {self.high:.1%}] of {self.count}"


@dataclass(frozen=True)
class Difference:
    """One method minus another on the same questions: 95 % interval, and McNemar's exact p."""

    value: float
    low: float
    high: float
    only_first: int
    """Questions that only the first method got right."""
    only_second: int
    p: float

    def __str__(self) -> str:
        return f"{self.value:+.1%} [{self.low:+.1%}, {self.high:+.1%}], p = {self.p:.3g}"


def correct(item: LabelledQuestion, choice: str | None, text: str) -> bool:
    """Whether an answer is right; no answer is wrong.

    Open answers are right if they contain the label or another accepted answer, regardless of case,
    articles and punctuation.
    """
    if item.label is None:
        raise ValueError(f"{item.asked.id} has no public label; it can be submitted, not scored")
    if item.asked.question.options:
        return choice == item.label
    padded = f" {normalized(text)} "
    truths = [normalized(accepted) for accepted in (item.label, *item.accepted)]
    # the spaces make it match whole words only
    return any(truth and f" {truth} " in padded for truth in truths)


def sound(item: LabelledQuestion, row: Mapping[str, Any]) -> bool:
    """Whether a result is right: its answer, or its abstention where the film does not tell."""
    if item.label == NOT_TOLD:
        return bool(row["status"] == "abstained")
    return correct(item, row.get("choice"), row.get("text") or "")


def accuracy(right: Sequence[bool], videos: Sequence[str]) -> Rate:
    """Share of right answers, with an interval from a standard error clustered by video.

    With few videos the clustered error is itself uncertain and can be zero by chance, so the
    interval is never narrower than Wilson's, which assumes independent questions.
    """
    values = np.asarray(right, np.float64)
    # without questions, nothing is known
    if not len(values):
        return Rate(0.0, 0.0, 1.0, 0)
    mean = float(values.mean())
    low, high = wilson(int(values.sum()), len(values))
    error = clustered_error(values, videos)
    if error is not None:
        low = min(low, max(0.0, mean - Z95 * error))
        high = max(high, min(1.0, mean + Z95 * error))
    return Rate(mean, low, high, len(values))


def clustered_error(values: NDArray[np.float64], clusters: Sequence[str]) -> float | None:
    """Standard error of the mean of clustered observations; ``None`` for fewer than two clusters.

    √(G/(G−1) · Σ_g (Σ_{i∈g} (x_i − x̄))²) / n
    """
    groups = len(set(clusters))
    if groups < 2:
        return None
    residuals = values - values.mean()
    sums = np.bincount(_numbered(clusters), weights=residuals)
    correction = groups / (groups - 1)
    return float(math.sqrt(correction * float((sums**2).sum())) / len(values))


def wilson(successes: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion."""
    if count == 0:
        return 0.0, 1.0
    share, z2 = successes / count, Z95**2
    shrink = 1 + z2 / count
    middle = (share + z2 / (2 * count)) / shrink
    variance = share * (1 - share) / count + z2 / (4 * count**2)
    reach = Z95 / shrink * math.sqrt(variance)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def paired(
    first: Sequence[bool], second: Sequence[bool], videos: Sequence[str], *, seed: int = 0
) -> Difference:
    """The first minus the second on the same questions.

    The interval is bootstrapped over videos, the p-value is McNemar's over questions.
    """
    gaps = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if not len(gaps):
        return Difference(0.0, -1.0, 1.0, 0, 0, 1.0)
    rows = _numbered(videos)
    sums = np.bincount(rows, weights=gaps)
    counts = np.bincount(rows)
    # each draw takes whole videos, with replacement
    draws = np.random.default_rng(seed).integers(0, len(sums), (DRAWS, len(sums)))
    # a video weighs as much as it has questions, as in the accuracy itself
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    only_first, only_second = int((gaps > 0).sum()), int((gaps < 0).sum())
    p = mcnemar(only_first, only_second)
    return Difference(float(gaps.mean()), float(low), float(high), only_first, only_second, p)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value of so uneven a split of the disagreements under fair coin flips."""
    count = only_first + only_second
    if count == 0:
        return 1.0
    fewer = min(only_first, only_second)
    tail = sum(math.comb(count, k) for k in range(fewer + 1))
    # the distribution is symmetric, so both tails are twice one
    return min(1.0, float(2 * tail / 2**count))


def by_tag(
    items: Sequence[LabelledQuestion], right: Sequence[bool], tag: str
) -> Mapping[str, Rate]:
    """Accuracy for each value of a tag; a question with several values counts for each."""
    rates = {}
    # questions without the tag form a separate group
    values = [item.tags.get(tag, "").split(SEVERAL) for item in items]
    for value in sorted({each for several in values for each in several}):
        chosen = [i for i, several in enumerate(values) if value in several]
        videos = [items[i].asked.video for i in chosen]
        rates[value] = accuracy([right[i] for i in chosen], videos)
    return rates


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    """Names as numbers from 0, in sorted order."""
    number = {name: i for i, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], np.int64)


def normalized(text: str) -> str:
    """An open answer without case, articles and punctuation."""
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    return " ".join(word for word in words if word not in ARTICLES)


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
    overlapping: float | None
    """Share of all questions with a citation that overlaps the evidence."""
    seconds_precision: float | None
    """Share of the cited seconds that are evidence, where something is cited."""
    seconds_recall: float | None
    """Share of the evidence's seconds that are cited, over all questions."""
    seconds_f1: float | None
    """The harmonic mean of both, over all questions."""
    seconds_f1_error: float | None
    """Its standard error, clustered by video; ``None`` for fewer than two videos."""

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
            "questions with a citation that overlaps the evidence": self.overlapping,
            "precision of cited seconds": self.seconds_precision,
            "recall of cited seconds": self.seconds_recall,
            "F1 of cited seconds": self.seconds_f1,
            "F1 of cited seconds, standard error over videos": self.seconds_f1_error,
        }
        return {name: value for name, value in named.items() if value is not None}


def measure_citations(
    items: Sequence[LabelledQuestion], rows: Sequence[Mapping[str, Any]], right: Sequence[bool]
) -> Citations | None:
    """The citations of a run; ``None`` if the benchmark names no evidence."""
    known = [
        (item.evidence, cited(row), stretches(row), is_right)
        for item, row, is_right in zip(items, rows, right, strict=True)
        if item.evidence
    ]
    if not known:
        return None
    sound = [(truth, citations) for truth, citations, _, is_right in known if is_right]
    overlaps = [(next(iter(citations), None), truth) for truth, citations, _, _ in known]
    ious = [intervals.iou(best, truth) if best else 0.0 for best, truth in overlaps]
    iops = [intervals.iop(best, truth) if best else 0.0 for best, truth in overlaps]
    # Acc@GQA takes an answer as grounded from this IoP on (NExT-GQA's authors)
    hits = [is_right and iop >= 0.5 for (*_, is_right), iop in zip(known, iops, strict=True)]
    seconds = [(intervals.seconds(shown, truth), shown) for truth, _, shown, _ in known]
    f1 = np.array([each[2] for each, _ in seconds])
    videos = [item.asked.video for item in items if item.evidence]
    return Citations(
        len(known),
        precision=_mean([intervals.precision(citations, truth) for truth, citations in sound]),
        recall=_mean([intervals.recall(citations, truth) for truth, citations in sound]),
        tightness=_mean([intervals.tightness(citations, truth) for truth, citations in sound]),
        cited_right=_mean(
            [
                float(is_right and bool(intervals.precision(citations[:1], truth)))
                for truth, citations, _, is_right in known
            ]
        ),
        uncited=_mean([float(not citations) for _, citations in sound]),
        miou=_mean(ious),
        miop=_mean(iops),
        acc_gqa=_mean([float(hit) for hit in hits]),
        overlapping=_mean([float(each[1] > 0) for each, _ in seconds]),
        seconds_precision=_mean([each[0] for each, citations in seconds if citations]),
        seconds_recall=_mean([each[1] for each, _ in seconds]),
        seconds_f1=float(f1.mean()),
        seconds_f1_error=clustered_error(f1, videos),
    )


def cited(row: Mapping[str, Any]) -> list[Segment]:
    """What a result cites, the strongest first; results of older runs are in time order."""
    pairs = row.get("evidence") or []
    return [Segment(float(start), float(end)) for start, end, *_ in pairs]


def stretches(row: Mapping[str, Any]) -> list[Segment]:
    """What a result refers to: the stretch of talk that an account is from, or what it cites."""
    context = row.get("context")
    if not context:
        return cited(row)
    return [Segment(*map(float, context))]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
