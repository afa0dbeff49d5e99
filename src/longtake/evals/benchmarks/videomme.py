"""Video-MME: four options, short, medium and long videos, with and without subtitles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import About
from longtake.evals.benchmarks.reading import Files, FilmSource, without_letter
from longtake.evals.items import Asked, Benchmark, Item
from longtake.types import Question


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films, and with their subtitles where asked for."""
    files, length = Files(folder), options.get("duration", "all")
    items = [
        Item(
            Asked(
                row["question_id"],
                row["videoID"],
                Question(
                    row["question"], tuple(without_letter(option) for option in row["options"])
                ),
            ),
            row["answer"],
            {"duration": row["duration"], "type": row["task_type"], "domain": row["domain"]},
        )
        for row in files.json("videomme.json")
        if length in ("all", row["duration"])
    ]
    subtitles = folder / "subtitle" if options.get("subtitles", "no") == "yes" else None
    source = FilmSource(folder / "videos", subtitles=subtitles)
    return Benchmark(
        "videomme",
        items,
        source,
        files.hashes,
        {"duration": length, "subtitles": subtitles is not None},
    )


ABOUT = About(
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
