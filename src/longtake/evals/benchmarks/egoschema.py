"""EgoSchema: five options on three-minute egocentric clips; 500 questions have public labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longtake.evals.benchmarks import About
from longtake.evals.benchmarks.reading import CaptionSource, Files, FilmSource, letter
from longtake.evals.items import Asked, Benchmark, Item, Source
from longtake.types import Question


def _item(identity: str, row: Mapping[str, Any], labels: Mapping[str, int]) -> Item:
    question = Question(row["question"], tuple(row[f"option {i}"] for i in range(5)))
    truth = row.get("truth", labels.get(identity))
    return Item(Asked(identity, identity, question), None if truth is None else letter(int(truth)))


def _load(files: Files, options: Mapping[str, str], source: Source, name: str) -> Benchmark:
    split = options.get("split", "subset")
    if split == "subset" and files.has("subset_anno.json"):
        rows: dict[str, Any] = files.json("subset_anno.json")
        items = [_item(identity, row, {}) for identity, row in rows.items()]
    else:
        labels = files.json("subset_answers.json")
        found = {row["q_uid"]: row for row in files.json("questions.json")}
        chosen = [uid for uid in found if split == "full" or uid in labels]
        items = [_item(uid, found[uid], labels if split == "subset" else {}) for uid in chosen]
    return Benchmark(name, items, source, files.hashes, {"split": split})


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    return _load(Files(folder), options, FilmSource(folder / "videos"), "egoschema")


def load_captions(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with captions alone."""
    files = Files(folder)
    return _load(
        files, options, CaptionSource(files.note("lavila_subset.json")), "egoschema-captions"
    )


OPTIONS = {"split": "subset (default, 500 with labels) or full (5,000, for submission)"}
SUBMISSION = ("q_uid", "answer")
ABOUT = About(
    "EgoSchema",
    "questions.json, subset_answers.json and the videos from its authors",
    "questions.json and subset_answers.json (or subset_anno.json), videos/<q_uid>.mp4",
    "none stated",
    verified=False,
    load=load,
    options=OPTIONS,
    submission=SUBMISSION,
)
CAPTIONS = About(
    "EgoSchema from LaViLa captions",
    "annotations, and captions as VideoAgent's authors gave",
    "subset_anno.json, lavila_subset.json (one caption a second)",
    "none stated",
    verified=True,
    load=load_captions,
    options=OPTIONS,
    submission=SUBMISSION,
)
