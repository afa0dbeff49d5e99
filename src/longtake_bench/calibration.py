"""Probabilities fitted to labelled results, and measured on videos held out of the fit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from longtake.agents.calibration import Fit, Vote, grouped, leader, model_of, signals
from longtake.algorithms.calibration import (
    auroc,
    brier,
    chance_error,
    expected_error,
    logistic,
    reliability,
    surest,
)
from longtake_bench.benchmarks import LabelledQuestion
from longtake_bench.report import RunReport
from longtake_bench.results import QuestionResult
from longtake_bench.scoring import sound

LEAST = 20
"""Minimum number of questions for a fit."""
FOLDS = 5
"""Folds of the cross-validation over videos."""
STOPS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Candidate probabilities to stop at: 0 always stops after the first stage, 1 never stops early."""
WORTH = 0.15
"""Gain in accuracy that justifies 100,000 tokens."""
_VOTE = [each.name for each in fields(Vote)]


@dataclass(frozen=True)
class VotedQuestion:
    """A labelled question with the votes of its stages, and the tokens up to each of them."""

    item: LabelledQuestion
    benchmark: str
    votes: Sequence[Vote]
    right: Sequence[bool]
    tokens: Sequence[float]

    @property
    def video(self) -> str:
        """What is held out together: a video, or all meetings of a team."""
        return self.item.tags.get("team", self.item.asked.video)


@dataclass(frozen=True)
class End:
    """The final answer to a question; ``stated`` is the confidence that the stage stated, or 0."""

    benchmark: str
    probability: float
    stated: float
    right: bool
    tokens: float


def fits_of(reports: Sequence[RunReport], model: str | None, about: Mapping[str, Any]) -> list[Fit]:
    """A fit for each method, model and kind of footage with enough questions."""
    found: dict[tuple[str, str, str], list[VotedQuestion]] = {}
    chosen = [report.spec["method"].get("fields", {}) for report in reports]
    by_stage = all(each.get("every_stage") for each in chosen)
    for report in reports:
        for footage, question in read_run(report):
            key = report.method, model or model_of(report.spec["models"], footage), footage
            found.setdefault(key, []).append(question)
    fits = []
    for key, questions in found.items():
        if len(questions) >= LEAST:
            stop_at, measured = measure(questions, STOPS if by_stage else (1.0,))
            provenance = {**about, "questions": len(questions), **measured}
            stop = stop_at if by_stage else None
            fits.append(Fit(*key, weights_of(questions, stop_at), stop, provenance))
    return fits


def read_run(report: RunReport) -> Iterator[tuple[str, VotedQuestion]]:
    """The questions of a run that have an answer, each with its kind of footage."""
    for item, row in zip(report.scored.items, report.scored.rows, strict=True):
        records = row.stages or ([row.signals] if row.signals else [])
        votes, right, tokens, spent = [], [], [], 0.0
        for record in records:
            spent += record.get("tokens") or 0.0
            if "supported" in record:  # else it abstained
                votes.append(Vote(**{key: record[key] for key in _VOTE}))
                answer = QuestionResult(row.id, record.get("status", "answered"))
                choice, text = record.get("choice"), record.get("text") or ""
                right.append(sound(item, replace(answer, choice=choice, text=text)))
                tokens.append(spent)
        if votes:
            yield records[0]["footage"], VotedQuestion(item, report.benchmark, votes, right, tokens)


def weights_of(questions: Sequence[VotedQuestion], stop_at: float) -> dict[str, float]:
    """Weights of the signals of every answer, after each of the stages that can be reached."""
    rows, right = [], []
    for each in questions:
        for count in range(1, len(each.votes) + 1 if stop_at else 2):
            votes = each.votes[:count]
            for group in grouped(votes):
                rows.append(signals(votes, group, each.item.asked.question))
                right.append(each.right[group[0]])
    return logistic(rows, right)


def ends_of(questions: Sequence[VotedQuestion], stop_at: float) -> list[End]:
    """Where questions end if they stop at a probability, fitted without their videos."""
    names, ends = sorted({each.video for each in questions}), []
    # names often begin with the kind of video
    random.Random(0).shuffle(names)
    for number in range(min(FOLDS, len(names))):
        out = set(names[number::FOLDS])
        kept = [each for each in questions if each.video not in out]
        fit = Fit("", "", "", weights_of(kept, stop_at))
        ends += [end(each, fit, stop_at) for each in questions if each.video in out]
    return ends


def end(question: VotedQuestion, fit: Fit, stop_at: float) -> End:
    """Where a question ends."""
    for count in range(1, len(question.votes) + 1):
        place, chance = leader(question.votes[:count], question.item.asked.question, fit)
        if chance is not None and chance >= stop_at:
            break
    stated, right = question.votes[place].stated or 0.0, question.right[place]
    return End(question.benchmark, chance or 0.0, stated, right, question.tokens[count - 1])


def measure(
    questions: Sequence[VotedQuestion], stops: Sequence[float]
) -> tuple[float, dict[str, Any]]:
    """The best of the probabilities to stop at, and the results with it."""
    ends = {stop: ends_of(questions, stop) for stop in stops}
    totals = {}
    for stop, found in ends.items():
        right = sum(each.right for each in found) / len(found)
        totals[stop] = round(right, 4), round(sum(each.tokens for each in found) / len(found))
    best = max(totals, key=lambda stop: totals[stop][0] - WORTH * totals[stop][1] / 100_000)
    names = dict.fromkeys(each.benchmark for each in questions)
    named = {name: [each for each in ends[best] if each.benchmark == name] for name in names}
    return best, {
        "videos": len({each.video for each in questions}),
        "measured": {name: measures(found) for name, found in named.items()},
        # accuracy and tokens by the probability to stop at
        "stopping": {str(stop): each for stop, each in totals.items()},
    }


def measures(ends: Sequence[End]) -> dict[str, Any]:
    """How reliable probabilities are, compared with a constant and with stated confidences."""
    chances, right = [each.probability for each in ends], [each.right for each in ends]
    stated, base = [each.stated for each in ends], sum(each.right for each in ends) / len(ends)
    figures: dict[str, float] = {
        "answers": len(ends),
        "right": base,
        "mean": sum(chances) / len(chances),
        "ECE": expected_error(chances, right),
        "by chance": chance_error(chances),
        "ECE stated": expected_error(stated, right),
        "Brier": brier(chances, right),
        "constant": brier([base] * len(right), right),
        "AUROC": auroc(chances, right),
        "AUROC stated": auroc(stated, right),
    }
    for share in (0.25, 0.5, 0.75):
        figures[f"surest {share:.0%}"] = surest(chances, right, share)
        figures[f"stated {share:.0%}"] = surest(stated, right, share)
    rounded: dict[str, Any] = {name: round(value, 4) for name, value in figures.items()}
    bins = reliability(chances, right)
    return rounded | {"reliability": [[round(value, 4) for value in each] for each in bins]}
