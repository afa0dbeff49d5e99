"""NExT-QA and NExT-GQA, multiple choice: five options; causal, temporal, descriptive questions.

NExT-GQA adds the intervals that hold the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from longtake.errors import ConfigError
from longtake.evals.benchmarks import (
    Benchmark,
    BenchmarkInfo,
    BenchmarkQuestion,
    LabelledQuestion,
    VideoSource,
)
from longtake.evals.benchmarks.files import CaptionSource, Files, FilmSource, letter
from longtake.types import Question, Segment

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
        tags = _tags(row)
        if hard:
            tags["atp_hard"] = "yes" if identity in hard else "no"
        asked = BenchmarkQuestion(identity, row["video"], question)
        items.append(LabelledQuestion(asked, letter(int(row["answer"])), tags))
    return items


def _grounded_items(files: Files, split: str) -> list[LabelledQuestion]:
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
                _tags(row),
                tuple(Segment(float(start), float(end)) for start, end in spans),
            )
        )
    return items


def _tags(row: Mapping[str, str]) -> dict[str, str]:
    return {"type": KINDS.get(row["type"][0], "other"), "subtype": row["type"]}


def _loader(
    name: str, items: Callable[[Files, str], list[LabelledQuestion]], *, captions: bool
) -> Callable[[Path, Mapping[str, str]], Benchmark]:
    """What reads a benchmark's folder, with films or with captions alone."""

    def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
        files = Files(folder)
        source: VideoSource = FilmSource(folder / "videos")
        if captions:
            source = CaptionSource(files.note("captions_1fps.json"))
        split = options.get("split", "val")
        return Benchmark(name, items(files, split), source, files.hashes, {"split": split})

    return load


OPTIONS = {"split": "val (default) or test: the name of the CSV file"}
GROUNDED_OPTIONS = {"split": "val (default) or test: <split>.csv and gsub_<split>.json"}
ABOUT = BenchmarkInfo(
    "NExT-QA (multiple choice)",
    "the annotations and videos of the NExT-QA authors",
    f"val.csv, videos/<id>.mp4, and {HARD} (a video_qid per line) for the ATP-hard subset",
    "MIT (annotations)",
    verified=True,
    load=_loader("nextqa", _items, captions=False),
    options=OPTIONS,
)
CAPTIONS = BenchmarkInfo(
    "NExT-QA from captions at 1 fps",
    "the annotations, and the captions published with VideoAgent",
    "val.csv, captions_1fps.json (video → second → caption)",
    "MIT (annotations)",
    verified=True,
    load=_loader("nextqa-captions", _items, captions=True),
    options=OPTIONS,
)
GROUNDED = BenchmarkInfo(
    "NExT-GQA (grounded, multiple choice)",
    "the annotations of the NExT-GQA authors and the videos of NExT-QA",
    "val.csv, gsub_val.json, videos/<id>.mp4",
    "MIT (annotations of NExT-QA)",
    verified=True,
    load=_loader("nextgqa", _grounded_items, captions=False),
    options=GROUNDED_OPTIONS,
)
GROUNDED_CAPTIONS = BenchmarkInfo(
    "NExT-GQA from captions at 1 fps",
    "the annotations of the NExT-GQA authors, and captions as VideoAgent's authors gave",
    "val.csv, gsub_val.json, captions_1fps.json (video → second → caption)",
    "MIT (annotations of NExT-QA)",
    verified=True,
    load=_loader("nextgqa-captions", _grounded_items, captions=True),
    options=GROUNDED_OPTIONS,
)
