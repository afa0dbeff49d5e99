"""Calibrate the laboratory: each parameter beside the annotations or published figures it rests on.

    python benchmarks/calibration.py durations --data DIR  # NExT-GQA, NExT-QA captions, AMI
    python benchmarks/calibration.py dilution            # uniform frames
    python benchmarks/calibration.py grading 0.8 0.9     # VideoAgent, per value
    python benchmarks/calibration.py judging 0 0.5 1     # A4VL, per value

Development seeds only: the profile was frozen before a published seed was used.
"""

import argparse
import csv
import json
import math
import re
import zipfile
from bisect import bisect_left
from collections import defaultdict
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench.benchmarks.lab import lab
from longtake_bench.experiment import with_profile_model
from longtake_bench.lab.profile import PROFILE
from longtake_bench.runner import Solver, answer_one
from longtake_bench.scoring import accuracy, correct

MINUTES = 20
SEEDS = range(20, 40)
FRAMES = (1, 4, 8, 16, 32, 64, 128, 256)

WORDS_PER_TOKEN = 0.75
PICTURE = PROFILE.model.picture_tokens
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
    # Video-MME without subtitles: 72.1 % with 128 frames of the whole film, 75.3 % with the 71.2 of
    # table 2 that perception chooses, both without reflection; of what is above chance (25 %)
    ("LVAgent, tables 2 and 3, sec. 4.4", 71.2, 128.0, (72.1 - 25) / (75.3 - 25)),
)

SMALL = 0.2
"""A thing is small if at most this share of the captions of its evidence names it."""
LINE_WORDS = 5  # as many as the narrator's shortest line has
STOP = {"the", "and", "are", "with", "his", "her", "she", "they", "their", "its", "for", "from"}


def implied(less: float, more: float, kept: float) -> float:
    """The dilution at which attention for ``more`` pictures is ``kept`` of that for ``less``."""
    # solves (1 + δ · log₂ less) / (1 + δ · log₂ more) = kept
    return (1 - kept) / (kept * math.log2(more) - math.log2(less))


def answers(method, parameters="", **fields):
    """Every question with its item, its result and whether it is right."""
    benchmark = lab(SEEDS, MINUTES, 10)
    models = (f"lab/{parameters}",) if parameters else ()
    assignment = with_profile_model(ModelAssignment(models), method)
    solver = Solver(method, Session(assignment=assignment).with_fields(method, fields))
    for item in benchmark.items:
        row = answer_one(solver, benchmark.source, item.asked)
        yield item, row, correct(item, row.choice, row.text)


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


def shares(groups):
    """The share of right answers in each group."""
    return {key: f"{sum(right) / len(right):.2f} of {len(right)}" for key, right in groups.items()}


def grading(values):
    """How often VideoAgent is right where it grades itself 3."""
    for value in values:
        graded = defaultdict(list)
        for _, row, ok in answers("videoagent", f"grading={value}"):
            # the check halves the confidence of an answer that found no support
            graded["3" if row.confidence else "below"].append(ok)
        print(f"grading {value}: right by grade {shares(graded)}", flush=True)


def judging(values):
    """How often A4VL is right, by the round in which its agents agreed."""
    rounds = {0.88: 1, 0.65: 2, 0.46: 3}  # exit_confidence, halved where the check found no support
    for value in values:
        by_round = defaultdict(list)
        for _, row, ok in answers("a4vl", f"judging={value}"):
            stated = row.confidence or 0.0
            by_round[rounds.get(stated) or rounds.get(round(2 * stated, 2))].append(ok)
        print(f"judging {value}: right by exit round {shares(by_round)}", flush=True)


def gaps(spans):
    """The seconds between stretches that one or more of the spans cover."""
    found, until = [], None
    for start, end in sorted(spans):
        if until is not None and start > until:
            found.append(start - until)
        until = end if until is None else max(until, end)
    return found


def report(name, values):
    """One row: how many values, the medians of ten equal parts, the same in whole seconds."""
    medians = np.percentile(values, range(5, 100, 10))
    as_measured = " ".join(f"{v:.1f}" for v in medians)
    print(f"{name}: {len(values)}, {as_measured} → {tuple(int(v + 0.5) for v in medians)}")


def events(folder):
    """NExT-GQA: how long evidence lasts, how far apart it is, and how much of it names a thing."""
    films = json.loads((folder / "nextgqa_dev/gsub_val.json").read_text())
    spans = [list(chain(*film["location"].values())) for film in films.values()]
    report("spans of evidence", [end - start for each in spans for start, end in each])
    report("gaps between them", [gap for each in spans for gap in gaps(each)])
    captions = json.loads((folder / "nextqa_dev/captions_1fps.json").read_text())
    shares, runs = [], []
    with (folder / "nextgqa_dev/val.csv").open() as rows:
        for row in csv.DictReader(rows):
            evidence = films.get(row["video_id"], {"location": {}})["location"].get(row["qid"], [])
            seconds = sorted({s for a, b in evidence for s in range(int(a), math.ceil(b))})
            said = [stems(captions[row["video_id"]].get(str(second), "")) for second in seconds]
            # a word of the answer that the question does not give away
            for word in sorted(stems(row["answer"]) - stems(row["question"])):
                named = "".join("x" if word in words else " " for words in said)
                if "x" in named:
                    shares.append(named.count("x") / len(named))
                    if shares[-1] <= SMALL:
                        runs += [len(run) for run in named.split()]
    small = sum(share <= SMALL for share in shares)
    print(f"named in at most {SMALL:.0%} of the evidence: {small} of {len(shares)} things")
    print(f"runs of one second among them: {runs.count(1)} of {len(runs)}")


def stems(text):
    """The words of a text that say something, without endings."""
    words = re.findall(r"[a-z]{3,}", text.lower())
    return {re.sub(r"(ing|ed|es|s)$", "", word) for word in words if word not in STOP}


def lines(folder):
    """AMI: how long what is said lasts and how far apart it is, lines of some words alone."""
    films, hours = defaultdict(list), defaultdict(float)
    summed_up = 0
    with zipfile.ZipFile(folder / "meetings_dev/ami_public_manual_1.6.2.zip") as ami:
        for name in ami.namelist():
            if re.match(r"abstractive/.*\.xml$", name):
                summed_up += len(list(ElementTree.fromstring(ami.read(name)).iter("sentence")))
        names = [name for name in ami.namelist() if re.match(r"segments/.*\.xml$", name)]
        for name in names:
            words = ElementTree.fromstring(ami.read(name.replace("segments", "words")))
            timed = [w for w in words.iter("w") if w.get("punc") != "true" and w.get("starttime")]
            starts = sorted(float(word.get("starttime")) for word in timed)
            meeting = name.split("/")[1].split(".")[0]
            for segment in ElementTree.fromstring(ami.read(name)).iter("segment"):
                start, end = (float(segment.get(f"transcriber_{at}")) for at in ("start", "end"))
                hours[meeting] = max(hours[meeting], end / 3600)
                if bisect_left(starts, end) - bisect_left(starts, start) >= LINE_WORDS:
                    films[meeting].append((start, end))
    report("lines", [end - start for each in films.values() for start, end in each])
    report("gaps between them", [gap for each in films.values() for gap in gaps(each)])
    total = sum(hours.values())
    print(f"{sum(map(len, films.values())) / total:.0f} lines an hour", end=", ")
    print(f"{summed_up / total:.0f} sentences of summaries")


def main() -> None:
    """Run one calibration."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("durations", "dilution", "grading", "judging"))
    parser.add_argument("values", nargs="*", type=float)
    parser.add_argument("--data", type=Path, help="folder of nextgqa_dev, nextqa_dev, meetings_dev")
    options = parser.parse_args()
    if options.what == "durations":
        if options.data is None:
            parser.error("durations needs --data")
        events(options.data)
        lines(options.data)
    elif options.what == "dilution":
        dilution()
    elif options.what == "grading":
        grading(options.values)
    else:
        judging(options.values)


if __name__ == "__main__":
    main()
