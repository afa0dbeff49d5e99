"""NExT-GQA: questions of NExT-QA with the intervals that hold the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.errors import ConfigError
from longtake.evals.benchmarks import BenchmarkInfo
from longtake.evals.benchmarks.files import CaptionSource, Files, FilmSource, letter
from longtake.evals.benchmarks.nextqa import KINDS
from longtake.evals.items import Benchmark, BenchmarkQuestion, LabelledQuestion, VideoSource
from longtake.types import Question, Segment

OPTIONS = {"split": "val (default) or test: <split>.csv and gsub_<split>.json"}


def _items(files: Files, split: str) -> list[LabelledQuestion]:
    grounded = files.json(f"gsub_{split}.json")
    items = []
    for row in files.rows(f"{split}.csv"):
        video, number = row["video_id"], row["qid"]
        identity = f"{video}_{number}"
        options = tuple(row[f"a{i}"] for i in range(5))
        if row["answer"] not in options:
            raise ConfigError(f"{split}.csv: {identity}: the answer is not among the options")
        spans = grounded.get(video, {}).get("location", {}).get(number, [])
        items.append(
            LabelledQuestion(
                BenchmarkQuestion(identity, video, Question(row["question"], options)),
                # the file holds the text of the right option, not its number
                letter(options.index(row["answer"])),
                {"type": KINDS.get(row["type"][0], "other"), "subtype": row["type"]},
                tuple(Segment(float(start), float(end)) for start, end in spans),
            )
        )
    return items


def _load(files: Files, options: Mapping[str, str], source: VideoSource, name: str) -> Benchmark:
    split = options.get("split", "val")
    return Benchmark(name, _items(files, split), source, files.hashes, {"split": split})


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    return _load(Files(folder), options, FilmSource(folder / "videos"), "nextgqa")


def load_captions(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with captions alone."""
    files = Files(folder)
    source = CaptionSource(files.note("captions_1fps.json"))
    return _load(files, options, source, "nextgqa-captions")


ABOUT = BenchmarkInfo(
    "NExT-GQA (grounded, multiple choice)",
    "the annotations of the NExT-GQA authors and the videos of NExT-QA",
    "val.csv, gsub_val.json, videos/<id>.mp4",
    "MIT (annotations of NExT-QA)",
    verified=True,
    load=load,
    options=OPTIONS,
)
CAPTIONS = BenchmarkInfo(
    "NExT-GQA from captions at 1 fps",
    "the annotations of the NExT-GQA authors, and captions as VideoAgent's authors gave",
    "val.csv, gsub_val.json, captions_1fps.json (video → second → caption)",
    "MIT (annotations of NExT-QA)",
    verified=True,
    load=load_captions,
    options=OPTIONS,
)
