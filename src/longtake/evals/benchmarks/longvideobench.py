"""LongVideoBench (validation): up to five options, questions that refer to a moment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import About
from longtake.evals.benchmarks.reading import Files, FilmSource, letter
from longtake.evals.items import Asked, Benchmark, Item
from longtake.types import Question

ANNOTATIONS = ("lvb_val.json", "longvideobench_val.json")


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films and their subtitles."""
    files = Files(folder)
    name = next((n for n in ANNOTATIONS if files.has(n)), ANNOTATIONS[0])
    rows = files.json(name)
    items = [
        Item(
            Asked(
                row["id"], row["video_path"], Question(row["question"], tuple(row["candidates"]))
            ),
            letter(int(row["correct_choice"])),
            {
                "duration": str(row["duration_group"]),
                "type": row["question_category"],
                "level": row["level"],
            },
        )
        for row in rows
    ]
    subtitles = folder / "subtitles" if options.get("subtitles", "yes") == "yes" else None
    begins = {
        row["video_path"]: float(row.get("starting_timestamp_for_subtitles") or 0.0) for row in rows
    }
    source = FilmSource(
        folder / "videos",
        subtitles=subtitles,
        subtitle_pattern="{video}_en.json",
        subtitle_begins=begins,
    )
    return Benchmark(
        "longvideobench", items, source, files.hashes, {"subtitles": subtitles is not None}
    )


ABOUT = About(
    "LongVideoBench (validation)",
    "annotations, videos and subtitles from its authors",
    "lvb_val.json, videos/<video_path>, subtitles/<video_id>_en.json",
    "CC BY-NC-SA 4.0",
    verified=True,
    load=load,
    options={"subtitles": "yes (default) or no"},
)
