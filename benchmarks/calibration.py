"""Lengths of events and lines in the laboratory: the annotations that they rest on.

python benchmarks/calibration.py FOLDER      # of nextgqa_dev, nextqa_dev and meetings_dev
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

SMALL = 0.2
"""A thing is small if at most this share of the captions of its evidence names it."""
LINE_WORDS = 5  # as many as the narrator's shortest line has
STOP = {"the", "and", "are", "with", "his", "her", "she", "they", "their", "its", "for", "from"}


def tenths(values):
    """The medians of ten equal parts of the values, and the same in whole seconds."""
    found = np.percentile(values, range(5, 100, 10))
    return " ".join(f"{v:.1f}" for v in found), tuple(int(v + 0.5) for v in found)


def gaps(spans):
    """The seconds between stretches that one or more of the spans cover."""
    found, until = [], None
    for start, end in sorted(spans):
        if until is not None and start > until:
            found.append(start - until)
        until = end if until is None else max(until, end)
    return found


def report(name, values):
    """One row: how many values, their tenths, and the tenths in whole seconds."""
    as_measured, whole = tenths(values)
    print(f"{name}: {len(values)}, {as_measured} → {whole}")


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
    """Print every row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="of nextgqa_dev, nextqa_dev, meetings_dev")
    folder = parser.parse_args().folder
    events(folder)
    lines(folder)


if __name__ == "__main__":
    main()
