"""LongVideoBench (validation): up to five options, questions that refer to a moment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake.evals.benchmarks.files import Files, FilmSource, letter
from longtake.types import Question

ANNOTATIONS = ("lvb_val.json", "longvideobench_val.json")
"""Names under which the file has been published."""


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films and their subtitles."""
    files = Files(folder)
    present = [name for name in ANNOTATIONS if files.has(name)]
    # if there is none, reading the first name raises an error that names it
    rows = files.json(present[0] if present else ANNOTATIONS[0])
    items = []
    begins = {}
    for row in rows:
        question = Question(row["question"], tuple(row["candidates"]))
        asked = BenchmarkQuestion(row["id"], row["video_path"], question)
        tags = {
            "duration": str(row["duration_group"]),
            "type": row["question_category"],
            "level": row["level"],
        }
        items.append(LabelledQuestion(asked, letter(int(row["correct_choice"])), tags))
        # a video can be a part of a longer one, whose subtitles it comes with
        begins[row["video_path"]] = float(row.get("starting_timestamp_for_subtitles") or 0.0)
    subtitles = folder / "subtitles" if options.get("subtitles", "yes") == "yes" else None
    source = FilmSource(
        folder / "videos",
        subtitles=subtitles,
        subtitle_pattern="{video}_en.json",
        subtitle_begins=begins,
    )
    settings = {"subtitles": subtitles is not None}
    return Benchmark("longvideobench", items, source, files.hashes, settings)


ABOUT = BenchmarkInfo(
    "LongVideoBench (validation)",
    "annotations, videos and subtitles from its authors",
    "lvb_val.json, videos/<video_path>, subtitles/<video_id>_en.json",
    "CC BY-NC-SA 4.0",
    verified=True,
    load=load,
    options={"subtitles": "yes (default) or no"},
)
