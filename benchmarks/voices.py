"""How well speakers are told apart by their sound.

    python benchmarks/voices.py FOLDER [SAME ...]     # recordings NAME.wav and *.rttm with truth

``FOLDER`` is ``tests/data`` of pyannote-audio (MIT), for example: half-minutes of AMI meetings. All
recordings whose names begin alike (``tr``, ``de``, ``ts``) are one film.
Prints how many lines get a label and how many of these are right, that is, have the speaker who
talks most in the lines of that label; beside all lines those in which one person has four fifths of
the talk. ``SAME`` are other values of ``speakers.SAME_VOICE``.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np

from longtake.algorithms.speakers import SAME_VOICE, numbered_voices
from longtake.perception.speech import RATE, VoiceDetector, VoiceEncoder


class Turn(NamedTuple):
    """Who speaks from when to when."""

    start: float
    end: float
    name: str


def recorded(paths: list[Path], turns: dict[str, list[Turn]]) -> tuple[np.ndarray, list[Turn]]:
    """Recordings in a row."""
    parts, moved, begin = [], [], 0.0
    for path in paths:
        with av.open(path) as container:
            resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
            frames = [part for f in container.decode(audio=0) for part in resampler.resample(f)]
        parts += [frame.to_ndarray()[0] for frame in frames]
        for turn in turns[path.stem]:
            moved.append(Turn(begin + turn.start, begin + turn.end, turn.name))
        begin = sum(map(len, parts)) / RATE
    return np.concatenate(parts).astype(np.float32), moved


def measure(name: str, samples: np.ndarray, turns: list[Turn], thresholds: list[float]) -> None:
    """Print how the lines are labelled."""
    encoder = VoiceEncoder()
    shares, seconds, rows = [], [], []
    for start, end in VoiceDetector().voiced(samples):
        talk: Counter[str] = Counter()
        for turn in turns:
            talk[turn.name] += max(0.0, min(end, turn.end) - max(start, turn.start))
        if talk.total() > 0:
            shares.append(talk)
            seconds.append(end - start)
            rows.append(encoder.encode(samples[int(start * RATE) : int(end * RATE)]))
    alone = np.array([talk.most_common(1)[0][1] >= 0.8 * talk.total() for talk in shares])
    for same in thresholds:
        labels = numbered_voices(np.array(rows), seconds, same)
        by_label: dict[int | None, Counter[str]] = defaultdict(Counter)
        for talk, label in zip(shares, labels, strict=True):
            by_label[label].update(talk)
        known = np.array([label is not None for label in labels])
        most = [by_label[label].most_common(1)[0][0] for label in labels]
        talking = [talk.most_common(1)[0][0] for talk in shares]
        right = known & np.equal(most, talking)
        labels_used = len(by_label.keys() - {None})
        people = len({turn.name for turn in turns})
        print(f"{name}, same voice from {same}: {people} speakers, {labels_used} labels")
        for what, counted in (("all", np.full(len(alone), True)), ("with one speaker", alone)):
            good = f"{(known & counted).sum()} labelled, {(right & counted).sum()} of them right"
            print(f"    {counted.sum()} lines {what}: {good}")


def main() -> None:
    """Print a table for each film and threshold."""
    thresholds = [float(each) for each in sys.argv[2:]] or [SAME_VOICE]
    turns: dict[str, list[Turn]] = defaultdict(list)
    for path in Path(sys.argv[1]).glob("*.rttm"):
        for row in map(str.split, path.read_text(encoding="utf-8").splitlines()):
            start = float(row[3])
            turns[row[1]].append(Turn(start, start + float(row[4]), row[7]))
    paths = sorted(path for path in Path(sys.argv[1]).glob("*.wav") if path.stem in turns)
    for name, group in groupby(paths, key=lambda path: path.stem[:2]):
        measure(name, *recorded(list(group), turns), thresholds)


if __name__ == "__main__":
    main()
