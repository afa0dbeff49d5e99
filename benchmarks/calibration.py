"""Calibrate lab-2: dilution, grading and judging, each beside the published figures it rests on.

    python benchmarks/calibration.py dilution            # uniform frames, both editions
    python benchmarks/calibration.py grading 0.8 0.9     # VideoAgent, per value
    python benchmarks/calibration.py judging 0 0.5 1     # A4VL, per value

Development seeds only: the profile was frozen before a published seed was used.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict

from longtake.evals.benchmarks.lab import lab
from longtake.evals.experiment import with_profile_model
from longtake.evals.runner import Solver, answer_one
from longtake.evals.scoring import accuracy, correct
from longtake.lab.profile import LAB_2
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session

MINUTES = 20
SEEDS = range(20, 40)
FRAMES = (1, 4, 8, 16, 32, 64, 128, 256)

WORDS_PER_TOKEN = 0.75
PICTURE = LAB_2.model.picture_tokens
# (source, what a call held, kept of what less of it gave): the implied dilution is the δ for which
# attention falls by that much between the two loads
PUBLISHED = (
    # 20 documents of 100 words against the one that holds the answer; accuracy above closed book:
    # mpt-30b-instruct 53.3 of 81.7 (closed book 31.7), longchat-13b-16k 57.8 of 82.6 (35.0)
    ("Lost in the Middle, EXPERIMENTS.md", 1.0, 20 * 100 / WORDS_PER_TOKEN / PICTURE, 0.455),
    # EgoSchema: 180 captions 59.6 %, the 8.4 chosen ones 60.2 %, blind 31.0 %; those cover about
    # 87 % of what all frames show (uniform 9 frames: 54.8 of 59.6, above blind 0.83 to 0.91)
    ("VideoAgent, sec. 4.4 and table 2", 1.0, 180 * 15 / PICTURE, 0.85),
    # 13.9 frames chosen from 64 are 1.4 points better than all 64 (of about 25 above blind)
    ("FrameOracle (arXiv 2510.03584), abstract", 13.9, 64.0, 0.90),
)


def implied(less: float, more: float, kept: float) -> float:
    """The dilution at which attention for ``more`` pictures is ``kept`` of that for ``less``."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        share = (1 + middle * math.log2(less)) / (1 + middle * math.log2(more))
        low, high = (middle, high) if share > kept else (low, middle)
    return low


def answers(method, parameters="", **fields):
    """Every question with its item, its result and whether it is right."""
    benchmark = lab(SEEDS, MINUTES, 10)
    models = (f"lab/{parameters}",) if parameters else ()
    assignment = with_profile_model(ModelAssignment(models), method)
    solver = Solver(method, Session(assignment=assignment).with_fields(method, fields))
    for item in benchmark.items:
        row = answer_one(solver, benchmark.source, item.asked)
        yield item, row, correct(item, row.get("choice"), row.get("text") or "")


def dilution():
    """The dilution that each source implies, and accuracy by frames."""
    found = [implied(less, more, kept) for _, less, more, kept in PUBLISHED]
    for (source, *_), value in zip(PUBLISHED, found, strict=True):
        print(f"{value:.3f}  {source}")
    print(f"{math.prod(found) ** (1 / len(found)):.3f}  geometric mean")
    for frames in FRAMES:
        played = list(answers("uniform", frames=frames))
        rate = accuracy([ok for *_, ok in played], [i.asked.video for i, *_ in played])
        print(f"uniform {frames:>3} frames {rate}", flush=True)


def grading(values):
    """How often VideoAgent is right where it grades itself 3."""
    for value in values:
        graded = defaultdict(list)
        for _, row, ok in answers("videoagent", f"grading={value}"):
            # the check halves the confidence of an answer that found no support
            graded["3" if row.get("confidence") else "below"].append(ok)
        shares = {key: f"{sum(v) / len(v):.2f} of {len(v)}" for key, v in graded.items()}
        print(f"grading {value}: right by grade {shares}", flush=True)


def judging(values):
    """How often A4VL is right, by the round in which its agents agreed."""
    rounds = {0.88: 1, 0.65: 2, 0.46: 3}  # exit_confidence, halved where the check found no support
    for value in values:
        by_round = defaultdict(list)
        for _, row, ok in answers("a4vl", f"judging={value}"):
            stated = row.get("confidence") or 0.0
            agreed = rounds.get(stated) or rounds.get(round(2 * stated, 2))
            by_round[agreed].append(ok)
        shares = {key: f"{sum(v) / len(v):.2f} of {len(v)}" for key, v in by_round.items()}
        print(f"judging {value}: right by exit round {shares}", flush=True)


def main() -> None:
    """Run one calibration."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("dilution", "grading", "judging"))
    parser.add_argument("values", nargs="*", type=float)
    options = parser.parse_args()
    if options.what == "dilution":
        dilution()
    else:
        {"grading": grading, "judging": judging}[options.what](options.values)


if __name__ == "__main__":
    main()
