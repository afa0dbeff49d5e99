"""Decoding and encoding on a GPU: rates, busy share, and agreement with the CPU.

    python benchmarks/gpu.py CLIP [CLIP …]            # all parts; clips are joined to an hour
    python benchmarks/gpu.py CLIP --part decode       # matrix, decode, encode, film, films

Needs the extra ``gpu`` and an NVIDIA GPU. No weights can be fetched on the machines where this was
measured, so the encoder has the shape of SigLIP-SO400M (378 pixels, patches of 14, 27 layers, width
1152) with random weights: its speed is that of the real one, its vectors mean nothing.
"""

import argparse
import json
import multiprocessing
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from joined_film import join, timeline
from transformers import SiglipVisionConfig, SiglipVisionModel

from longtake.config import MediaSettings
from longtake.perception.runtime import Compute
from longtake.perception.torch_encoder import TorchImageEncoder
from longtake.video.video import Video

SIDE, WIDTH, INNER, LAYERS, PATCH = 378, 1152, 4304, 27, 14
TOKENS = (SIDE // PATCH) ** 2
PER_IMAGE = 2 * LAYERS * TOKENS * (4 * WIDTH**2 + 2 * WIDTH * INNER + 2 * TOKENS * WIDTH)
"""Floating-point operations for one picture: projections, MLP, attention."""
BURST = 0.03
"""Seconds in which the GPU does not yet reach the limit of its power."""


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", type=Path, nargs="+", metavar="CLIP")
    parser.add_argument("--part", choices=sorted(PARTS), action="append", help="default: all")
    parser.add_argument("--minutes", type=float, default=60, help="length of the joined film")
    parser.add_argument("--films", type=int, default=16, help="films at once")
    parser.add_argument("--processes", type=int, default=4, help="processes for the films")
    args = parser.parse_args()
    print(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.strip())
    with tempfile.TemporaryDirectory() as folder:
        args.film, args.encoder = Path(folder) / "film.mp4", Path(folder) / "encoder"
        join(timeline(args.clips, 60 * args.minutes), args.film, fps=30, gop=250, sound=False)
        size = args.film.stat().st_size / 1e6
        print(f"film: {args.minutes:g} minutes of 720p30 H.264, {size:.0f} MB")
        write_encoder(args.encoder)
        for part in args.part or PARTS:
            began = time.perf_counter()
            print(f"\n## {part}", flush=True)
            PARTS[part](args)
            print(f"({time.perf_counter() - began:.0f} s)", flush=True)


def write_encoder(folder: Path) -> None:
    """Write a vision model of SigLIP-SO400M's shape with random weights."""
    config = SiglipVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        image_size=SIDE,
        patch_size=PATCH,
    )
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = SiglipVisionModel(config)
    model.to(torch.bfloat16).save_pretrained(folder)
    prepare = {"size": {"height": SIDE, "width": SIDE}, "resample": 3}
    prepare |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(prepare))


def matrix(args: argparse.Namespace) -> None:
    """The rate of a large bf16 product: what encoding is held against."""
    burst, lasting = product_rates()
    print(f"8192³ bf16 product: {burst:.0f} TFLOP/s in a burst of 30 ms, {lasting:.0f} for 2 s")


def product_rates() -> tuple[float, float]:
    """TFLOP/s of a large bf16 product in a burst, and for two seconds."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    operations = 2 * 8192**3 / 1e12
    return operations / timed(lambda: a @ b, BURST), operations / timed(lambda: a @ b)


def timed(call: Callable[[], object], seconds: float = 2.0) -> float:
    """Seconds per call on the GPU, after three calls to warm up.

    A GPU under full load slows down within a second as it reaches the limit of its power, so that
    rates are only comparable when they last.
    """
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(4):
            call()
        torch.cuda.synchronize()
        count += 4
    return (time.perf_counter() - began) / count


def decoding(args: argparse.Namespace) -> None:
    """Frames a second by number of sessions, and the same frames on the CPU."""
    film = Video(args.film)
    table = film.table
    width = -(-SIDE * film.info.width // min(film.info.width, film.info.height))

    def opened(device: str, workers: int) -> Video:
        limits = MediaSettings(device=device, workers=workers)
        return Video(args.film, limits=limits, info=film.info, table=table)

    runs = [("cuda", "sessions", count, 1200) for count in (1, 2, 4, 8, 14)]
    runs += [("cpu", "threads", count, 600) for count in (1, 16)]
    for device, what, workers, longest in runs:
        stretch = np.arange(0, min(film.duration, 60 * workers, longest))
        video = opened(device, workers)
        began = time.perf_counter()
        count = sum(1 for _ in video.frames(stretch, width=width))
        seconds = time.perf_counter() - began
        print(
            f"{device}, {workers:2} {what}: {len(stretch) / seconds:6.0f} × real time, "
            f"{30 * len(stretch) / seconds:6.0f} film frames/s ({count} frames kept)"
        )
    times = np.arange(0, 120.0)
    videos = opened("cuda", 4), opened("cpu", 0)
    ours, theirs = (list(video.frames(times, width=width)) for video in videos)
    equal = sum(a.time == b.time for a, b in zip(ours, theirs, strict=True))
    errors = [
        np.mean((a.pixels.astype(float) - b.pixels) ** 2) for a, b in zip(ours, theirs, strict=True)
    ]
    psnr = 10 * np.log10(255**2 / np.maximum(errors, 1e-9))
    print(
        f"times equal to the CPU's: {equal} of {len(times)}; "
        f"pixels: PSNR median {np.median(psnr):.1f} dB, least {psnr.min():.1f} dB"
    )


def encoding(args: argparse.Namespace) -> None:
    """Pictures a second, and how near bf16 is to float32."""
    pictures = torch.randn(64, 3, SIDE, SIDE, device="cuda")
    encoder = open_encoder(args, compiled=False)
    got = encoder._vectors(pictures).float()
    encoder._model.float()
    encoder._dtype = torch.float32
    cosine = torch.nn.functional.cosine_similarity(encoder._vectors(pictures), got)
    print(f"bf16 against float32: cosine least {cosine.min():.5f}, mean {cosine.mean():.5f}")
    burst, lasting = product_rates()
    for compiled, batch in [(False, 64), (True, 64), (True, 128), (True, 256)]:
        encoder = open_encoder(args, compiled=compiled, batch=batch)
        values = torch.randn(batch, 3, SIDE, SIDE, device="cuda", dtype=torch.bfloat16)

        def call(e: TorchImageEncoder = encoder, v: torch.Tensor = values) -> object:
            return e._vectors(v)

        operations = batch * PER_IMAGE / 1e12
        seconds = timed(call)
        time.sleep(1)  # cools down
        quick = operations / timed(call, BURST)
        kind = "compiled" if compiled else "eager"
        print(
            f"{kind}, batch {batch}: {batch / seconds:.0f} images/s, "
            f"{operations / seconds:.0f} TFLOP/s ({operations / seconds / lasting:.0%} of the "
            f"product's {lasting:.0f} for as long), {quick:.0f} in a burst "
            f"({quick / burst:.0%} of {burst:.0f})",
            flush=True,
        )


def one_film(args: argparse.Namespace) -> None:
    """One film, decoded and encoded at one frame a second."""
    encoder = open_encoder(args, compiled=True)
    with busy() as shares:
        seconds, rows = embed(args.film, encoder, 0)
    hours = rows / 3600
    print(
        f"{rows} frames of {hours:.2f} h in {seconds:.1f} s: {rows / seconds:.0f} × real time; "
        f"{shares()}"
    )


def many_films(args: argparse.Namespace) -> None:
    """Films at once, each with few decoders; processes share the GPU, threads also an encoder."""
    each = [len(some) for some in np.array_split(np.arange(args.films), args.processes)]
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(args.processes + 1)
    parts = [(args.film, args.encoder, count) for count in each]
    with ProcessPoolExecutor(
        args.processes, mp_context=context, initializer=_meet_at, initargs=(ready,)
    ) as pool:
        futures = [pool.submit(some_films, *part) for part in parts]
        ready.wait()  # encoders are compiled by now
        with busy() as shares:
            began = time.perf_counter()
            rows = sum(future.result() for future in futures)
            seconds = time.perf_counter() - began
            told = shares()
    print(
        f"{args.films} films in {args.processes} processes, {rows / 3600:.2f} film-hours in "
        f"{seconds:.1f} s: {rows / seconds:.0f} film-hours per hour; {told}"
    )


_ready: threading.Barrier | None = None


def _meet_at(barrier: threading.Barrier) -> None:
    global _ready
    _ready = barrier


def some_films(film: Path, folder: Path, count: int) -> int:
    """Embed a film so many times at once, with one encoder; gives the rows."""
    compute = Compute(compiled=True, batch=64)
    encoder = TorchImageEncoder(folder, name="so400m-shape", compute=compute)
    assert _ready is not None
    _ready.wait()
    with ThreadPoolExecutor(count) as pool:
        done = pool.map(lambda _: embed(film, encoder, 1), range(count))
        return sum(rows for _, rows in done)


def open_encoder(args: argparse.Namespace, *, compiled: bool, batch: int = 64) -> TorchImageEncoder:
    """The random encoder; a compiled one is warm when it is returned."""
    compute = Compute(compiled=compiled, batch=batch)
    return TorchImageEncoder(args.encoder, name="so400m-shape", compute=compute)


def embed(film: Path, encoder: TorchImageEncoder, sessions: int) -> tuple[float, int]:
    """Seconds and rows of decoding and encoding one film; 0 sessions: as many as are usual."""
    began = time.perf_counter()
    video = Video(film, limits=MediaSettings(device="cuda", workers=sessions))
    width = -(-SIDE * video.info.width // min(video.info.width, video.info.height))
    frames = video.frames(video.grid(1.0), width=width)
    rows = 0
    while some := list(islice(frames, 64)):
        rows += len(encoder.images(some))
    return time.perf_counter() - began, rows


@contextmanager
def busy() -> Iterator[Callable[[], str]]:
    """Sample how busy the processor and the decoders of the GPU are."""
    figures = "--query-gpu=utilization.gpu,utilization.decoder"
    command = ["nvidia-smi", figures, "--format=csv,noheader,nounits", "-lms", "200"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()

    def shares() -> str:
        rows = [[float(x) for x in line.split(",")] for line in lines if "N/A" not in line]
        if not rows:
            return "busy share unknown"
        gpu_share, decoders = np.mean(rows, axis=0)
        return f"GPU busy {gpu_share:.0f} %, decoders {decoders:.0f} % (nvidia-smi, mean)"

    try:
        yield shares
    finally:
        process.terminate()
        reader.join(2)


PARTS = {"matrix": matrix, "decode": decoding, "encode": encoding}
PARTS |= {"film": one_film, "films": many_films}

if __name__ == "__main__":
    main()
