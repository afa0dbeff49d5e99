"""What lookup's thresholds do on the development half of the benchmark films; no model is asked.

    python benchmarks/lookup_thresholds.py FOLDER_OF_FILMS

Two tables. For RELEVANT, the least bearing of a passage on a question: the share of questions that
words answer for which the passage with the answer is found, and the share of all other questions
that are turned down at once. For HELD and OVERLAP, the share of an answer's words that a passage
must hold to be cited: how many passages with the evidence pass, and how many without it do.
"""

import sys
from pathlib import Path

import numpy as np

from longtake.algorithms import lexical
from longtake.algorithms import passages as phrases
from longtake.config import load
from longtake.footage.protocol import Footage
from longtake.retrieval.evidence import held
from longtake.retrieval.passages import Passage, read
from longtake.retrieval.question_kinds import CERTAIN
from longtake.retrieval.ranking import asked_for, relevance_of, relevance_with_type
from longtake.runner.films import open_film
from longtake.types import Segment
from longtake_bench.benchmarks import NOT_TOLD, LabelledQuestion, films

BEARINGS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def main(folder: Path) -> None:
    """Print both tables."""
    benchmark = films.load(folder, {"split": "dev", "films": "present"})
    opened: dict[str, tuple[Footage, list[Passage]]] = {}
    told, untold, holders, others = [], [], [], []
    for item in benchmark.items:
        video = item.asked.video
        if video not in opened:
            film = open_film(benchmark.source.paths[video], load())
            opened[video] = film, read(film, None)
        film, passages = opened[video]
        scores = np.full(len(passages) or 1, -1.0)
        if passages:
            asked = item.asked.question
            kind = asked_for(asked)
            scores = relevance_of(film, [asked.text], passages, len(passages))
            scores = relevance_with_type(scores, passages, None if kind in CERTAIN else kind)
        if item.label == NOT_TOLD:
            untold.append(float(scores.max()))
            continue
        there = [at_evidence(passage.segment, item) for passage in passages]
        bearings = [float(score) for score, at in zip(scores, there, strict=True) if at]
        told.append(max(bearings, default=-1.0))
        for passage, at in zip(passages, there, strict=True):
            (holders if at else others).append(shares(item, passage.text))
    print(f"{len(told)} questions that words answer, {len(untold)} others")
    print("RELEVANT  evidence found  others turned down")
    for least in BEARINGS:
        found = np.mean([score >= least for score in told])
        refused = np.mean([score < least for score in untold])
        print(f"{least:5.2f}  {found:14.0%}  {refused:18.0%}")
    print("share  HELD: at the evidence, elsewhere  OVERLAP: at the evidence, elsewhere")
    for least in SHARES:
        cells = []
        for column in (0, 1):
            for rows in (holders, others):
                cells.append(np.mean([row[column] >= least for row in rows]))
        print(f"{least:5.2f}  {cells[0]:22.0%}, {cells[1]:9.1%}  {cells[2]:25.0%}, {cells[3]:9.1%}")


def shares(item: LabelledQuestion, text: str) -> tuple[float, float]:
    """The best share of an accepted answer's words, and of its letters, that a text holds."""
    asked = lexical.lemmas([item.asked.question.text])
    words, letters = 0.0, 0.0
    for answer in (item.label or "", *item.accepted):
        said = lexical.lemmas([answer])
        words = max(words, held(answer, said - asked or said, text))
        letters = max(letters, phrases.match(answer, text))
    return words, letters


def at_evidence(segment: Segment, item: LabelledQuestion) -> bool:
    """Whether a passage overlaps the evidence of a question."""
    return any(segment.overlap(true) > 0 for true in item.evidence)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
