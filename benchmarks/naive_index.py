"""Indexes a film as a script written in an afternoon would; ``benchmarks/index.py`` runs it.

    python benchmarks/naive_index.py FILM [QUERY …]

OpenCV decodes every frame, one in a second is encoded by EfficientNet-Lite2 and read by RapidOCR
with its defaults, and Moonshine transcribes the whole sound. Prints costs and findings as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import moonshine_voice
import numpy as np
from moonshine_voice import ModelArch
from moonshine_voice.transcriber import Transcriber
from rapidocr import RapidOCR

from longtake.media.audio import listen
from longtake.perception.catalogue import BuiltIns, open_image_text_encoder
from longtake.perception.runtime import Compute
from longtake.types import Frame

MODELS = Path(__file__).parent.parent / "build" / "index" / "models"
PARTS = ("frames", "speech", "onscreen")
RATE = 16_000


def index(film: Path, queries: Sequence[str]) -> dict[str, Any]:
    """Every second through every model, and the whole sound through the recogniser."""
    encoder = open_image_text_encoder("conse", BuiltIns(MODELS, Compute()))
    reader = RapidOCR(params={"Global.log_level": "critical"})
    costs, clock = {part: [0.0, 0.0] for part in PARTS}, _Clock()
    capture = cv2.VideoCapture(str(film))
    fps, number, vectors = capture.get(cv2.CAP_PROP_FPS), 0, []
    lines: dict[str, Any] = {"speech": [], "onscreen": []}
    while capture.grab():
        if number / fps >= len(vectors):
            second = float(len(vectors))
            _, picture = capture.retrieve()
            frame = Frame(second, cv2.cvtColor(picture, cv2.COLOR_BGR2RGB))
            vectors.append(encoder.images([frame])[0])
            clock.lap(costs["frames"])
            texts = reader(picture).txts or ()
            lines["onscreen"] += [(second, second + 1, text) for text in texts]
            clock.lap(costs["onscreen"])
        number += 1
    clock.lap(costs["frames"])
    lines["speech"] = _transcribed(film)
    clock.lap(costs["speech"])
    scores = encoder.texts(queries) @ np.stack(vectors).T
    best = {query: _peaks(row) for query, row in zip(queries, scores, strict=True)}
    table = {part: {"seconds": took[0], "cpu": took[1]} for part, took in costs.items()}
    return {"costs": table, "found": lines | {"pictures": best}}


def _transcribed(film: Path) -> list[tuple[float, float, str]]:
    folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
    samples = np.concatenate([part.samples for part in listen(film, origin=0.0)])
    said = Transcriber(folder, ModelArch.TINY).transcribe_without_streaming(samples.tolist(), RATE)
    return [(line.start_time, line.start_time + line.duration, line.text) for line in said.lines]


def _peaks(scores: Any, count: int = 10, apart: int = 3) -> list[float]:
    chosen: list[int] = []
    for second in np.argsort(-scores).tolist():
        if all(abs(second - other) > apart for other in chosen):
            chosen.append(second)
    return [float(second) for second in chosen[:count]]


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter(), time.process_time()

    def lap(self, total: list[float]) -> None:
        """Add what has passed since the last lap, wall and CPU time."""
        now = time.perf_counter(), time.process_time()
        for which in (0, 1):
            total[which] += now[which] - self._last[which]
        self._last = now


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("film", type=Path)
    parser.add_argument("queries", nargs="*", help="pictures to search for")
    args = parser.parse_args()
    print(json.dumps(index(args.film, args.queries)))
