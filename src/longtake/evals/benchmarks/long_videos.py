"""Benchmarks with long videos: LongVideoBench, LVBench and Video-MME.

LongVideoBench (validation) has up to five options and questions that refer to a moment; LVBench
four options within the text of the question, and videos of half an hour or more; Video-MME four
options, short, medium and long videos, with and without subtitles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from longtake.evals.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake.evals.benchmarks.files import Files, FilmSource, letter, without_letter
from longtake.types import Question

ANNOTATIONS = ("lvb_val.json", "longvideobench_val.json")
"""Names under which the file has been published."""


def load_longvideobench(folder: Path, options: Mapping[str, str]) -> Benchmark:
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


LONGVIDEOBENCH = BenchmarkInfo(
    "LongVideoBench (validation)",
    "annotations, videos and subtitles from its authors",
    "lvb_val.json, videos/<video_path>, subtitles/<video_id>_en.json",
    "CC BY-NC-SA 4.0",
    verified=True,
    load=load_longvideobench,
    options={"subtitles": "yes (default) or no"},
)


_OPTION = re.compile(r"^\(([A-Z])\)\s*(.+)$", re.MULTILINE)


def load_lvbench(folder: Path, options: Mapping[str, str]) -> Benchmark:  # noqa: ARG001
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


LVBENCH = BenchmarkInfo(
    "LVBench",
    "video_info.meta.jsonl and the videos from its authors",
    "video_info.meta.jsonl, videos/<key>.mp4",
    "unknown (see its authors)",
    verified=False,
    load=load_lvbench,
)


def load_videomme(folder: Path, options: Mapping[str, str]) -> Benchmark:
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


VIDEOMME = BenchmarkInfo(
    "Video-MME",
    "the annotations as JSON, videos and subtitles from its authors",
    "videomme.json, videos/<videoID>.mp4, subtitle/<videoID>.srt",
    "its own (research use)",
    verified=True,
    load=load_videomme,
    options={
        "duration": "all (default), short, medium or long",
        "subtitles": "yes or no (default)",
    },
)
