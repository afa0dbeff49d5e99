"""NExT-QA, multiple choice: five options; causal, temporal and descriptive questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import BenchmarkInfo
from longtake.evals.benchmarks.files import CaptionSource, Files, FilmSource, letter
from longtake.evals.items import Benchmark, BenchmarkQuestion, LabelledQuestion, VideoSource
from longtake.types import Question

KINDS = {"C": "causal", "T": "temporal", "D": "descriptive"}
"""Kinds of questions by the first letter of their type."""
HARD = "atp_hard.txt"


def _items(files: Files, split: str) -> list[LabelledQuestion]:
    hard = set(files.words(HARD)) if files.has(HARD) else set()
    items = []
    # "qid" counts the questions of one video, so it needs the video to be unique
    for row in files.rows(f"{split}.csv"):
        identity = f"{row['video']}_{row['qid']}"
        question = Question(row["question"], tuple(row[f"a{i}"] for i in range(5)))
        tags = {"type": KINDS.get(row["type"][0], "other"), "subtype": row["type"]}
        if hard:
            tags["atp_hard"] = "yes" if identity in hard else "no"
        asked = BenchmarkQuestion(identity, row["video"], question)
        items.append(LabelledQuestion(asked, letter(int(row["answer"])), tags))
    return items


def _load(files: Files, options: Mapping[str, str], source: VideoSource, name: str) -> Benchmark:
    split = options.get("split", "val")
    return Benchmark(name, _items(files, split), source, files.hashes, {"split": split})


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    return _load(Files(folder), options, FilmSource(folder / "videos"), "nextqa")


def load_captions(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with captions alone."""
    files = Files(folder)
    source = CaptionSource(files.note("captions_1fps.json"))
    return _load(files, options, source, "nextqa-captions")


OPTIONS = {"split": "val (default) or test: the name of the CSV file"}
ABOUT = BenchmarkInfo(
    "NExT-QA (multiple choice)",
    "the annotations and videos of the NExT-QA authors",
    f"val.csv, videos/<id>.mp4, and {HARD} (a video_qid per line) for the ATP-hard subset",
    "MIT (annotations)",
    verified=True,
    load=load,
    options=OPTIONS,
)
CAPTIONS = BenchmarkInfo(
    "NExT-QA from captions at 1 fps",
    "the annotations, and the captions published with VideoAgent",
    "val.csv, captions_1fps.json (video → second → caption)",
    "MIT (annotations)",
    verified=True,
    load=load_captions,
    options=OPTIONS,
)
