"""Benchmarks with long videos: LongVideoBench, LVBench, Video-MME and MLVU.

LongVideoBench (validation) has up to five options and questions that refer to a moment; LVBench
four options within the text of the question, and videos of half an hour or more; Video-MME four
options, short, medium and long videos, with and without subtitles. Of MLVU the multiple-choice
tasks are read; its dev and test splits have different questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from longtake.errors import ConfigError
from longtake.types import LETTERS, Question
from longtake_bench.benchmarks import (
    SEVERAL,
    Benchmark,
    BenchmarkInfo,
    BenchmarkQuestion,
    LabelledQuestion,
)
from longtake_bench.benchmarks.files import Files, FilmSource, malformed_files, without_letter

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
        items.append(LabelledQuestion(asked, LETTERS[int(row["correct_choice"])], tags))
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


DEV = ("1_plotQA", "2_needle", "3_ego", "4_count", "5_order", "6_anomaly_reco", "7_topic_reasoning")
"""Multiple-choice files of the dev split; the others, captions and summaries, have no options."""
_TEST = ("test_multi_choice_tasks",)


def load_mlvu(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    files = Files(folder)
    split = options.get("split", "dev")
    if split not in ("dev", "test"):
        raise ConfigError(f"mlvu: split must be dev or test, not {split!r}", key="split")
    items = []
    for name in DEV if split == "dev" else _TEST:
        for number, row in enumerate(files.json(files.first(f"json/{name}.json", f"{name}.json"))):
            kind, candidates = row["question_type"], row["candidates"]
            # the dev split has one row without question, options and answer: 2,174 remain
            if not row["question"]:
                continue
            question = Question(row["question"], tuple(candidates))
            # the test split can come without answers
            label = _right(candidates, row["answer"]) if "answer" in row else None
            identity = row.get("question_id", f"{kind}_{number}")
            asked = BenchmarkQuestion(identity, row["video"], question)
            items.append(LabelledQuestion(asked, label, {"type": kind}))
    source = FilmSource(files.subfolder("video", "videos"))
    return Benchmark("mlvu", items, source, files.hashes, {"split": split})


def _right(candidates: Sequence[str], answer: str) -> str:
    """The letter that its authors count as right: of equal options the last.

    If the answer is no option, as in two questions of the dev split, no choice is right.
    """
    matching = [number for number, each in enumerate(candidates) if each == answer]
    return LETTERS[matching[-1]] if matching else "-"


def mlvu_submission(answers: Sequence[tuple[LabelledQuestion, str | None]]) -> str:
    """JSON as its authors' ``evaluation_test/test_res.json``; no answer is an empty option."""
    rows = [
        {"question_id": item.asked.id, "question_type": item.tags["type"], "option": choice or ""}
        for item, choice in answers
    ]
    return json.dumps(rows)


# data/ of github.com/JUNJIE99/MLVU at fd060c10a43e, in the order of DEV
_DEV_FILES = (
    "453cdabe10409fe5ed4c0d98dcde2be53e13ae3dacb19fd3173c8b27c4bf388b",
    "e31deed2c719f035054f5229f7ea77075eb4b69bf83680e8baf3b272a9eabb1d",
    "4566a3e9e19c8cee8183f0368e9a8d0f484098bd2f1eb949c832535764eb9701",
    "4b063074ab8e676e4756e4aaa369c18e38ed49563ec4e0cd0a381c4260dacb8a",
    "c332f83c45a1a28cec156658f8cb6a948fcb181ed0ee5e044a9be3fb95dc6bdb",
    "caccb62cd52775cdcf3989ce15aa2bbb4269c2df2863eb7d0f48e83620a705e8",
    "54a5287703fddc2bc2b6cfdc92918e099d50257c575a12d194423128deefc99d",
)

MLVU = BenchmarkInfo(
    "MLVU (multiple choice)",
    "annotations and videos from its authors",
    "json/1_plotQA.json … 7_topic_reasoning.json (dev) or test_multi_choice_tasks.json (test), "
    "video/<task>/<video> or video/<video>",
    "CC BY-NC-SA 4.0",
    verified={f"{name}.json": digest for name, digest in zip(DEV, _DEV_FILES, strict=True)},
    load=load_mlvu,
    options={"split": "dev (default) or test"},
    submission=mlvu_submission,
)
