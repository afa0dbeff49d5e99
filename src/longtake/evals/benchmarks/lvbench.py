"""LVBench: four options within the text of the question, videos of half an hour or more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake.evals.benchmarks.files import Files, FilmSource
from longtake.types import Question

_OPTION = re.compile(r"^\(([A-Z])\)\s*(.+)$", re.MULTILINE)


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:  # noqa: ARG001
    """Questions with films."""
    files = Files(folder)
    items = []
    for video in files.lines("video_info.meta.jsonl"):
        for row in video["qa"]:
            # the options follow the question, one per line: "(A) …"
            text = row["question"].partition("\n(A)")[0].strip()
            choices = tuple(choice.strip() for _, choice in _OPTION.findall(row["question"]))
            asked = BenchmarkQuestion(str(row["uid"]), video["key"], Question(text, choices))
            # a question can have several types; scores are broken down by the first
            kinds = row.get("question_type") or ["other"]
            items.append(LabelledQuestion(asked, row["answer"], {"type": kinds[0]}))
    return Benchmark("lvbench", items, FilmSource(folder / "videos"), files.hashes)


ABOUT = BenchmarkInfo(
    "LVBench",
    "video_info.meta.jsonl and the videos from its authors",
    "video_info.meta.jsonl, videos/<key>.mp4",
    "unknown (see its authors)",
    verified=False,
    load=load,
)
