"""How well chapters begin where the topic of an AMI meeting changes, without a model.

    python benchmarks/chapters.py FOLDER        # as `longtake eval meetings --data FOLDER`

The truth are the topics that AMI's annotators marked, without their parts. The lengths and heights
that topics are told apart by are chosen on every second team, by F1 of boundaries within 30
seconds; the table is about the others' meetings: F1, Pk (Beeferman and others 1999) and WindowDiff
(Pevzner and Hearst 2002), which are errors, and chapters per meeting.
"""

import itertools
import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from events_f1 import f1

from longtake.retrieval.stretches import HIGH, SIDE, Talk
from longtake_bench.benchmarks import meetings

NEAR = 30.0
"""Seconds within which a boundary is found."""
MAX_CHAPTERS = 12
NITE = "{http://nite.sourceforge.net/}"


@dataclass(frozen=True)
class Meeting:
    """A meeting, and when its topics begin."""

    name: str
    talk: Talk
    duration: float
    truth: list[float]


Rule = Callable[[Meeting], list[float]]


def topic_starts(archive: zipfile.ZipFile, meeting: str) -> list[float]:
    """When each topic begins, from AMI's annotations; empty if there are none."""
    starts: dict[str, float] = {}
    for name in archive.namelist():
        if name.startswith(f"words/{meeting}."):
            for element in ElementTree.fromstring(archive.read(name)):
                if element.get("starttime"):
                    starts[element.attrib[f"{NITE}id"]] = float(element.attrib["starttime"])
    found = []
    if f"topics/{meeting}.topic.xml" in archive.namelist():
        for topic in ElementTree.fromstring(archive.read(f"topics/{meeting}.topic.xml")):
            words = [
                word
                for child in topic.iter(f"{NITE}child")
                for word in re.findall(r"id\(([^)]*)\)", child.attrib["href"])
            ]
            found += [min((starts[word] for word in words if word in starts), default=0.0)]
    return sorted(found)


def read(folder: Path) -> list[Meeting]:
    """All meetings with topics."""
    benchmark = meetings.load(folder, {"form": "open"})
    read = []
    with zipfile.ZipFile(folder / meetings.ARCHIVE) as archive:
        for name in sorted({item.asked.video for item in benchmark.items}):
            footage = benchmark.source.footage(name)
            # the first topic begins with the meeting
            truth = [time for time in topic_starts(archive, name) if time > NEAR]
            if truth:
                talk = Talk(footage.speech(), footage.duration, footage.meanings)
                read.append(Meeting(name, talk, footage.duration, truth))
    return read


def errors(cuts: list[float], truth: list[float], duration: float) -> tuple[float, float]:
    """Pk and WindowDiff, with a window of half a mean topic, second by second."""
    seconds = np.arange(int(duration) + 1)
    window = max(1, round(duration / (len(truth) + 1) / 2))
    passed, true = (np.searchsorted(sorted(each), seconds, "right") for each in (cuts, truth))
    between, truly = passed[window:] - passed[:-window], true[window:] - true[:-window]
    return float(((between > 0) != (truly > 0)).mean()), float((between != truly).mean())


def score(rule: Rule, among: list[Meeting]) -> np.ndarray:
    """Mean F1, Pk, WindowDiff and number of chapters."""
    rows = []
    for meeting in among:
        cuts = rule(meeting)
        found = f1(cuts, meeting.truth, NEAR)
        rows.append((found, *errors(cuts, meeting.truth, meeting.duration), len(cuts) + 1))
    return np.mean(rows, axis=0)


def even(seconds: float) -> Rule:
    """Chapters of equal length."""

    def cuts(meeting: Meeting) -> list[float]:
        count = max(1, min(MAX_CHAPTERS, round(meeting.duration / seconds)))
        return np.linspace(0, meeting.duration, count + 1)[1:-1].tolist()

    return cuts


def topics(side: int, quantile: float) -> Rule:
    """Chapters by topic."""

    def cuts(meeting: Meeting) -> list[float]:
        found = meeting.talk.topics(MAX_CHAPTERS, side=side, quantile=quantile)
        return [segment.start for segment in found[1:]]

    return cuts


def main() -> None:
    """Print the table."""
    everything = read(Path(sys.argv[1]))
    teams = sorted({meeting.name[:-1] for meeting in everything})
    chosen_on = [meeting for meeting in everything if meeting.name[:-1] in teams[::2]]
    others = [meeting for meeting in everything if meeting not in chosen_on]
    grid = list(itertools.product((4, 8, 12), (0.7, 0.75, 0.8)))
    best = max(grid, key=lambda each: score(topics(*each), chosen_on)[0])
    number = score(topics(*best), others)[3]
    spacing = sum(meeting.duration for meeting in others) / len(others) / number
    print(f"chosen on {len(chosen_on)} meetings: {best[0]} bins, quantile {best[1]}")
    print(f"{len(others)} other meetings         F1    Pk    WindowDiff  chapters")
    rules = {
        "one chapter": lambda _: [],
        "a minute each, at most twelve": even(60.0),
        "as many, evenly spaced": even(spacing),
        "by topic": topics(SIDE, HIGH),
    }
    for name, rule in rules.items():
        found, pk, difference, chapters = score(rule, others)
        print(f"{name:30} {found:.3f} {pk:.3f} {difference:.3f}       {chapters:.1f}")


if __name__ == "__main__":
    main()
