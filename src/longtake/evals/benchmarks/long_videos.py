"""Benchmarks with long videos: LongVideoBench, LVBench and Video-MME.

LongVideoBench (validation) has up to five options and questions that refer to a moment; LVBench
four options within the text of the question, and videos of half an hour or more; Video-MME four
options, short, medium and long videos, with and without subtitles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from longtake.evals.benchmarks import (
    SEVERAL,
    Benchmark,
    BenchmarkInfo,
    BenchmarkQuestion,
    LabelledQuestion,
)
from longtake.evals.benchmarks.files import (
    Files,
    FilmSource,
    letter,
    malformed_files,
    without_letter,
)
from longtake.types import Question

ANNOTATIONS = ("lvb_val.json", "longvideobench_val.json")
"""Names under which the file has been published."""


def load_longvideobench(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films and their subtitles."""
    files = Files(folder)
    rows = files.json(files.first(*ANNOTATIONS))
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
    load=load_longvideobench,
    options={"subtitles": "yes (default) or no"},
)


_OPTION = re.compile(r"^\(([A-Z])\)\s*(.+)$", re.MULTILINE)


def load_lvbench(folder: Path, options: Mapping[str, str]) -> Benchmark:  # noqa: ARG001
    """Questions with films."""
    files = Files(folder)
    items = []
    for video in files.lines(files.first("video_info.meta.jsonl", "data/video_info.meta.jsonl")):
        for row in video["qa"]:
            # the options follow the question, one per line: "(A) …"
            text = row["question"].partition("\n(A)")[0].strip()
            choices = tuple(choice.strip() for _, choice in _OPTION.findall(row["question"]))
            asked = BenchmarkQuestion(str(row["uid"]), video["key"], Question(text, choices))
            # a question can have several types, and counts for each, as its authors count
            kinds = row.get("question_type") or ["other"]
            items.append(LabelledQuestion(asked, row["answer"], {"type": SEVERAL.join(kinds)}))
    films = files.subfolder("videos", "scripts/videos")
    source = FilmSource(films, names=_downloaded(films))
    return Benchmark("lvbench", items, source, files.hashes)


def _downloaded(folder: Path) -> dict[str, str]:
    """The files that video2dataset left, by YouTube's name: each is numbered, with its address."""
    names = {}
    for about in sorted(folder.glob("*/*.json")):
        with malformed_files(f"{about}: not what video2dataset writes"):
            address = str(json.loads(about.read_bytes())["url"])
            names[address.rpartition("v=")[2]] = about.stem
    return names


def lvbench_submission(answers: Sequence[tuple[LabelledQuestion, str | None]]) -> str:
    """JSON for its authors' ``scripts/test_acc.py``; no answer is an empty letter."""
    return json.dumps({item.asked.id: choice or "" for item, choice in answers})


LVBENCH = BenchmarkInfo(
    "LVBench",
    "video_info.meta.jsonl and the videos from its authors",
    "video_info.meta.jsonl (or in data/), videos/<key>.mp4 or what their download.sh leaves there",
    "CC BY-NC-SA 4.0",
    load=load_lvbench,
    submission=lvbench_submission,
)


def load_videomme(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films and, optionally, their subtitles."""
    files = Files(folder)
    duration = options.get("duration", "all")
    items = []
    name = files.first("videomme/test-00000-of-00001.parquet", "videomme.json")
    for row in files.json(name) if name.endswith(".json") else files.parquet(name):
        if duration not in ("all", row["duration"]):
            continue
        choices = tuple(without_letter(option) for option in row["options"])
        asked = BenchmarkQuestion(
            row["question_id"], row["videoID"], Question(row["question"], choices)
        )
        tags = {"duration": row["duration"], "type": row["task_type"], "domain": row["domain"]}
        items.append(LabelledQuestion(asked, row["answer"], tags))
    subtitles = folder / "subtitle" if options.get("subtitles", "no") == "yes" else None
    source = FilmSource(files.subfolder("data", "videos"), subtitles=subtitles)
    settings = {"duration": duration, "subtitles": subtitles is not None}
    return Benchmark("videomme", items, source, files.hashes, settings)


VIDEOMME = BenchmarkInfo(
    "Video-MME",
    "annotations, videos and subtitles from its authors, unzipped",
    "videomme/test-00000-of-00001.parquet (extra: parquet) or videomme.json, data/<videoID>.mp4, "
    "subtitle/<videoID>.srt",
    "its own (research use)",
    load=load_videomme,
    options={
        "duration": "all (default), short, medium or long",
        "subtitles": "yes or no (default)",
    },
)
