"""The rule of ``auto``, fitted to questions with labels that went through all of its stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtake.algorithms.asking import kind
from longtake.algorithms.calibration import logistic
from longtake.evals.items import Item
from longtake.evals.probabilities import FOLDS, Sample, fit_methods
from longtake.evals.runner import Scored
from longtake.evals.scoring import sound
from longtake.methods.auto.stopping import decide
from longtake.methods.auto.voices import Standing, Voice, standing
from longtake.steps.calibration import Calibration, StageFacts
from longtake.steps.verify import Checked
from longtake.types import Answer

USAGE = ("tokens", "seconds", "cost", "frames", "calls")
STOPS = (0.8, 0.85, 0.9, 0.95, 0.98)
"""Probabilities to stop at that are tried."""
GAINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)
"""Least gains per 100,000 tokens that are tried."""
TOLERANCE = 0.01
"""Accuracy that may be given up for fewer tokens when both are chosen."""
LEAST_OF_KIND = 5
"""Questions of a kind without which its own cost is not told apart."""


@dataclass(frozen=True)
class Passage:
    """A question on its way through all stages of ``auto``."""

    item: Item
    stages: Sequence[Mapping[str, Any]]
    """As the results hold them."""


@dataclass(frozen=True)
class Point:
    """A question after a stage: what leads, whether it is right, and the tokens so far."""

    stage: str
    standing: Standing | None
    right: bool
    tokens: float


def passages(scored: Scored) -> list[Passage]:
    """The questions of a run of ``auto``."""
    found = []
    for item, row in zip(scored.items, scored.rows, strict=True):
        if row.get("stages"):
            found.append(Passage(item, row["stages"]))
    return found


def is_right(item: Item, stage: Mapping[str, Any]) -> bool:
    """Whether the answer of a stage is right."""
    text = stage.get("text") or ""
    return sound(item, {"status": "answered", "choice": stage.get("choice"), "text": text})


def by_stage(through: Sequence[Passage]) -> dict[str, list[Sample]]:
    """The answers of stages, as :func:`samples` gives them."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for passage in through:
        for stage in passage.stages:
            if "signals" in stage:
                right = is_right(passage.item, stage)
                stated = stage["signals"].get("stated")
                sample = Sample(stage["signals"], stated, right, passage.item.asked.video)
                found[stage["stage"]].append(sample)
    return found


def follow(passage: Passage, rule: Calibration) -> list[Point]:
    """What leads after each stage, with the probabilities of a rule."""
    item, points = passage.item, []
    voices: list[Voice] = []
    leader, tokens, right = None, 0.0, False
    for stage in passage.stages:
        tokens += stage["tokens"]
        if "signals" in stage:
            voices.append(_voice(stage, rule))
            leader = standing(voices, item.asked.question, rule.pool)
            said = leader.voice.answer
            right = is_right(item, {"choice": said.choice, "text": said.text})
        points.append(Point(stage["stage"], leader, right, tokens))
    return points


def _voice(stage: Mapping[str, Any], rule: Calibration) -> Voice:
    found = stage["signals"]
    answer = Answer(stage.get("choice"), stage.get("text") or "")
    checked = Checked(answer, supports=int(found.get("supported", 0)))
    chance = rule.confidence(stage["stage"], found)
    return Voice(stage["stage"], checked, 0.5 if chance is None else chance, found)


def fit_rule(rule: Calibration, through: Sequence[Passage]) -> Calibration:
    """The rule of ``auto`` for given probabilities of its stages: pool, prospects and facts."""
    before = [point for passage in through for point in follow(passage, rule)]
    led = [(point.standing.signals, point.right) for point in before if point.standing]
    rule = replace(rule, pool=logistic([row for row, _ in led], [right for _, right in led]))
    rows: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    for passage in through:
        points = follow(passage, rule)
        asked = kind(passage.item.asked.question.text)
        for number, point in enumerate(points):
            if point.standing is None:
                continue
            for later in points[number + 1 :]:
                rows[later.stage].append({**point.standing.signals, asked: 1.0})
                right[later.stage].append(later.right)
    prospects = {stage: logistic(rows[stage], right[stage]) for stage in rows}
    return replace(rule, prospects=prospects, stages=facts(through))


def facts(through: Sequence[Passage]) -> dict[str, StageFacts]:
    """What each stage did and used."""
    told: dict[str, list[tuple[Item, Mapping[str, Any]]]] = defaultdict(list)
    for passage in through:
        for stage in passage.stages:
            told[stage["stage"]].append((passage.item, stage))
    stages = {}
    for key, rows in told.items():
        used = {what: mean([row.get(what) or 0.0 for _, row in rows]) for what in USAGE}
        by_kind: dict[str, list[float]] = defaultdict(list)
        for item, row in rows:
            by_kind[kind(item.asked.question.text)].append(row["tokens"])
        enough = {name: mean(own) for name, own in by_kind.items() if len(own) >= LEAST_OF_KIND}
        right = mean([is_right(item, row) for item, row in rows])
        stages[key] = StageFacts(accuracy=right, by_kind=enough, **used)
    return stages


def end(passage: Passage, rule: Calibration) -> Point:
    """Where a question ends under a rule."""
    points = follow(passage, rule)
    ahead = [point.stage for point in points]
    for number, point in enumerate(points, start=1):
        if point.standing is None:
            continue
        decision = decide(
            rule,
            point.standing.probability,
            point.standing.signals,
            kind(passage.item.asked.question.text),
            ahead[number:],
            stop_at=rule.stop_at,
            least_gain=rule.least_gain,
        )
        if decision.stop:
            return point
    return points[-1]


def choose(through: Sequence[Passage]) -> tuple[float, float]:
    """When to stop: the fewest tokens at nearly the best accuracy, on films held out in turn."""
    parts = folds(through)
    right, tokens = {}, {}
    for stop_at in STOPS:
        for least_gain in GAINS:
            ends = held_out_ends(parts, stop_at, least_gain)
            right[stop_at, least_gain] = mean([point.right for point in ends])
            tokens[stop_at, least_gain] = mean([point.tokens for point in ends])
    enough = [pair for pair in right if right[pair] >= max(right.values()) - TOLERANCE]
    return min(enough, key=lambda pair: tokens[pair])


def held_out_ends(
    parts: Sequence[tuple[Calibration, Sequence[Passage]]], stop_at: float, least_gain: float
) -> list[Point]:
    """Where questions end under rules that were fitted without their films."""
    ends = []
    for fitted, held_out in parts:
        rule = replace(fitted, stop_at=stop_at, least_gain=least_gain)
        ends += [end(passage, rule) for passage in held_out]
    return ends


def folds(through: Sequence[Passage]) -> list[tuple[Calibration, Sequence[Passage]]]:
    """Rules fitted without some films, with the questions about those films."""
    videos = sorted({passage.item.asked.video for passage in through})
    parts: list[tuple[Calibration, Sequence[Passage]]] = []
    for fold in range(min(FOLDS, len(videos))):
        out = set(videos[fold::FOLDS])
        held_out = [passage for passage in through if passage.item.asked.video in out]
        kept = [passage for passage in through if passage.item.asked.video not in out]
        rule = Calibration(methods=fit_methods(by_stage(kept)))
        parts.append((fit_rule(rule, kept or held_out), held_out))
    return parts


def with_odds(stages: Mapping[str, StageFacts], ends: Sequence[Point]) -> dict[str, StageFacts]:
    """The stages with how often a question reaches them and ends there."""
    left, told = 1.0, {}
    for key, known in stages.items():
        stopped = mean([point.stage == key for point in ends])
        told[key] = replace(known, reached=round(left, 4), stopped=round(stopped, 4))
        left -= stopped
    return told


def mean(values: Sequence[float]) -> float:
    """The mean, rounded; 0 of nothing."""
    return round(sum(values) / len(values), 4) if values else 0.0
