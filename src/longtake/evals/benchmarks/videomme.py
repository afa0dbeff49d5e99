"""Video-MME: four options, short, medium and long videos, with and without subtitles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake.evals.benchmarks.files import Files, FilmSource, without_letter
from longtake.types import Question


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films and, optionally, their subtitles."""
    files = Files(folder)
    duration = options.get("duration", "all")
    items = []
    for row in files.json("videomme.json"):
        if duration not in ("all", row["duration"]):
            continue
        choices = tuple(without_letter(option) for option in row["options"])
        asked = BenchmarkQuestion(
            row["question_id"], row["videoID"], Question(row["question"], choices)
        )
        tags = {"duration": row["duration"], "type": row["task_type"], "domain": row["domain"]}
        items.append(LabelledQuestion(asked, row["answer"], tags))
    subtitles = folder / "subtitle" if options.get("subtitles", "no") == "yes" else None
    source = FilmSource(folder / "videos", subtitles=subtitles)
    settings = {"duration": duration, "subtitles": subtitles is not None}
    return Benchmark("videomme", items, source, files.hashes, settings)


ABOUT = BenchmarkInfo(
    "Video-MME",
    "the annotations as JSON, videos and subtitles from its authors",
    "videomme.json, videos/<videoID>.mp4, subtitle/<videoID>.srt",
    "its own (research use)",
    verified=True,
    load=load,
    options={
        "duration": "all (default), short, medium or long",
        "subtitles": "yes or no (default)",
    },
)
