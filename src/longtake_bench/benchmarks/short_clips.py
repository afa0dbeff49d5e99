"""Benchmarks with short clips and captions of them: NExT-QA, NExT-GQA and EgoSchema.

NExT-QA has causal, temporal and descriptive questions, NExT-GQA adds the intervals that hold the
evidence. EgoSchema has three-minute egocentric clips; 500 questions have public labels. All have
five options, and each is read with films or with captions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from longtake.errors import ConfigError
from longtake.types import LETTERS, Question, Segment
from longtake_bench.benchmarks import (
    Benchmark,
    BenchmarkInfo,
    BenchmarkQuestion,
    LabelledQuestion,
    VideoSource,
)
from longtake_bench.benchmarks.files import CaptionSource, Files, FilmSource

KINDS = {"C": "causal", "T": "temporal", "D": "descriptive"}
"""Kinds of NExT-QA's questions by the first letter of their type."""
HARD = "atp_hard.txt"
ReadItems: TypeAlias = Callable[[Files, str], list[LabelledQuestion]]
"""Reads the questions of a split."""


def _nextqa(files: Files, split: str) -> list[LabelledQuestion]:
    hard = set(files.words(HARD)) if files.has(HARD) else set()
    items = []
    # "qid" counts the questions of one video, so it needs the video to be unique
    for row in files.rows(f"{split}.csv"):
        identity = f"{row['video']}_{row['qid']}"
        question = Question(row["question"], tuple(row[f"a{i}"] for i in range(5)))
        tags = _tags(row)
        if hard:
            tags["atp_hard"] = "yes" if identity in hard else "no"
        asked = BenchmarkQuestion(identity, row["video"], question)
        items.append(LabelledQuestion(asked, LETTERS[int(row["answer"])], tags))
    return items


def _nextgqa(files: Files, split: str) -> list[LabelledQuestion]:
    grounded = files.json(f"gsub_{split}.json")
    items = []
    for row in files.rows(f"{split}.csv"):
        video, number = row["video_id"], row["qid"]
        identity = f"{video}_{number}"
        options = tuple(row[f"a{i}"] for i in range(5))
        if row["answer"] not in options:
            raise ConfigError(f"{split}.csv: {identity}: the answer is not among the options")
        spans = grounded.get(video, {}).get("location", {}).get(number, [])
        items.append(
            LabelledQuestion(
                BenchmarkQuestion(identity, video, Question(row["question"], options)),
                # the file holds the text of the right option, not its number
                LETTERS[options.index(row["answer"])],
                _tags(row),
                tuple(Segment(float(start), float(end)) for start, end in spans),
            )
        )
    return items


def _tags(row: Mapping[str, str]) -> dict[str, str]:
    return {"type": KINDS.get(row["type"][0], "other"), "subtype": row["type"]}


def _egoschema(files: Files, split: str) -> list[LabelledQuestion]:
    if split == "subset" and files.has("subset_anno.json"):
        rows: dict[str, Any] = files.json("subset_anno.json")
        return [_egoschema_item(identity, row, {}) for identity, row in rows.items()]
    labels = files.json("subset_answers.json")
    rows = {row["q_uid"]: row for row in files.json("questions.json")}
    # to be scored by its authors as a whole, so known labels are left out as well
    if split == "full":
        return [_egoschema_item(identity, row, {}) for identity, row in rows.items()]
    labelled = [identity for identity in rows if identity in labels]
    return [_egoschema_item(identity, rows[identity], labels) for identity in labelled]


def _egoschema_item(
    identity: str, row: Mapping[str, Any], labels: Mapping[str, int]
) -> LabelledQuestion:
    question = Question(row["question"], tuple(row[f"option {i}"] for i in range(5)))
    # one question per video, so its id names the video too
    asked = BenchmarkQuestion(identity, identity, question)
    truth = row.get("truth", labels.get(identity))
    return LabelledQuestion(asked, None if truth is None else LETTERS[int(truth)])


def _load(
    name: str,
    items: ReadItems,
    default_split: str,
    captions: str,
    folder: Path,
    options: Mapping[str, str],
) -> Benchmark:
    """Read a benchmark's folder, with films or, if ``captions`` names a file, with captions."""
    files = Files(folder)
    source: VideoSource = FilmSource(folder / "videos")
    split = options.get("split", default_split)
    if captions:
        # the authors of VideoAgent publish captions of the subset and of all clips
        file = captions.replace("subset", "fullset") if split == "full" else captions
        source = CaptionSource(files.note(file))
    return Benchmark(name, items(files, split), source, files.hashes, {"split": split})


def egoschema_submission(answers: Sequence[tuple[LabelledQuestion, str | None]]) -> str:
    """CSV for its Kaggle competition: options are counted from 0; -1 means that none was chosen."""
    lines = ["q_uid,answer"]
    for item, choice in answers:
        number = item.asked.question.letters.index(choice) if choice else -1
        lines.append(f"{item.asked.id},{number}")
    return "\n".join(lines) + "\n"


# dataset/nextqa of github.com/doc-doc/NExT-QA, datasets/nextgqa of github.com/doc-doc/NExT-GQA
_NEXTQA_FILES = {
    "val.csv": "43198bdef8436b8d64a9b75d846b0987c10cbf94ebf4be325c4a4e54634d66b8",
    "test.csv": "cdf46de237b3b3b846ff0209ae1394ad559791b5a0de0bb8c78648f74da83542",
}
_NEXTGQA_FILES = {
    "val.csv": "ac5a1eb1d6dee9cd84ab7f9c94ab345b2404646f24b79ac182cd2aa9e2d424c1",
    "gsub_val.json": "4feb23e53102cb2d4779e857ff8f9fd9b552fc38435621406b2ed9b0bf76204b",
    "test.csv": "0443ede53f521de4cbfb5e4fb02253926b90f81f62041b18bd17207a3511d114",
    "gsub_test.json": "0c16c31699238a0f2b8ace45aeed7f193149ce2f011d6ed4f1ef7170ef5d41e9",
}

NEXTQA = BenchmarkInfo(
    "NExT-QA (multiple choice)",
    "the annotations and videos of the NExT-QA authors",
    f"val.csv, videos/<id>.mp4, and {HARD} (a video_qid per line) for the ATP-hard subset",
    "MIT (annotations)",
    verified=_NEXTQA_FILES,
    load=partial(_load, "nextqa", _nextqa, "val", ""),
    options={"split": "val (default) or test: the name of the CSV file"},
)
NEXTQA_CAPTIONS = replace(
    NEXTQA,
    title="NExT-QA from captions at 1 fps",
    get="the annotations, and the captions published with VideoAgent",
    layout="val.csv, captions_1fps.json (video → second → caption)",
    load=partial(_load, "nextqa-captions", _nextqa, "val", "captions_1fps.json"),
)
NEXTGQA = BenchmarkInfo(
    "NExT-GQA (grounded, multiple choice)",
    "the annotations of the NExT-GQA authors and the videos of NExT-QA",
    "val.csv, gsub_val.json, videos/<id>.mp4",
    "MIT (annotations of NExT-QA)",
    verified=_NEXTGQA_FILES,
    load=partial(_load, "nextgqa", _nextgqa, "val", ""),
    options={"split": "val (default) or test: <split>.csv and gsub_<split>.json"},
)
NEXTGQA_CAPTIONS = replace(
    NEXTGQA,
    title="NExT-GQA from captions at 1 fps",
    get="the annotations of the NExT-GQA authors, and captions as VideoAgent's authors gave",
    layout="val.csv, gsub_val.json, captions_1fps.json (video → second → caption)",
    load=partial(_load, "nextgqa-captions", _nextgqa, "val", "captions_1fps.json"),
)
EGOSCHEMA = BenchmarkInfo(
    "EgoSchema",
    "questions.json, subset_answers.json and the videos from its authors",
    "questions.json and subset_answers.json (or subset_anno.json), videos/<q_uid>.mp4",
    "none stated",
    load=partial(_load, "egoschema", _egoschema, "subset", ""),
    options={"split": "subset (default, 500 with labels) or full (5,031, for submission)"},
    submission=egoschema_submission,
)
EGOSCHEMA_CAPTIONS = replace(
    EGOSCHEMA,
    title="EgoSchema from LaViLa captions",
    get="the annotations, and the captions published with VideoAgent",
    layout="subset_anno.json, lavila_subset.json (one caption per second); for split=full"
    " questions.json, subset_answers.json, lavila_fullset.json",
    load=partial(_load, "egoschema-captions", _egoschema, "subset", "lavila_subset.json"),
)
