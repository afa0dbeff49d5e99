"""The built-in reranker's thresholds, from questions put to their own recording and to others.

    python benchmarks/reranker_thresholds.py --films FOLDER --meetings FOLDER --out build/thresholds

``lookup`` answers without thresholds: facts asked of films, of another film and of a meeting;
questions of meetings asked of their own, of another team's and of a film. What the reranker gave
question and answer is written to ``scores.jsonl``; what is there already is not asked again.

Each threshold is the highest at which hardly any right answer goes: of the question (``question``;
``account`` if it asks for more than a fact), and of question and answer together (``support``). The
table counts answers with thresholds from all other recordings.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from unanswerable import Asked, session_of, told_items

from longtake.methods.lookup.method import wants_account
from longtake.perception import reranker
from longtake.runner.session import Session
from longtake.types import Question
from longtake_bench.benchmarks import films, meetings
from longtake_bench.report import table

LOST = 0.01
"""The share of right answers that may go; every one is a question that a film does answer."""


def main(options: argparse.Namespace) -> None:
    """Ask, fit and print."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "scores.jsonl"
    known = {}
    if path.is_file():
        known = {row["key"]: row for row in map(json.loads, path.read_text().splitlines())}
    reranker.MEASURED.update(question=-99.0, account=-99.0, support=-999.0)
    session, rows = session_of(options.model), []
    with path.open("a", encoding="utf-8") as out:
        for asked in questions(options):
            key = f"{asked.name}|{asked.text}"
            if key not in known:
                known[key] = {"key": key, **scores(session, asked)}
                out.write(json.dumps(known[key]) + "\n")
                out.flush()
            rows.append(known[key])
    print_fits(rows)


def questions(options: argparse.Namespace) -> Iterator[Asked]:
    """Each question of its own recording, of another of the same kind, and of the other kind."""
    rng = random.Random(0)
    film, talk = films.load(options.films, {"split": "all", "films": "present"}), None
    talk = meetings.load(options.meetings, {"form": "open"})
    facts = told_items(film)
    by_meeting = defaultdict(list)
    for item in talk.items:
        by_meeting[item.asked.video].append(item)
    accounts = [
        item for items in by_meeting.values() for item in rng.sample(items, min(3, len(items)))
    ]
    names = sorted({item.asked.video for item in facts}), sorted(by_meeting)
    for items, source, own, others, foreign in (
        (facts, film.source, names[0], talk.source, names[1]),
        (accounts, talk.source, names[1], film.source, names[0]),
    ):
        for item in items:
            video, text = item.asked.video, item.asked.question.text
            phrases = tuple(each for each in (item.label, *item.accepted) if each)
            yield Asked("own", video, source.footage(video), text, phrases, item.evidence)
            other = rng.choice([name for name in own if name[:-1] != video[:-1]])
            yield Asked("similar", other, source.footage(other), text, answerable=False)
            other = rng.choice(foreign)
            yield Asked("unlike", other, others.footage(other), text, answerable=False)


def scores(session: Session, asked: Asked) -> dict[str, Any]:
    """What the reranker gave the question and the answer, and whether the answer is right."""
    best: dict[str, float] = {}
    plain = reranker.OnnxReranker.scores

    def recording(self: reranker.OnnxReranker, question: str, texts: Sequence[str]) -> Any:
        found = plain(self, question, texts)
        best[question] = max(best.get(question, -99.0), float(np.max(found, initial=-99.0)))
        return found

    reranker.OnnxReranker.scores = recording  # type: ignore[method-assign]
    try:
        answer = session.ask(asked.footage, Question(asked.text), "lookup").answer
    finally:
        reranker.OnnxReranker.scores = plain  # type: ignore[method-assign]
    cited = [each.segment for each in answer.evidence]
    if answer.context:
        cited.append(answer.context)
    spoken = asked.footage.speech()
    right = any(each.overlap(true) > 0 for true in asked.evidence for each in cited)
    text, asked_as = answer.text.lower(), next(iter(best), "")  # misspellings are corrected
    return {
        "recording": asked.name,
        "group": asked.group,
        "account": bool(spoken) and wants_account(Question(asked.text), spoken),
        "given": answer.status == "answered" and bool(answer.evidence),
        "right": right or any(phrase.lower() in text for phrase in asked.accepted),
        "question": best.get(asked_as, -99.0),
        "answer": max((value for key, value in best.items() if key != asked_as), default=-99.0),
        "text": answer.text,
        "reason": answer.reason,
    }


def passes(row: Mapping[str, Any], thresholds: Mapping[str, float]) -> bool:
    """Whether an answer is given with these thresholds."""
    if row["account"]:
        return bool(row["question"] >= thresholds["account"])
    total = row["question"] + row["answer"]
    return bool(row["question"] >= thresholds["question"] and total >= thresholds["support"])


def fit(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The highest thresholds at which no more than :data:`LOST` of the right answers go."""
    right = [row for row in rows if row["group"] == "own" and row["right"]]
    facts = [row for row in right if not row["account"]]
    measured = {
        "question": [row["question"] for row in facts],
        "support": [row["question"] + row["answer"] for row in facts],
        "account": [row["question"] for row in right if row["account"]],
    }
    lowest = {name: np.quantile(values, LOST, method="lower") for name, values in measured.items()}
    return {name: float(np.floor(2 * value) / 2) for name, value in lowest.items()}


def print_fits(rows: Sequence[Mapping[str, Any]]) -> None:
    """The thresholds from all recordings, and what those from the other recordings do."""
    passed = {}
    for left_out in {row["recording"] for row in rows}:
        thresholds = fit([row for row in rows if row["recording"] != left_out])
        own = [row for row in rows if row["recording"] == left_out]
        passed |= {row["key"]: row["given"] and passes(row, thresholds) for row in own}
    print(f"thresholds from all: {fit(rows)}")
    shown = []
    for name, account in (("facts", False), ("accounts", True)):
        cells = [name]
        for group in ("own", "similar", "unlike"):
            of_group = [row for row in rows if row["account"] == account and row["group"] == group]
            if group == "own":
                of_group = [row for row in of_group if row["right"]]
            given = sum(row["given"] for row in of_group)
            kept = sum(passed[row["key"]] for row in of_group)
            cells.append(f"{kept} ({given}) of {len(of_group)}")
        shown.append(cells)
    print("answers given, in brackets without thresholds")
    print(table(("kind", "own, right", "another of the kind", "of the other kind"), shown))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--films", type=Path, required=True)
    parser.add_argument("--meetings", type=Path, required=True)
    parser.add_argument("--model", help="a language model other than the built-in one")
    parser.add_argument("--out", type=Path, required=True)
    main(parser.parse_args())
