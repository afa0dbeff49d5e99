"""MLVU: the multiple-choice tasks; dev and test are different questions and are kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.errors import ConfigError
from longtake.evals.benchmarks import About
from longtake.evals.benchmarks.reading import Files, FilmSource, letter
from longtake.evals.items import Asked, Benchmark, Item
from longtake.types import Question

DEV = ("1_plotQA", "2_needle", "3_ego", "4_count", "5_order", "6_anomaly_reco", "7_topic_reasoning")
"""Files of the dev split with options; sub-scene captioning and summaries are judged by other means."""


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions with films."""
    split, files = options.get("split", "dev"), Files(folder)
    if split not in ("dev", "test"):
        raise ConfigError(f"mlvu: split is dev or test, not {split!r}", key="split")
    names = [f"{name}.json" for name in DEV] if split == "dev" else ["test_multi_choice_tasks.json"]
    items = []
    for name in names:
        for number, row in enumerate(files.json(name)):
            answer = row.get("answer")
            label = letter(row["candidates"].index(answer)) if answer in row["candidates"] else None
            asked = Asked(
                f"{row['question_type']}_{number}",
                row["video"],
                Question(row["question"], tuple(row["candidates"])),
            )
            items.append(Item(asked, label, {"type": row["question_type"]}))
    return Benchmark("mlvu", items, FilmSource(folder / "videos"), files.hashes, {"split": split})


ABOUT = About(
    "MLVU (multiple choice)",
    "annotations and videos from its authors",
    "1_plotQA.json … 7_topic_reasoning.json (dev) or test_multi_choice_tasks.json (test), videos/<video>",
    "CC BY-NC-SA 4.0",
    verified=True,
    load=load,
    options={"split": "dev (default) or test"},
)
