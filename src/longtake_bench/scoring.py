"""Accuracy and differences in accuracy, with their uncertainty.

Results on the same video are correlated, so intervals treat videos, not questions, as the sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import intervals
from longtake.types import Segment
from longtake_bench.benchmarks import NOT_TOLD, SEVERAL, LabelledQuestion
from longtake_bench.results import QuestionResult

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
        return (
            f"{self.value:6.1%}{_interval(f'{self.low:.1%}', f'{self.high:.1%}')} of {self.count}"
        )


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
        interval = _interval(f"{self.low:+.1%}", f"{self.high:+.1%}")
        return f"{self.value:+.1%}{interval}, p = {self.p:.3g}"


def _interval(low: str, high: str) -> str:
    """An interval behind its figure; nothing if it is a single point."""
    return "" if low == high else f" [{low}, {high}]"


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


def sound(item: LabelledQuestion, result: QuestionResult) -> bool:
    """Whether a result is right: its answer, or its abstention where the film does not tell."""
    if item.label == NOT_TOLD:
        return result.status == "abstained"
    return correct(item, result.choice, result.text)


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
class CitedQuestion:
    """A question whose evidence is known, with what its result cites."""

    truth: Sequence[Segment]
    cited: Sequence[Segment]
    stretches: Sequence[Segment]
    """What the result refers to."""
    is_right: bool

    @property
    def best(self) -> Segment | None:
        """The strongest citation."""
        return next(iter(self.cited), None)

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of the cited seconds."""
        return intervals.seconds(self.stretches, self.truth)

    @property
    def iop(self) -> float:
        """The share of the strongest citation that is evidence."""
        return intervals.iop(self.best, self.truth) if self.best else 0.0

    def if_right(self, measure: Callable[..., float | None]) -> float | None:
        """A measure of the citations against the evidence, where the answer is right."""
        return measure(self.cited, self.truth) if self.is_right else None


@dataclass(frozen=True)
class Metric:
    """A figure about citations: the mean over the questions for which it is a number."""

    title: str
    """Its name in reports."""
    of: Callable[[CitedQuestion], float | None]


CITATION_METRICS: Mapping[str, Metric] = {
    "precision": Metric(
        "precision (right answers, within 5 s)", lambda each: each.if_right(intervals.precision)
    ),
    "recall": Metric(
        "recall (right answers, within 5 s)", lambda each: each.if_right(intervals.recall)
    ),
    "tightness": Metric(
        "tightness (right answers, IoU)", lambda each: each.if_right(intervals.tightness)
    ),
    "cited_right": Metric(
        "right with the right moment cited",
        lambda each: each.is_right and bool(intervals.precision(each.cited[:1], each.truth)),
    ),
    "uncited": Metric(
        "right answers without a citation", lambda each: not each.cited if each.is_right else None
    ),
    # of the strongest citation, over all questions (NExT-GQA)
    "miou": Metric("mIoU", lambda each: intervals.iou(each.best, each.truth) if each.best else 0.0),
    "miop": Metric("mIoP", lambda each: each.iop),
    # an answer is grounded from this IoP on (NExT-GQA's authors)
    "acc_gqa": Metric("Acc@GQA", lambda each: each.is_right and each.iop >= 0.5),
    "overlapping": Metric(
        "questions with a citation that overlaps the evidence", lambda each: each.seconds[1] > 0
    ),
    "seconds_precision": Metric(
        "precision of cited seconds", lambda each: each.seconds[0] if each.stretches else None
    ),
    "seconds_recall": Metric("recall of cited seconds", lambda each: each.seconds[1]),
    "seconds_f1": Metric("F1 of cited seconds", lambda each: each.seconds[2]),
}
"""Figures about citations, by their names in JSON; a new one appears in every report."""
F1_ERROR = "F1 of cited seconds, standard error over videos"


@dataclass(frozen=True)
class Citations:
    """The means of :data:`CITATION_METRICS`; a mean over nothing is ``None``."""

    questions: int
    """Questions whose evidence is known."""
    means: Mapping[str, float | None]
    seconds_f1_error: float | None
    """Standard error of F1, clustered by video; ``None`` for fewer than two videos."""

    @property
    def f1_text(self) -> str:
        """F1 of the cited seconds as tables show it."""
        return f"{self.means['seconds_f1']:.3f}"

    def plain(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        error = {"seconds_f1_error": self.seconds_f1_error}
        return {"questions": self.questions, **self.means, **error}

    def figures(self) -> dict[str, float]:
        """The means that exist, by the names that reports use."""
        named = {metric.title: self.means[name] for name, metric in CITATION_METRICS.items()}
        named[F1_ERROR] = self.seconds_f1_error
        return {name: value for name, value in named.items() if value is not None}


def measure_citations(
    items: Sequence[LabelledQuestion], results: Sequence[QuestionResult], right: Sequence[bool]
) -> Citations | None:
    """The citations of a run; ``None`` if the benchmark names no evidence."""
    known, videos = [], []
    for item, result, is_right in zip(items, results, right, strict=True):
        if item.evidence:
            cited = CitedQuestion(item.evidence, result.evidence, result.stretches, is_right)
            known.append(cited)
            videos.append(item.asked.video)
    if not known:
        return None
    means = {name: _mean(map(metric.of, known)) for name, metric in CITATION_METRICS.items()}
    f1 = np.array([each.seconds[2] for each in known])
    return Citations(len(known), means, clustered_error(f1, videos))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
