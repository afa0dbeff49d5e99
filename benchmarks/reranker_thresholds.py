"""The built-in reranker's thresholds, from questions put to their own recording and to others.

    python benchmarks/reranker_thresholds.py --films FOLDER --meetings FOLDER --out build/thresholds

``lookup`` answers without thresholds: facts asked of films, of another film and of a meeting;
questions of meetings asked of their own, of another team's and of a film. What the reranker gave
question and answer is written to ``scores.jsonl``; what is there already is not asked again.

Thresholds are fitted for facts (``question``, ``support``, ``share``) and for accounts
(``account``): the most refusals of other recordings' questions for which at most a share of the
own ones is lost. The printed shares are of recordings that were left out of the fit.
"""

import argparse
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
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

QUESTION = (-99.0, *np.arange(-11.0, 0.5, 0.5).tolist())
SUPPORT = np.arange(-12.0, 8.5, 0.5).tolist()
SHARES = (0.0, 0.2, 0.35, 0.5, 0.75, 1.0)
LOST = 0.03
"""The share of answerable questions that may be lost in the fit."""


def main(options: argparse.Namespace) -> None:
    """Ask, fit and print."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "scores.jsonl"
    known = {}
    if path.is_file():
        known = {row["key"]: row for row in map(json.loads, path.read_text().splitlines())}
    reranker.MEASURED.update(question=-99.0, account=-99.0, support=-99.0, share=0.0)
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


Threshold = tuple[float, float, float]
"""Question, support and share; of accounts, the first counts alone."""


def kept(rows: Sequence[dict[str, Any]], threshold: Threshold) -> Any:
    """Which answers pass."""
    asked = np.array([row["question"] for row in rows])
    stated = np.array([row["answer"] for row in rows])
    question, support, share = threshold
    return (asked >= question) & (stated + share * asked >= support)


def fit(rows: Sequence[dict[str, Any]], grid: Sequence[Threshold]) -> Threshold:
    """The threshold with most refusals, of equals the most lenient."""
    own = [row for row in rows if row["group"] == "own" and row["right"]]
    others = [row for row in rows if row["group"] != "own"]

    def value(threshold: Threshold) -> tuple[bool, float, float]:
        lost = 1 - kept(own, threshold).mean()
        return lost <= LOST, 1 - kept(others, threshold).mean(), -sum(threshold[:2])

    return max(grid, key=value)


def print_fits(rows: Sequence[dict[str, Any]]) -> None:
    """The thresholds from all recordings, and what those from the other recordings do."""
    facts = list(itertools.product(QUESTION, SUPPORT, SHARES))
    accounts = [(question, -999.0, 0.0) for question in QUESTION]
    shown = []
    for name, grid in (("facts", facts), ("accounts", accounts)):
        own = [row for row in rows if row["account"] == (name == "accounts") and row["given"]]
        passed = []
        for left_out in sorted({row["recording"] for row in own}):
            held_out = [row for row in own if row["recording"] == left_out]
            threshold = fit([row for row in own if row["recording"] != left_out], grid)
            passed += list(zip(held_out, kept(held_out, threshold).tolist(), strict=True))
        cells = [name, str(fit(own, grid))]
        for group in ("own", "similar", "unlike"):
            answers = [
                passes
                for row, passes in passed
                if row["group"] == group and (row["right"] or group != "own")
            ]
            all_of = [
                row
                for row in rows
                if row["account"] == (name == "accounts")
                and row["group"] == group
                and (row["right"] or group != "own")
            ]
            cells.append(f"{sum(answers)} of {len(answers)}, {len(all_of)}")
        shown.append(cells)
    print("Answers kept, of those given without thresholds; questions in all")
    print(table(("kind", "thresholds", "own, right", "similar", "unlike"), shown))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--films", type=Path, required=True)
    parser.add_argument("--meetings", type=Path, required=True)
    parser.add_argument("--model", help="a language model other than the built-in one")
    parser.add_argument("--out", type=Path, required=True)
    main(parser.parse_args())
