"""How well stretches of talk are found in AMI meetings, without a model.

    python benchmarks/meetings.py FOLDER        # as `longtake eval meetings --data FOLDER`

Prints F1 of the cited seconds for BM25 (five windows of 30 seconds), for the stretch that lookup
reads before it has an answer, and for the same with weights that are fitted to the other teams'
meetings; and the difference to BM25 with its 95 % interval, bootstrapped over teams. The weights
that are fitted to all meetings come last.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from longtake.algorithms import intervals, lexical, stretches
from longtake.algorithms.calibration import BIAS, logistic
from longtake.algorithms.stretches import ELSEWHERE, STEP, WEIGHTS, Talk, expected_best
from longtake.evals.benchmarks import meetings
from longtake.evals.scoring import paired
from longtake.types import Segment

SHARES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Of the sum of probabilities, how much evidence is expected; one is chosen with the weights."""
NAMES = ("words", "meaning", "speaker", "whole topic", BIAS)


def five_windows(talk: Talk, question: str) -> list[Segment]:
    """The best windows of 30 seconds by BM25 alone."""
    stems = [[lexical.lemma(word) for word in lexical.content_words(text)] for text in talk.texts]
    windows = [Counter(one + other) for one, other in zip(stems, [*stems[1:], []], strict=True)]
    best = np.argsort(-stretches.bm25(question, windows), kind="stable")[:5]
    return [Segment(number * STEP, (number + 2) * STEP) for number in best.tolist()]


def shares(evidence: list[Segment], count: int) -> np.ndarray:
    """The share of each bin that is evidence."""
    bins = [Segment(number * STEP, (number + 1) * STEP) for number in range(count)]
    return np.array([min(1.0, sum(each.overlap(one) for one in evidence) / STEP) for each in bins])


def fitted(tables: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
    """Weights by logistic regression."""
    rows = [dict(zip(NAMES[:-1], row, strict=False)) for row in np.concatenate(tables).tolist()]
    weights = logistic(rows, np.concatenate(targets))
    return np.array([weights[name] for name in NAMES])


def main() -> None:
    """Print the table."""
    benchmark = meetings.load(Path(sys.argv[1]), {"form": "open"})
    items = sorted(benchmark.items, key=lambda item: item.asked.video)
    teams = [item.tags["team"] for item in items]
    tables, targets, baseline = [], [], []
    video, talk = "", None
    for item in items:
        if item.asked.video != video:
            video = item.asked.video
            footage = benchmark.source.footage(video)
            talk = Talk(footage.speech(), footage.duration, footage.meanings)
        question = item.asked.question.text
        tables.append(talk.features(question))
        targets.append(shares(item.evidence, len(talk.texts)))
        cited = five_windows(talk, question)
        baseline.append(intervals.seconds(cited, item.evidence)[2])

    def f1(number: int, weights: np.ndarray, elsewhere: float = ELSEWHERE) -> float:
        first, last = expected_best(1 / (1 + np.exp(-tables[number] @ weights)), elsewhere)
        return intervals.seconds([Segment(first * STEP, last * STEP)], items[number].evidence)[2]

    held_out, chosen = np.zeros(len(items)), Counter[float]()
    for team in sorted(set(teams)):
        others = [number for number, each in enumerate(teams) if each != team]
        weights = fitted([tables[each] for each in others], [targets[each] for each in others])
        elsewhere = max(SHARES, key=lambda share: sum(f1(each, weights, share) for each in others))
        chosen[elsewhere] += 1
        for number in set(range(len(items))) - set(others):
            held_out[number] = f1(number, weights, elsewhere)
    shipped = np.array([f1(number, np.array(WEIGHTS)) for number in range(len(items))])
    print(f"{len(teams)} questions, {len(set(teams))} teams; F1 of cited seconds")
    print(f"BM25, five windows of 30 s             {np.mean(baseline):.3f}")
    for name, values in (("stretch", shipped), ("stretch, fitted to other teams", held_out)):
        gap = paired(values, baseline, teams)
        told = f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
        print(f"{name:37}  {values.mean():.3f}  {told} to BM25")
    print(f"evidence elsewhere, chosen on other teams: {dict(chosen)}")
    weights = fitted(tables, targets)
    print(", ".join(f"{name} {value:.2f}" for name, value in zip(NAMES, weights, strict=True)))


if __name__ == "__main__":
    main()
