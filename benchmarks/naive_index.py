"""Indexes a film as a script written in an afternoon would; ``benchmarks/index.py`` runs it.

    python benchmarks/naive_index.py FILM [QUERY …]

OpenCV decodes every frame, one in a second is encoded by EfficientNet-Lite2 and read by RapidOCR
with its defaults, and Moonshine transcribes the whole sound. Prints costs and findings as JSON.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import moonshine_voice
import numpy as np
from moonshine_voice import ModelArch
from moonshine_voice.transcriber import Transcriber
from rapidocr import RapidOCR

from longtake.perception.encoders import BuiltIns, open_image_text_encoder
from longtake.perception.runtime import Compute
from longtake.types import Frame
from longtake.video.audio import listen

MODELS = Path(__file__).parent.parent / "build" / "index" / "models"
PARTS = ("frames", "speech", "onscreen")
RATE = 16_000


def index(film: Path, queries: Sequence[str]) -> dict[str, Any]:
    """Every second through every model, and the whole sound through the recogniser."""
    encoder = open_image_text_encoder("conse", BuiltIns(MODELS, Compute()))
    reader = RapidOCR(params={"Global.log_level": "critical"})
    folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
    listener = Transcriber(folder, ModelArch.TINY)
    costs = {part: {"seconds": 0.0, "cpu": 0.0} for part in PARTS}
    last = time.perf_counter(), time.process_time()

    def lap(part: str) -> None:
        """Add what has passed since the last lap."""
        nonlocal last
        now = time.perf_counter(), time.process_time()
        costs[part]["seconds"] += now[0] - last[0]
        costs[part]["cpu"] += now[1] - last[1]
        last = now

    lines: dict[str, Any] = {"speech": [], "onscreen": []}
    seconds: list[float] = []
    vectors = []
    for second, picture in _each_second(film):
        frame = Frame(second, cv2.cvtColor(picture, cv2.COLOR_BGR2RGB))
        vectors.append(encoder.images([frame])[0])
        seconds.append(second)
        lap("frames")
        texts = reader(picture).txts or ()
        lines["onscreen"] += [(second, second + 1, text) for text in texts]
        lap("onscreen")
    lap("frames")
    lines["speech"] = _transcribed(listener, film)
    lap("speech")
    scores = encoder.texts(queries) @ np.stack(vectors).T
    best = {query: _peaks(row, seconds) for query, row in zip(queries, scores, strict=True)}
    return {"costs": costs, "found": lines | {"pictures": best}}


def _each_second(film: Path) -> Iterator[tuple[float, Any]]:
    """One picture a second; all others are decoded as well."""
    capture = cv2.VideoCapture(str(film))
    fps, number, second = capture.get(cv2.CAP_PROP_FPS), 0, 0.0
    while capture.grab():
        if number / fps >= second:
            yield second, capture.retrieve()[1]
            second += 1
        number += 1


def _transcribed(listener: Transcriber, film: Path) -> list[tuple[float, float, str]]:
    samples = np.concatenate([part.samples for part in listen(film, origin=0.0)])
    said = listener.transcribe_without_streaming(samples.tolist(), RATE)
    return [(each.start_time, each.start_time + each.duration, each.text) for each in said.lines]


def _peaks(scores: Any, seconds: Sequence[float]) -> list[float]:
    """The ten best seconds, more than three seconds apart."""
    chosen: list[float] = []
    for row in np.argsort(-scores).tolist():
        if all(abs(seconds[row] - other) > 3 for other in chosen):
            chosen.append(seconds[row])
    return chosen[:10]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("film", type=Path)
    parser.add_argument("queries", nargs="*", help="pictures to search for")
    args = parser.parse_args()
    print(json.dumps(index(args.film, args.queries)))
