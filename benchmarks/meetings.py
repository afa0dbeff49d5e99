"""How well stretches of talk are found in AMI meetings, without a model.

    python benchmarks/meetings.py FOLDER        # as `longtake eval meetings --data FOLDER`

Prints F1 of the cited seconds for BM25 (five windows of 30 seconds), for the stretch that lookup
reads before it has an answer, and for the same with weights that are fitted to the other teams'
meetings; and the difference to BM25 with its 95 % interval, bootstrapped over teams. The same
follows for the three or four meetings of each team joined to one talk of one and a half to two and
a half hours. The weights that are fitted to all meetings come last.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longtake.algorithms import intervals, lexical
from longtake.algorithms.calibration import BIAS, logistic
from longtake.retrieval import stretches
from longtake.retrieval.stretches import STEP, WEIGHTS, Talk, expected_best
from longtake.types import Line, Segment
from longtake_bench.benchmarks import Benchmark, meetings
from longtake_bench.scoring import paired

NAMES = ("words", "meaning", "speaker", "whole topic", BIAS)


class Asked(NamedTuple):
    """A question about a talk."""

    team: str
    features: np.ndarray
    evidence: list[Segment]
    bm25: float
    """F1 of BM25."""

    def f1(self, weights: np.ndarray) -> float:
        """F1 of the stretch found."""
        first, last = expected_best(1 / (1 + np.exp(-self.features @ weights)))
        return intervals.seconds([Segment(first * STEP, last * STEP)], self.evidence)[2]

    @property
    def shares(self) -> np.ndarray:
        """The share of each bin that is evidence."""
        bins = [Segment(number * STEP, (number + 1) * STEP) for number in range(len(self.features))]
        covered = [sum(each.overlap(one) for one in self.evidence) / STEP for each in bins]
        return np.minimum(1.0, covered)


def five_windows(talk: Talk, question: str) -> list[Segment]:
    """The best windows of 30 seconds by BM25 alone."""
    stems = [[lexical.lemma(word) for word in lexical.content_words(text)] for text in talk.texts]
    windows = [Counter(one + other) for one, other in zip(stems, [*stems[1:], []], strict=True)]
    best = np.argsort(-stretches.bm25(question, windows), kind="stable")[:5]
    return [Segment(number * STEP, (number + 2) * STEP) for number in best.tolist()]


def fitted(asked: Iterable[Asked]) -> np.ndarray:
    """Weights by logistic regression."""
    questions = list(asked)
    table = np.concatenate([each.features for each in questions])
    rows = [dict(zip(NAMES[:-1], row, strict=False)) for row in table.tolist()]
    weights = logistic(rows, np.concatenate([each.shares for each in questions]))
    return np.array([weights[name] for name in NAMES])


def questions_about(benchmark: Benchmark, *, joined: bool) -> list[Asked]:
    """The questions about each meeting, or about all meetings of a team in a row."""
    talks = defaultdict(list)
    for item in benchmark.items:
        talks[item.tags["team"] if joined else item.asked.video].append(item)
    asked = []
    for _, items in sorted(talks.items()):
        began, lines, end = {}, [], 0.0
        for video in sorted({item.asked.video for item in items}):
            footage = benchmark.source.footage(video)
            began[video] = end
            lines += [Line(moved(line.segment, end), line.text) for line in footage.speech()]
            end += footage.duration
        talk = Talk(lines, end, footage.meanings)
        for item in items:
            question = item.asked.question.text
            evidence = [moved(each, began[item.asked.video]) for each in item.evidence]
            bm25 = intervals.seconds(five_windows(talk, question), evidence)[2]
            asked.append(Asked(item.tags["team"], talk.features(question), evidence, bm25))
    return asked


def moved(segment: Segment, seconds: float) -> Segment:
    """A segment later."""
    return Segment(segment.start + seconds, segment.end + seconds)


def main() -> None:
    """Print the table."""
    benchmark = meetings.load(Path(sys.argv[1]), {"form": "open"})
    alone = questions_about(benchmark, joined=False)
    teams = sorted({each.team for each in alone})
    weights = {team: fitted(each for each in alone if each.team != team) for team in teams}
    for name, asked in (
        ("each meeting", alone),
        ("the meetings of a team joined", questions_about(benchmark, joined=True)),
    ):
        baseline = np.array([each.bm25 for each in asked])
        print(f"{name}: {len(asked)} questions, {len(teams)} teams; F1 of cited seconds")
        print(f"BM25, five windows of 30 s             {baseline.mean():.3f}")
        shipped = np.array([each.f1(np.array(WEIGHTS)) for each in asked])
        held_out = np.array([each.f1(weights[each.team]) for each in asked])
        for row, values in (("stretch", shipped), ("stretch, fitted to other teams", held_out)):
            gap = paired(values, baseline, [each.team for each in asked])
            told = f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
            print(f"{row:37}  {values.mean():.3f}  {told} to BM25")
    everywhere = zip(NAMES, fitted(alone), strict=True)
    print(", ".join(f"{name} {value:.2f}" for name, value in everywhere))


if __name__ == "__main__":
    main()
