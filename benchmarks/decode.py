"""One frame per second from a ten-minute 720p film: longtake against PyAV, OpenCV and decord2.

    make bench        # or: python benchmarks/decode.py [--minutes 10] [--runs 5]

Creates an environment under build/, because the peers' packages are not dependencies of longtake.
Every contender runs in its own process; all take turns several times. The table shows the medians
of wall time, CPU time and peak memory. Compare the ratios rather than the seconds, which depend on
the machine.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import venv
from fractions import Fraction
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "bench"


def ours(path, seconds):
    from longtake.video.video import Video

    return [frame.time for frame in Video(path).sample(1.0)]


def naive_pyav(path, seconds):
    """The obvious way: decode everything, keep the first frame at or after each second."""
    import av

    times = []
    with av.open(path) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            if frame.time >= len(times):
                frame.to_ndarray(format="rgb24")
                times.append(frame.time)
    return times


def opencv_sequential(path, seconds):
    import cv2

    capture = cv2.VideoCapture(path)
    fps, times, number = capture.get(cv2.CAP_PROP_FPS), [], 0
    while capture.grab():
        if number / fps >= len(times):
            _, picture = capture.retrieve()
            cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)
            times.append(number / fps)
        number += 1
    return times


def opencv_seek(path, seconds):
    import cv2

    capture = cv2.VideoCapture(path)
    fps, times = capture.get(cv2.CAP_PROP_FPS), []
    for second in range(seconds):
        capture.set(cv2.CAP_PROP_POS_FRAMES, round(second * fps))
        _, picture = capture.read()
        cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)
        times.append(second)
    return times


def decord2(path, seconds):
    import decord

    reader = decord.VideoReader(path)
    fps, times = reader.get_avg_fps(), []
    for begin in range(0, seconds, 16):  # in batches: all frames at once would fill the memory
        numbers = [round(s * fps) for s in range(begin, min(begin + 16, seconds))]
        reader.get_batch(numbers).asnumpy()
        times += [float(reader.get_frame_timestamp(n)[0]) for n in numbers]
    return times


def linear(path, seconds):
    """The ground truth: the time of the frame on screen at each second, from a full decode."""
    import av

    with av.open(path) as container:
        container.streams.video[0].thread_type = "AUTO"
        stamps = [frame.time for frame in container.decode(video=0)]
    return [max(t for t in stamps if t <= second + 1e-6) for second in range(seconds)]


CONTENDERS = {f.__name__: f for f in (ours, naive_pyav, opencv_sequential, opencv_seek, decord2)}
FIGURES = ("wall", "cpu", "mb")


def measure(name, path, seconds):
    """Run one contender in this process and print what it cost."""
    began = time.perf_counter()
    times = {**CONTENDERS, "linear": linear}[name](path, seconds)
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(json.dumps({"wall": wall, "cpu": cpu, "mb": megabytes, "times": times}))


def make_film(path, minutes, gop):
    """720p, 25 fps, H.264 with B-frames: pans over cloudy pictures, a cut every seven seconds."""
    from PIL import Image

    from longtake.video.clip import Encoding, write_film

    rng = np.random.default_rng(gop)
    clouds = [Image.fromarray(rng.integers(0, 255, (36, 128, 3), dtype=np.uint8)) for _ in range(6)]
    scenes = [np.asarray(cloud.resize((2560, 720), Image.Resampling.BICUBIC)) for cloud in clouds]

    def pictures():
        for number in range(minutes * 60 * 25):
            scene, shift = scenes[number // 175 % 6], number * 3 % 1280
            yield scene[:, shift : shift + 1280]

    options = {"preset": "superfast", "bf": "3", "crf": "23"}
    write_film(path, pictures(), Encoding(fps=Fraction(25), gop=gop, options=options))


def call(python, *arguments):
    done = subprocess.run(
        [python, __file__, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def environment(name, *packages):
    """The Python of an environment under build/, which has these packages after the first call."""
    folder = WORK / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("setting up the peers' environment …", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        (folder / "ready").touch()
    return str(python)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    python = environment("venv", "-e", str(ROOT), "opencv-python-headless", "decord2")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for gop in (250, 50):  # frames between keyframes
        film = WORK / f"{options.minutes}min_gop{gop}.mp4"
        if not film.exists():
            print(f"making {film.name} …", flush=True)
            draft = film.with_suffix(".part.mp4")
            call(python, "--make", draft, options.minutes, gop)
            draft.rename(film)
        compare(python, film, options)


def compare(python, film, options):
    seconds = options.minutes * 60
    truth = json.loads(call(python, "--measure", "linear", film, seconds))["times"]
    results = {name: [] for name in CONTENDERS}
    for _ in range(options.runs):
        for name in CONTENDERS:  # interleaved, so that a busy moment affects all alike
            results[name].append(json.loads(call(python, "--measure", name, film, seconds)))
    print(f"\n{film.name}, median of {options.runs} interleaved runs")
    print(f"{'':<20}{'wall s':>8}{'CPU s':>8}{'peak MB':>9}{'wall/ours':>11}")
    fastest = statistics.median(run["wall"] for run in results["ours"])
    for name, runs in results.items():
        wall, cpu, mb = (statistics.median(run[key] for run in runs) for key in FIGURES)
        print(f"{name:<20}{wall:>8.2f}{cpu:>8.2f}{mb:>9.0f}{wall / fastest:>11.2f}")
    equal = all(np.allclose(run["times"], truth, atol=1e-6, rtol=0) for run in results["ours"])
    print(f"our times equal those of a full decode: {'yes' if equal else 'NO'}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    elif sys.argv[1:2] == ["--make"]:
        make_film(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
