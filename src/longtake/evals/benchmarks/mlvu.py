"""MLVU: the multiple-choice tasks; the dev and test splits have different questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from longtake.errors import ConfigError
from longtake.evals.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake.evals.benchmarks.files import Files, FilmSource, letter
from longtake.types import Question

DEV = ("1_plotQA", "2_needle", "3_ego", "4_count", "5_order", "6_anomaly_reco", "7_topic_reasoning")
"""Multiple-choice files of the dev split; the others, captions and summaries, have no options."""
TEST = ("test_multi_choice_tasks",)
LAYOUT = (
    "json/1_plotQA.json … 7_topic_reasoning.json (dev) or test_multi_choice_tasks.json (test), "
    "video/<task>/<video> or video/<video>"
)


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    files = Files(folder)
    split = options.get("split", "dev")
    if split not in ("dev", "test"):
        raise ConfigError(f"mlvu: split must be dev or test, not {split!r}", key="split")
    items = []
    for name in DEV if split == "dev" else TEST:
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

    If the answer is no option, as of two questions of the dev split, it is none that can be chosen.
    """
    matching = [number for number, each in enumerate(candidates) if each == answer]
    return letter(matching[-1]) if matching else "-"


def submission(answers: Sequence[tuple[LabelledQuestion, str | None]]) -> str:
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

ABOUT = BenchmarkInfo(
    "MLVU (multiple choice)",
    "annotations and videos from its authors",
    LAYOUT,
    "CC BY-NC-SA 4.0",
    verified={f"{name}.json": digest for name, digest in zip(DEV, _DEV_FILES, strict=True)},
    load=load,
    options={"split": "dev (default) or test"},
    submission=submission,
)
