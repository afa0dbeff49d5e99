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
            question = Question(row["question"], tuple(candidates))
            # the test split can come without answers
            answer = row.get("answer")
            label = letter(candidates.index(answer)) if answer in candidates else None
            identity = row.get("question_id", f"{kind}_{number}")
            asked = BenchmarkQuestion(identity, row["video"], question)
            items.append(LabelledQuestion(asked, label, {"type": kind}))
    source = FilmSource(files.subfolder("video", "videos"))
    return Benchmark("mlvu", items, source, files.hashes, {"split": split})


def submission(answers: Sequence[tuple[LabelledQuestion, str | None]]) -> str:
    """JSON as its authors' ``evaluation_test/test_res.json``; no answer is an empty option."""
    rows = [
        {"question_id": item.asked.id, "question_type": item.tags["type"], "option": choice or ""}
        for item, choice in answers
    ]
    return json.dumps(rows)


ABOUT = BenchmarkInfo(
    "MLVU (multiple choice)",
    "annotations and videos from its authors",
    LAYOUT,
    "CC BY-NC-SA 4.0",
    verified=True,
    load=load,
    options={"split": "dev (default) or test"},
    submission=submission,
)
