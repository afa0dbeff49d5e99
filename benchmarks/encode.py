"""Speed of the built-in encoders and readers.

    python benchmarks/encode.py [--film FILE] [--frames 60] [--threads 0]

Without a film, it makes one of moving noise at 720p. Every figure is the best of three runs.
Compare the ratios rather than the seconds, which depend on the machine and its load.
"""

import argparse
import os
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.encoders import BuiltIns, open_image_text_encoder
from longtake.perception.minilm import MiniLM
from longtake.perception.ocr import RapidReader
from longtake.perception.runtime import Compute
from longtake.video.clip import Encoding, write_film
from longtake.video.video import Video


def best(act, runs=3):
    """Wall and CPU seconds of the fastest of several runs."""
    took = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        act()
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(took)


def drawn_film(path):
    """Two minutes of moving noise."""
    random = np.random.default_rng(0)
    ground = random.integers(0, 255, (90, 160, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1)
    pictures = (np.roll(ground, 7 * number, axis=1) for number in range(120 * 24))
    write_film(path, pictures, Encoding(fps=Fraction(24), gop=48))


def rates(cache, frames, compute):
    eyes = EfficientNetLite2(cache, compute=compute)
    bridge = open_image_text_encoder("conse", BuiltIns(cache, compute))
    words = MiniLM(compute=compute)
    texts = [f"a sentence of ordinary length, number {number}" for number in range(64)]
    for name, act, count, unit in (
        ("efficientnet-lite2 (features, tags)", lambda: eyes.images(frames), len(frames), "images"),
        ("conse (image–text)", lambda: bridge.images(frames), len(frames), "images"),
        ("minilm (texts)", lambda: words.texts(texts), len(texts), "texts"),
    ):
        wall, cpu = best(act)
        print(f"{name:38} {count / wall:7.1f} {unit}/s   {1000 * cpu / count:6.1f} CPU-ms each")
    reader = RapidReader(compute=compute)
    wall, cpu = best(lambda: [reader.read(frame) for frame in frames[:3]], runs=1)
    size = "×".join(map(str, frames[0].pixels.shape[1::-1]))
    print(f"{f'rapidocr ({size})':38} {3 / wall:7.1f} frames/s  {cpu / 3:6.2f} CPU-s each")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--film", type=Path)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    compute = Compute(threads=options.threads)
    with tempfile.TemporaryDirectory() as folder:
        film = options.film or Path(folder) / "noise.mp4"
        if options.film is None:
            drawn_film(film)
        frames = [
            frame for frame, _ in zip(Video(film).sample(1.0), range(options.frames), strict=False)
        ]
        print(f"{os.cpu_count()} cores; {len(frames)} frames of {film.name}")
        rates(Path(folder), frames, compute)


if __name__ == "__main__":
    main()
