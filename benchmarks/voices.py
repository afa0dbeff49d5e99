"""How well speakers are told apart by their sound.

    python benchmarks/voices.py                       # three voices of espeak-ng, which it needs
    python benchmarks/voices.py FOLDER [SAME ...]     # recordings NAME.wav and *.rttm with truth

``FOLDER`` is ``tests/data`` of pyannote-audio (MIT), for example: half-minutes of AMI meetings. All
recordings whose names begin alike (``tr``, ``de``, ``ts``) are one film.
Prints how many lines get a label and how many of these are right, that is, have the speaker who
talks most in the lines of that label; beside all lines those in which one person has four fifths of
the talk. ``SAME`` are other values of ``speakers.SAME_VOICE``.
"""

from __future__ import annotations

import io
import subprocess
import sys
import wave
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np

from longtake.algorithms.speakers import SAME_VOICE, numbered_voices
from longtake.perception.speech import RATE, VoiceDetector, VoiceEncoder

VOICES = ("en-us+m3", "en-gb+f4", "en-us+m7")
SENTENCES = (
    "We should begin with the budget for this year.",
    "I think the remote control needs fewer buttons than before.",
    "The weather was terrible on the way to the office this morning.",
    "Our customers asked for a cheaper version of the product.",
    "Let me show you the drawings that I made yesterday.",
    "The battery lasts for about two years in normal use.",
    "Nobody has told me when the next meeting will take place.",
    "I would prefer wood because it feels warm in the hand.",
    "The factory can deliver the first samples in September.",
    "That is a very good point and we should write it down.",
    "The screen costs four euros, which is too much for us.",
    "Thank you all for coming, and see you again next week.",
)


class Turn(NamedTuple):
    """Who speaks from when to when."""

    start: float
    end: float
    name: str


def spoken(sentence: str, voice: str) -> np.ndarray:
    """A sentence as samples."""
    command = ["espeak-ng", "-v", voice, "-s", "150", "--stdout", sentence]
    stored = subprocess.run(command, check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(stored)) as sound:
        rate = sound.getframerate()
        # read until the end: piped, espeak-ng does not know how many frames there will be
        frames = np.frombuffer(sound.readframes(len(stored)), np.int16).astype(np.float32) / 32768
    places = np.arange(int(len(frames) * RATE / rate)) * rate / RATE
    return np.interp(places, np.arange(len(frames)), frames).astype(np.float32)


def made() -> tuple[np.ndarray, list[Turn]]:
    """24 sentences in turn, with a second of silence after each."""
    parts, turns, end = [], [], 0.0
    for number in range(24):
        voice = VOICES[(number * 7 + number // 3) % 3]
        samples = spoken(SENTENCES[number % len(SENTENCES)], voice)
        turns.append(Turn(end, end + len(samples) / RATE, voice))
        parts += [samples, np.zeros(RATE, np.float32)]
        end += len(samples) / RATE + 1
    return np.concatenate(parts), turns


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
    alone = [talk.most_common(1)[0][1] >= 0.8 * talk.total() for talk in shares]
    for same in thresholds:
        labels = numbered_voices(np.array(rows), seconds, same)
        by_label: dict[int | None, Counter[str]] = defaultdict(Counter)
        for talk, label in zip(shares, labels, strict=True):
            by_label[label].update(talk)
        right = [
            label is not None and by_label[label].most_common(1)[0][0] == talk.most_common(1)[0][0]
            for talk, label in zip(shares, labels, strict=True)
        ]
        labels_used = len(by_label.keys() - {None})
        people = len({turn.name for turn in turns})
        print(f"{name}, same voice from {same}: {people} speakers, {labels_used} labels")
        for what, counted in (("all", [True] * len(alone)), ("with one speaker", alone)):
            known = sum(
                label is not None and one for label, one in zip(labels, counted, strict=True)
            )
            good = sum(ok and one for ok, one in zip(right, counted, strict=True))
            print(f"    {sum(counted)} lines {what}: {known} labelled, {good} of them right")


def main() -> None:
    """Print a table for each film and threshold."""
    thresholds = [float(each) for each in sys.argv[2:]] or [SAME_VOICE]
    if len(sys.argv) == 1:
        measure("espeak-ng", *made(), thresholds)
        return
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
