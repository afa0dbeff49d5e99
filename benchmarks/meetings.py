"""How well stretches of talk are found in AMI meetings, without a model.

    python benchmarks/meetings.py FOLDER        # as `longtake eval meetings --data FOLDER`

Prints F1 of the cited seconds for BM25 (five windows of 30 seconds), for the stretches that lookup
cites before it has an answer, and for the same with thresholds that are chosen on the other teams;
and the difference to BM25 with its 95 % interval, bootstrapped over teams.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np

from longtake.algorithms import intervals, lexical, stretches
from longtake.algorithms.stretches import STEP, Talk
from longtake.evals.benchmarks import meetings
from longtake.types import Segment

GRID = tuple(product((0.6, 0.8, 1.0, 1.2, 1.5), (0.0, 0.3, 0.6)))
"""Thresholds, and those for questions about all of a topic."""


def five_windows(talk: Talk, question: str) -> list[Segment]:
    """The best windows of 30 seconds by BM25 alone."""
    stems = [[lexical.lemma(word) for word in lexical.content_words(text)] for text in talk.texts]
    windows = [Counter(one + other) for one, other in zip(stems, [*stems[1:], []], strict=True)]
    best = np.argsort(-stretches.bm25(question, windows), kind="stable")[:5]
    return [Segment(number * STEP, (number + 2) * STEP) for number in best.tolist()]


def interval(gaps: np.ndarray, teams: list[str]) -> tuple[float, float]:
    """95 % of the mean, if teams are drawn with replacement."""
    by_team = [gaps[[team == each for each in teams]] for team in sorted(set(teams))]
    draws = np.random.default_rng(0).integers(0, len(by_team), (2000, len(by_team)))
    means = [np.concatenate([by_team[number] for number in draw]).mean() for draw in draws]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Print the table."""
    benchmark = meetings.load(Path(sys.argv[1]), {"form": "open"})
    teams, baseline, found = [], [], []
    grid: list[list[float]] = []
    video, talk = "", None
    for item in sorted(benchmark.items, key=lambda item: item.asked.video):
        if item.asked.video != video:
            video = item.asked.video
            footage = benchmark.source.footage(video)
            talk = Talk(footage.speech(), footage.duration, footage.meanings)
        question = item.asked.question.text
        scores = talk.scores([question])

        def f1(cited: list[Segment], truth=item.evidence) -> float:
            return intervals.seconds(cited, truth)[2]

        teams.append(item.tags["team"])
        baseline.append(f1(five_windows(talk, question)))
        found.append(f1(stretches.find(scores, question)))
        grid.append([f1(stretches.find(scores, question, thresholds=each)) for each in GRID])
    table, held_out = np.array(grid), np.zeros(len(teams))
    for team in sorted(set(teams)):
        inside = np.array([each == team for each in teams])
        held_out[inside] = table[inside, int(table[~inside].mean(axis=0).argmax())]
    print(f"{len(teams)} questions, {len(set(teams))} teams; F1 of cited seconds")
    print(f"BM25, five windows of 30 s             {np.mean(baseline):.3f}")
    for name, values in (("stretches", np.array(found)), ("stretches, other teams'", held_out)):
        gaps = values - np.array(baseline)
        low, high = interval(gaps, teams)
        gap = f"{gaps.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
        print(f"{name:37}  {values.mean():.3f}  {gap} to BM25")


if __name__ == "__main__":
    main()
