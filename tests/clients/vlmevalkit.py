"""Lays the lab's questions out as VLMEvalKit finds Video-MME: a snapshot in Hugging Face's cache.

    python vlmevalkit.py FOLDER CACHE

``run.py`` looks the dataset up there, and offline it takes what it finds. So its own Video-MME runs
unchanged, from the table of questions to the score; only the questions and the film are ours.
"""

import json
import sys
from pathlib import Path

import pandas as pd

REVISION = "0" * 40
"""Of the snapshot: any commit will do."""


def rows(questions):
    """The questions as rows of Video-MME's own table; the score is broken down by the constants."""
    for question in questions:
        lettered = zip("ABCDEFG", question["candidates"], strict=False)
        yield {
            "videoID": Path(question["path"]).stem,
            "duration": "short",
            "domain": "Knowledge",
            "sub_category": "Humanity & History",
            "task_type": "Object Recognition",
            "question": question["question"],
            "options": [f"{letter}. {option}" for letter, option in lettered],
            "answer": question["letter"],
        }


def main():
    folder, cache = map(Path, sys.argv[1:])
    questions = json.loads((folder / "questions.json").read_text())
    repository = cache / "hub" / "datasets--lmms-lab--Video-MME"
    snapshot = repository / "snapshots" / REVISION
    for part in (repository / "refs", snapshot / "videomme", snapshot / "subtitle"):
        part.mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(REVISION)
    # a link: the server opens films below --films only, and run.py sends the resolved path
    films = snapshot / "video"
    films.unlink(missing_ok=True)
    films.symlink_to(Path(questions[0]["path"]).parent)
    table = snapshot / "videomme" / "test-00000-of-00001.parquet"
    pd.DataFrame(rows(questions)).to_parquet(table)


if __name__ == "__main__":
    main()
