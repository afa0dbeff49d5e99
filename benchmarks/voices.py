"""How well Moonshine tells speakers apart by their sound.

    python benchmarks/voices.py [THRESHOLD ...]        # needs espeak-ng and moonshine-voice

Three voices of espeak-ng say 24 sentences, with a second of silence after each. Prints how often
each of Moonshine's speakers is which voice, at its own threshold and at those given.
"""

from __future__ import annotations

import io
import subprocess
import sys
import wave
from collections import Counter
from pathlib import Path

import moonshine_voice
import numpy as np
from moonshine_voice.transcriber import Transcriber

RATE = 16_000
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


def main() -> None:
    """Print a table for each threshold."""
    parts, turns, end = [], [], 0.0
    for number in range(24):
        voice = (number * 7 + number // 3) % 3
        samples = spoken(SENTENCES[number % len(SENTENCES)], VOICES[voice])
        turns.append((end, end + len(samples) / RATE, voice))
        parts += [samples, np.zeros(RATE, np.float32)]
        end += len(samples) / RATE + 1
    sound = np.concatenate(parts).tolist()
    folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
    for threshold in (None, *sys.argv[1:]):
        options = {"identify_speakers": "true"}
        if threshold is not None:
            options["speaker_id_cluster_threshold"] = threshold
        listener = Transcriber(folder, moonshine_voice.ModelArch.TINY, options=options)
        pairs: Counter[tuple[int, int]] = Counter()
        for line in listener.transcribe_without_streaming(sound, RATE).lines:
            middle = line.start_time + line.duration / 2
            pairs.update(
                (line.speaker_index, v) for a, b, v in turns if a - 0.3 <= middle <= b + 0.3
            )
        found = len({speaker for speaker, _ in pairs})
        print(f"threshold {threshold or 'as shipped'}: {found} speakers")
        print(f"    (speaker, voice): {dict(pairs)}")


if __name__ == "__main__":
    main()
