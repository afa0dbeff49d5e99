"""EgoSchema: five options, three-minute egocentric clips; 500 questions have public labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longtake.evals.benchmarks import (
    Benchmark,
    BenchmarkInfo,
    BenchmarkQuestion,
    LabelledQuestion,
    VideoSource,
)
from longtake.evals.benchmarks.files import CaptionSource, Files, FilmSource, letter
from longtake.types import Question


def _item(identity: str, row: Mapping[str, Any], labels: Mapping[str, int]) -> LabelledQuestion:
    question = Question(row["question"], tuple(row[f"option {i}"] for i in range(5)))
    # one question per video, so its id names the video too
    asked = BenchmarkQuestion(identity, identity, question)
    truth = row.get("truth", labels.get(identity))
    return LabelledQuestion(asked, None if truth is None else letter(int(truth)))


def _load(files: Files, options: Mapping[str, str], source: VideoSource, name: str) -> Benchmark:
    split = options.get("split", "subset")
    if split == "subset" and files.has("subset_anno.json"):
        rows: dict[str, Any] = files.json("subset_anno.json")
        items = [_item(identity, row, {}) for identity, row in rows.items()]
    else:
        labels = files.json("subset_answers.json")
        rows = {row["q_uid"]: row for row in files.json("questions.json")}
        if split == "full":
            # to be scored by its authors as a whole, so known labels are left out as well
            items = [_item(identity, row, {}) for identity, row in rows.items()]
        else:
            labelled = [identity for identity in rows if identity in labels]
            items = [_item(identity, rows[identity], labels) for identity in labelled]
    return Benchmark(name, items, source, files.hashes, {"split": split})


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    return _load(Files(folder), options, FilmSource(folder / "videos"), "egoschema")


def load_captions(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with captions alone."""
    files = Files(folder)
    source = CaptionSource(files.note("lavila_subset.json"))
    return _load(files, options, source, "egoschema-captions")


OPTIONS = {"split": "subset (default, 500 with labels) or full (5,000, for submission)"}
SUBMISSION = ("q_uid", "answer")
ABOUT = BenchmarkInfo(
    "EgoSchema",
    "questions.json, subset_answers.json and the videos from its authors",
    "questions.json and subset_answers.json (or subset_anno.json), videos/<q_uid>.mp4",
    "none stated",
    verified=False,
    load=load,
    options=OPTIONS,
    submission=SUBMISSION,
)
CAPTIONS = BenchmarkInfo(
    "EgoSchema from LaViLa captions",
    "the annotations, and the captions published with VideoAgent",
    "subset_anno.json, lavila_subset.json (one caption per second)",
    "none stated",
    verified=True,
    load=load_captions,
    options=OPTIONS,
    submission=SUBMISSION,
)
