"""The rule of ``auto``, fitted to questions with labels that went through all of its stages."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from longtake.algorithms.calibration import logistic
from longtake.algorithms.question_kinds import kind
from longtake.evals.items import Item
from longtake.evals.probabilities import Sample, fit_methods, held_out
from longtake.evals.runner import Scored
from longtake.evals.scoring import sound
from longtake.methods.auto.plan import (
    NOTHING,
    UNIT,
    Leader,
    NextStage,
    StageVote,
    decide,
    follows,
    leader_among,
)
from longtake.steps.calibration import Calibration, StageFacts
from longtake.steps.signals import LENGTH, weighed
from longtake.steps.verify import Checked
from longtake.types import Answer

USAGE = ("tokens", "seconds", "cost", "frames", "calls")
STOPS = (0.85, 0.9, 0.95, 0.98, 0.99)
"""Probabilities to stop at that are tried."""
GAINS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65)
"""Least gains per 100,000 tokens that are tried."""
SUBSETS = 12
"""Random sets of stages after which the prospects of the others are learned."""
WORTH = 0.15
"""Accuracy that 100,000 tokens are worth when both are chosen."""
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
    """A question after some stages: what leads, whether it is right, and the tokens so far."""

    visited: tuple[str, ...]
    standing: Leader | None
    right: bool
    tokens: float
    video: str = ""
    kind: str = ""


class Replayed:
    """A passage under a rule: what would lead after any of its stages, in any order."""

    def __init__(self, passage: Passage, rule: Calibration) -> None:
        self.question = passage.item.asked.question
        self.kind = kind(self.question.text)
        self.identity, self.video = passage.item.asked.id, passage.item.asked.video
        self.order = [stage["stage"] for stage in passage.stages]
        self.tokens = {stage["stage"]: float(stage["tokens"]) for stage in passage.stages}
        self.length: dict[str, float] = {}
        self._pool = rule.pool
        self._votes: dict[str, StageVote] = {}
        self._right: dict[str, bool] = {}
        self._led: dict[tuple[str, ...], Leader | None] = {}
        for stage in passage.stages:
            if "signals" in stage:
                self._votes[stage["stage"]] = _vote(stage, rule)
                self._right[stage["stage"]] = is_right(passage.item, stage)
                self.length = {LENGTH: stage["signals"].get(LENGTH, 0.0)}

    def after(self, visited: Sequence[str]) -> Point:
        """What leads after these stages."""
        key = tuple(visited)
        if key not in self._led:
            votes = [self._votes[stage] for stage in visited if stage in self._votes]
            leads = leader_among(votes, self.question, self._pool) if votes else None
            self._led[key] = leads
        leader = self._led[key]
        right = leader is not None and self._right[leader.vote.stage]
        tokens = sum(self.tokens[stage] for stage in visited)
        return Point(key, leader, right, tokens, self.video, self.kind)

    def signals(self, point: Point) -> dict[str, float]:
        """What the prospects of further stages are judged by."""
        known = {NOTHING: 1.0, **self.length}
        if point.standing is not None:
            known = dict(point.standing.signals)
        return {**known, self.kind: 1.0}

    def states(self) -> list[tuple[str, ...]]:
        """Sets of stages to learn from: all beginnings of the list, and some at random."""
        beginnings = [tuple(self.order[:number]) for number in range(len(self.order))]
        rng = random.Random(self.identity)
        for _ in range(SUBSETS):
            chosen = set(rng.sample(self.order, rng.randrange(len(self.order))))
            beginnings.append(tuple(key for key in self.order if key in chosen))
        return list(dict.fromkeys(beginnings))

    def ahead(self, visited: Sequence[str]) -> list[str]:
        """The stages that can come next."""
        before = follows(self.order)
        left = [key for key in self.order if key not in visited]
        return [key for key in left if before.get(key) not in left]


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


def _vote(stage: Mapping[str, Any], rule: Calibration) -> StageVote:
    found = stage["signals"]
    answer = Answer(stage.get("choice"), stage.get("text") or "")
    checked = Checked(answer, supports=int(found.get("supported", 0)))
    chance = rule.confidence(stage["stage"], found)
    return StageVote(stage["stage"], checked, 0.5 if chance is None else chance, found)


Part: TypeAlias = tuple[Calibration, Sequence[Replayed]]
"""A rule that was fitted without some films, and the questions about those films."""


def fit_rule(rule: Calibration, through: Sequence[Passage]) -> Calibration:
    """The rule of ``auto`` for given probabilities of its stages: pool, prospects and facts."""
    points = []
    for passage in through:
        replayed = Replayed(passage, rule)
        points += [replayed.after(state) for state in replayed.states()]
    led = [(point.standing.signals, point.right) for point in points if point.standing]
    rule = replace(
        rule, pool=logistic([weighed(row) for row, _ in led], [right for _, right in led])
    )
    rows: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    for passage in through:
        replayed = Replayed(passage, rule)
        for state in replayed.states():
            known = weighed(replayed.signals(replayed.after(state)))
            for key in replayed.ahead(state):
                rows[key].append(known)
                right[key].append(replayed.after((*state, key)).right)
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
        answered = mean(["signals" in row for _, row in rows])
        stages[key] = StageFacts(right, answered, by_kind=enough, **used)
    return stages


def end(replayed: Replayed, rule: Calibration) -> Point:
    """Where a question ends under a rule."""
    visited: list[str] = []
    while True:
        point = replayed.after(visited)
        answered = point.standing is not None
        ahead = [NextStage(key, key) for key in replayed.ahead(visited)]
        decision = decide(
            rule,
            point.standing.probability if point.standing is not None else 0.0,
            replayed.signals(point),
            replayed.kind,
            ahead,
            stop_at=rule.stop_at if answered else 1.0,
            least_gain=rule.least_gain if answered else 0.0,
        )
        following = decision.next
        if following is None and not answered and ahead:
            following = ahead[0]
        if following is None:
            return point
        visited.append(following.key)


def choose(parts: Sequence[Part]) -> tuple[float, float]:
    """When to stop: the best accuracy for its tokens, on films held out in turn."""
    worth = {}
    for stop_at in STOPS:
        for least_gain in GAINS:
            ends = [point for part in held_out_ends(parts, stop_at, least_gain) for point in part]
            tokens = mean([point.tokens for point in ends])
            right = mean([point.right for point in ends])
            worth[stop_at, least_gain] = right - WORTH * tokens / UNIT
    return max(worth, key=worth.__getitem__)


def held_out_ends(parts: Sequence[Part], stop_at: float, least_gain: float) -> list[list[Point]]:
    """Where questions end under rules that were fitted without their films, part by part."""
    ends = []
    for fitted, about in parts:
        rule = replace(fitted, stop_at=stop_at, least_gain=least_gain)
        ends.append([end(replayed, rule) for replayed in about])
    return ends


def folds(through: Sequence[Passage]) -> list[Part]:
    """Rules fitted without some films, with the questions about those films."""
    parts: list[Part] = []
    for out in held_out(passage.item.asked.video for passage in through):
        about = [passage for passage in through if passage.item.asked.video in out]
        kept = [passage for passage in through if passage.item.asked.video not in out]
        rule = Calibration(methods=fit_methods(by_stage(kept)))
        rule = fit_rule(rule, kept or about)
        parts.append((rule, [Replayed(passage, rule) for passage in about]))
    return parts


def with_odds(stages: Mapping[str, StageFacts], ends: Sequence[Point]) -> dict[str, StageFacts]:
    """The stages with how often a question reaches them and ends there."""
    told = {}
    for key, known in stages.items():
        reached = mean([key in point.visited for point in ends])
        stopped = mean([point.visited[-1:] == (key,) for point in ends])
        told[key] = replace(known, reached=reached, stopped=stopped)
    return told


def mean(values: Sequence[float]) -> float:
    """The mean, rounded; 0 of nothing."""
    return round(sum(values) / len(values), 4) if values else 0.0
