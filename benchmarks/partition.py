"""Cost of event partition on an hour of 720p film: fetching 200 samples, embedding, three heads.

    make bench        # or: python benchmarks/partition.py [--minutes 60] [--runs 3]

Fetching is compared with decoding the whole film with PyAV, using threads and the same scaling;
both take turns in one run. The hour consists of five minutes repeated without re-encoding.
Compare the ratios rather than the seconds.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from longtake.algorithms.partition import EventPartition
from longtake.config import Settings
from longtake.index import blocks
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.media.video import Video
from longtake.media.writer import Encoding, write_film

WORK = Path(__file__).parent.parent / "build" / "bench"
PIECE = 5
"""Minutes that are really encoded."""


def pictures(seconds: int, fps: int) -> Iterator[np.ndarray]:
    """720p frames: a texture that changes every 40 s, panned slowly, with film grain."""
    random = np.random.default_rng(0)
    grain = random.integers(-6, 7, (8, 720, 1280, 1), dtype=np.int16)
    for number in range(seconds * fps):
        if number % (40 * fps) == 0:
            coarse = random.integers(0, 256, (24, 48, 3)).astype(np.float32)
            ground = np.kron(coarse, np.ones((32, 32, 1), np.float32)).astype(np.int16)
        shift = number % 200
        grainy = ground[:720, shift : shift + 1280] + grain[number % 8]
        yield np.clip(grainy, 0, 255).astype(np.uint8)


def make(path: Path, minutes: int, gop: int, fps: int = 25) -> None:
    """Write a film of the given length: one piece is encoded, then its packets are repeated."""
    piece = path.with_suffix(".piece.mp4")
    options = {"preset": "veryfast", "crf": "26", "sc_threshold": "0"}
    encoding = Encoding(fps=Fraction(fps), gop=gop, options=options)
    write_film(piece, pictures(PIECE * 60, fps), encoding)
    draft = path.with_suffix(".part.mp4")
    with av.open(str(draft), "w") as out:
        stream = None
        for turn in range(minutes // PIECE):
            with av.open(str(piece)) as source:
                video = source.streams.video[0]
                stream = stream or out.add_stream_from_template(video)
                offset = round(turn * PIECE * 60 / video.time_base)
                for packet in source.demux(video):
                    if packet.dts is not None:
                        packet.pts, packet.dts = packet.pts + offset, packet.dts + offset
                        packet.stream = stream
                        out.mux(packet)
    draft.rename(path)
    piece.unlink()


def full_decode(path: Path, width: int) -> float:
    """Seconds to decode every frame and scale those that would be samples."""
    began = time.perf_counter()
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        step = max(1, stream.frames // 200)
        for number, frame in enumerate(container.decode(stream)):
            if number % step == 0:
                frame.reformat(
                    width=width, height=width * frame.height // frame.width, format="rgb24"
                ).to_ndarray()
    return time.perf_counter() - began


def fetch(video: Video, rule: EventPartition) -> float:
    """Seconds to fetch the samples; the packet table exists already, as in an opened film."""
    began = time.perf_counter()
    times = blocks.sample_times(video.table, rule.max_feature_frames)
    count = sum(1 for _ in video.frames(times, width=rule.width))
    assert count == rule.max_feature_frames
    return time.perf_counter() - began


def heads(film: Film, rule: EventPartition) -> tuple[float, float, int]:
    """Seconds to measure and embed, seconds for the rest, and the number of cuts."""
    began = time.perf_counter()
    samples = blocks.measured(film, rule)
    measured = time.perf_counter() - began
    rule(samples, film.duration)  # warm-up
    began = time.perf_counter()
    partition = rule(samples, film.duration)
    return measured, time.perf_counter() - began, len(partition.cuts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rule = EventPartition()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for gop in (50, 250):
        path = WORK / f"partition_{options.minutes}min_gop{gop}.mp4"
        if not path.exists():
            print(f"making {path.name} …", flush=True)
            make(path, options.minutes, gop)
        began = time.perf_counter()
        video = Video(path)
        frames = len(video.table)
        listing = time.perf_counter() - began
        ours, whole = [], []
        for _ in range(options.runs):
            ours.append(fetch(video, rule))
            whole.append(full_decode(path, rule.width))
        a, b = statistics.median(ours), statistics.median(whole)
        size = f"{video.duration / 60:.0f} min, {frames:,} frames"
        print(f"\n{path.name}: {size}, a keyframe every {gop / 25:g} s")
        print(f"  list packets, once   {listing:8.2f} s")
        print(f"  fetch 200 samples    {a:8.2f} s   (median of {options.runs})")
        print(f"  decode everything    {b:8.2f} s   → fetching takes 1/{b / a:.1f} of it")
        with tempfile.TemporaryDirectory() as folder:
            film = Film(path, Store(Path(folder)), Settings())
            film.video  # noqa: B018 - packets were measured above
            measured, after, cuts = heads(film, rule)
        rest = f"of which embedding and cues about {measured - a:.2f} s"
        print(f"  fetch, cues, embed   {measured:8.2f} s   {rest}")
        print(f"  novelty and heads    {after:8.3f} s   ({cuts} cuts)")


if __name__ == "__main__":
    main()
