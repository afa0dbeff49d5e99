"""Calibrations fitted to labelled results: probabilities for answers, and when ``auto`` stops."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from longtake.agents.calibration import LENGTH, Calibration, StageFacts, ending, weighed
from longtake.agents.verify import Checked
from longtake.algorithms.calibration import expected_error, logistic, probability
from longtake.algorithms.question_kinds import search_kind
from longtake.evals.benchmarks import LabelledQuestion
from longtake.evals.runner import Scored
from longtake.evals.scoring import sound
from longtake.methods.auto.plan import (
    NOTHING,
    UNIT,
    Leader,
    NextStage,
    StageVote,
    decide,
    leader_among,
)
from longtake.types import Answer

LEAST = 20
"""Answers without which a method gets no weights."""
FOLDS = 4
"""Parts of the films, each of which is held out once."""


@dataclass(frozen=True)
class Sample:
    """An answer of a method: its signals, the confidence it stated, and whether it is right."""

    signals: Mapping[str, float]
    stated: float | None
    right: bool
    video: str = ""


def fit_methods(samples_of: Mapping[str, Sequence[Sample]]) -> dict[str, dict[str, float]]:
    """Weights for every method with enough answers."""
    weights = {}
    for method, answers in samples_of.items():
        if len(answers) >= LEAST:
            weights[method] = fit_samples(answers)
    return weights


def fit_samples(answers: Sequence[Sample]) -> dict[str, float]:
    """Weights for the signals of answers."""
    return logistic([weighed(each.signals) for each in answers], [each.right for each in answers])


def errors(samples_of: Mapping[str, Sequence[Sample]]) -> dict[str, dict[str, float]]:
    """Calibration error of each method: of stated confidences, and of fitted probabilities.

    The latter is measured on films that were held out of the fit.
    """
    measured = {}
    for method, answers in samples_of.items():
        stated = [each for each in answers if each.stated is not None]
        claims = [each.stated or 0.0 for each in stated]
        before = expected_error(claims, [each.right for each in stated])
        row: dict[str, float] = {"answers": len(answers), "stating": len(stated)}
        if stated:
            row["before"] = round(before, 4)
        if len(answers) >= LEAST:
            row["after"] = round(held_out_error(answers), 4)
        measured[method] = row
    return measured


def held_out(videos: Iterable[str]) -> list[set[str]]:
    """The films of each part, in random order: names often tell of what kind a film is."""
    names = sorted(set(videos))
    random.Random(0).shuffle(names)
    return [set(names[number::FOLDS]) for number in range(min(FOLDS, len(names)))]


def held_out_error(answers: Sequence[Sample]) -> float:
    """Calibration error of probabilities that were fitted without the films they are about."""
    chances, right = [], []
    for out in held_out(each.video for each in answers):
        kept = [each for each in answers if each.video not in out]
        weights = fit_samples(kept)
        for each in answers:
            if each.video in out:
                chances.append(probability(weights, weighed(each.signals)))
                right.append(each.right)
    return expected_error(chances, right)


USAGE = ("tokens", "seconds", "cost", "frames", "calls")
STOPS = (0.85, 0.9, 0.95, 0.98, 0.99)
"""Probabilities to stop at that are tried."""
GAINS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65)
"""Least gains per 100,000 tokens that are tried."""


@dataclass(frozen=True)
class StageRecord:
    """A question on its way through all stages of ``auto``."""

    item: LabelledQuestion
    stages: Sequence[Mapping[str, Any]]
    """As the results hold them."""


@dataclass(frozen=True)
class StagePoint:
    """A question after some stages: what leads, whether it is right, and the tokens so far."""

    visited: tuple[str, ...]
    standing: Leader | None
    right: bool
    tokens: float
    video: str = ""
    kind: str = ""


class ReplayedRule:
    """A passage under a rule: what would lead after any of its stages, in any order."""

    def __init__(self, passage: StageRecord, rule: Calibration) -> None:
        self.question = passage.item.asked.question
        self.kind = search_kind(self.question.text)
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

    def after(self, visited: Sequence[str]) -> StagePoint:
        """What leads after these stages."""
        key = tuple(visited)
        if key not in self._led:
            votes = [self._votes[stage] for stage in visited if stage in self._votes]
            leads = leader_among(votes, self.question, self._pool) if votes else None
            self._led[key] = leads
        leader = self._led[key]
        right = leader is not None and self._right[leader.vote.stage]
        tokens = sum(self.tokens[stage] for stage in visited)
        return StagePoint(key, leader, right, tokens, self.video, self.kind)

    def signals(self, point: StagePoint) -> dict[str, float]:
        """What the prospects of further stages are judged by."""
        known = {NOTHING: 1.0, **self.length}
        if point.standing is not None:
            known = dict(point.standing.signals)
        return {**known, self.kind: 1.0}

    def states(self) -> list[tuple[str, ...]]:
        """Sets of stages to learn from: all beginnings of the list, and some at random."""
        beginnings = [tuple(self.order[:number]) for number in range(len(self.order))]
        rng = random.Random(self.identity)
        # the prospects of a stage are learned after random sets of the others
        for _ in range(12):
            chosen = set(rng.sample(self.order, rng.randrange(len(self.order))))
            beginnings.append(tuple(key for key in self.order if key in chosen))
        return list(dict.fromkeys(beginnings))

    def ahead(self, visited: Sequence[str]) -> list[str]:
        """The stages that can come next."""
        return [key for key in self.order if key not in visited]


def passages(scored: Scored) -> list[StageRecord]:
    """The questions of a run of ``auto``."""
    records = []
    for item, row in zip(scored.items, scored.rows, strict=True):
        if row.get("stages"):
            records.append(StageRecord(item, row["stages"]))
    return records


def is_right(item: LabelledQuestion, stage: Mapping[str, Any]) -> bool:
    """Whether the answer of a stage is right."""
    text = stage.get("text") or ""
    return sound(item, {"status": "answered", "choice": stage.get("choice"), "text": text})


def by_stage(through: Sequence[StageRecord]) -> dict[str, list[Sample]]:
    """The answers of stages, as :func:`samples` gives them."""
    samples_of: dict[str, list[Sample]] = defaultdict(list)
    for passage in through:
        for stage in passage.stages:
            if "signals" in stage:
                right = is_right(passage.item, stage)
                stated = stage["signals"].get("stated")
                sample = Sample(stage["signals"], stated, right, passage.item.asked.video)
                samples_of[stage["stage"]].append(sample)
    return samples_of


def _vote(stage: Mapping[str, Any], rule: Calibration) -> StageVote:
    signals = stage["signals"]
    answer = Answer(stage.get("choice"), stage.get("text") or "")
    checked = Checked(answer, supports=int(signals.get("supported", 0)))
    chance = rule.confidence(stage["stage"], signals)
    return StageVote(stage["stage"], checked, 0.5 if chance is None else chance, signals)


Part: TypeAlias = tuple[Calibration, Sequence[ReplayedRule]]
"""A rule that was fitted without some films, and the questions about those films."""


def fit_rule(rule: Calibration, through: Sequence[StageRecord]) -> Calibration:
    """The rule of ``auto`` for given probabilities of its stages: pool, prospects and facts."""
    points = []
    for passage in through:
        replayed = ReplayedRule(passage, rule)
        points += [replayed.after(state) for state in replayed.states()]
    led = [(point.standing.signals, point.right) for point in points if point.standing]
    rule = replace(
        rule, pool=logistic([weighed(row) for row, _ in led], [right for _, right in led])
    )
    rows: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    for passage in through:
        replayed = ReplayedRule(passage, rule)
        for state in replayed.states():
            known = weighed(replayed.signals(replayed.after(state)))
            for key in replayed.ahead(state):
                rows[key].append(known)
                right[key].append(replayed.after((*state, key)).right)
    prospects = {stage: logistic(rows[stage], right[stage]) for stage in rows}
    return replace(rule, prospects=prospects, stages=facts(through))


def facts(through: Sequence[StageRecord]) -> dict[str, StageFacts]:
    """What each stage did and used."""
    by_name: dict[str, list[tuple[LabelledQuestion, Mapping[str, Any]]]] = defaultdict(list)
    for passage in through:
        for stage in passage.stages:
            by_name[stage["stage"]].append((passage.item, stage))
    stages = {}
    for key, rows in by_name.items():
        used = {what: mean([row.get(what) or 0.0 for _, row in rows]) for what in USAGE}
        by_kind: dict[str, list[float]] = defaultdict(list)
        for item, row in rows:
            by_kind[search_kind(item.asked.question.text)].append(row["tokens"])
        enough = {
            name: mean(answers)
            for name, answers in by_kind.items()
            # fewer questions of a kind do not tell its own cost
            if len(answers) >= 5
        }
        right = mean([is_right(item, row) for item, row in rows])
        answered = mean(["signals" in row for _, row in rows])
        stages[key] = StageFacts(right, answered, by_kind=enough, **used)
    return stages


def end(replayed: ReplayedRule, rule: Calibration) -> StagePoint:
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
            # 100,000 tokens are taken to be worth 15 points of accuracy
            worth[stop_at, least_gain] = right - 0.15 * tokens / UNIT
    return max(worth, key=worth.__getitem__)


def held_out_ends(
    parts: Sequence[Part], stop_at: float, least_gain: float
) -> list[list[StagePoint]]:
    """Where questions end under rules that were fitted without their films, part by part."""
    ends = []
    for fitted, about in parts:
        rule = replace(fitted, stop_at=stop_at, least_gain=least_gain)
        ends.append([end(replayed, rule) for replayed in about])
    return ends


def folds(through: Sequence[StageRecord]) -> list[Part]:
    """Rules fitted without some films, with the questions about those films."""
    parts: list[Part] = []
    for out in held_out(passage.item.asked.video for passage in through):
        about = [passage for passage in through if passage.item.asked.video in out]
        kept = [passage for passage in through if passage.item.asked.video not in out]
        rule = Calibration(methods=fit_methods(by_stage(kept)))
        rule = fit_rule(rule, kept or about)
        parts.append((rule, [ReplayedRule(passage, rule) for passage in about]))
    return parts


def with_odds(
    stages: Mapping[str, StageFacts], ends: Sequence[StagePoint]
) -> dict[str, StageFacts]:
    """The stages with how often a question reaches them and ends there."""
    with_shares = {}
    for key, known in stages.items():
        reached = mean([key in point.visited for point in ends])
        stopped = mean([point.visited[-1:] == (key,) for point in ends])
        with_shares[key] = replace(known, reached=reached, stopped=stopped)
    return with_shares


def mean(values: Sequence[float]) -> float:
    """The mean, rounded; 0 of nothing."""
    return round(sum(values) / len(values), 4) if values else 0.0


@dataclass(frozen=True)
class Ending:
    """The leader that a question ended with."""

    chance: float
    """Its probability before the correction."""
    right: bool
    video: str
    kind: str = ""
    """What the question asks for."""


def of_points(points: Sequence[StagePoint]) -> list[Ending]:
    """Where replayed questions ended; those without an answer are left out."""
    ends = []
    for point in points:
        if point.standing is not None:
            leader = point.standing
            ends.append(Ending(leader.probability, point.right, point.video, point.kind))
    return ends


def of_run(scored: Scored) -> list[Ending]:
    """Where the questions of a run of ``auto`` ended; those without an answer are left out."""
    ends = []
    for item, row, right in zip(scored.items, scored.rows, scored.right, strict=True):
        answered = [stage for stage in row.get("stages") or () if "standing" in stage]
        if answered:
            asked_for = search_kind(item.asked.question.text)
            ends.append(Ending(answered[-1]["standing"], right, item.asked.video, asked_for))
    return ends


def fit_final(ends: Sequence[Ending]) -> dict[str, float]:
    """Weights that correct the probability of what leads in the end, where there is enough."""
    if len(ends) < LEAST:
        return {}
    rows = [ending(each.chance, each.kind) for each in ends]
    return logistic(rows, [each.right for each in ends])


def held_out_ending_error(ends: Sequence[Ending]) -> float:
    """Calibration error of corrected probabilities, on films held out of the correction."""
    stated, right = [], []
    for out in held_out(each.video for each in ends):
        rule = Calibration(final=fit_final([each for each in ends if each.video not in out]))
        for each in ends:
            if each.video in out:
                stated.append(rule.final_probability(each.chance, each.kind))
                right.append(each.right)
    return expected_error(stated, right)


def corrected(rule: Calibration, ends: Sequence[Ending], about: Mapping[str, Any]) -> Calibration:
    """The same rule with final probabilities fitted to where it stopped."""
    before = expected_error([each.chance for each in ends], [each.right for each in ends])
    final = {
        **about,
        "before": round(before, 4),
        "calibration_error": round(held_out_ending_error(ends), 4),
    }
    return replace(rule, final=fit_final(ends), provenance={**rule.provenance, "final": final})


def samples(method: str, scored: Scored) -> dict[str, list[Sample]]:
    """The answers of a run by method; those of ``auto`` by stage."""
    samples_of = by_stage(passages(scored))
    for item, row, right in zip(scored.items, scored.rows, scored.right, strict=True):
        if "signals" in row:
            stated = row["signals"].get("stated")
            sample = Sample(row["signals"], stated, right, item.asked.video)
            samples_of.setdefault(method, []).append(sample)
    return samples_of


def fit_runs(runs: Sequence[tuple[str, Scored]], about: Mapping[str, Any]) -> Calibration:
    """A calibration from the results of runs, each with the name of its method."""
    samples_of: dict[str, list[Sample]] = defaultdict(list)
    through: list[StageRecord] = []
    for method, scored in runs:
        through += passages(scored)
        for name, answers in samples(method, scored).items():
            samples_of[name] += answers
    return fit(samples_of, through, about)


def fit(
    samples_of: Mapping[str, Sequence[Sample]],
    through: Sequence[StageRecord],
    about: Mapping[str, Any],
) -> Calibration:
    """A calibration from answers by method and from questions that went through all stages.

    ``about`` becomes part of its provenance. The rule of ``auto`` needs such questions; without
    them only methods are calibrated.
    """
    provenance = {**about, "calibration_error": errors(samples_of)}
    rule = Calibration(methods=fit_methods(samples_of), provenance=provenance)
    if not through:
        return rule
    rule = fit_rule(rule, through)
    held_out = folds(through)
    stop_at, least_gain = choose(held_out)
    rule = replace(rule, stop_at=stop_at, least_gain=least_gain)
    parts = held_out_ends(held_out, stop_at, least_gain)
    ends = [point for part in parts for point in part]
    endings = of_points(ends)
    provenance["auto"] = {
        "accuracy": mean([point.right for point in ends]),
        "tokens": mean([point.tokens for point in ends]),
        "calibration_error": round(held_out_ending_error(endings), 4),
    }
    rule = replace(rule, final=fit_final(endings))
    return replace(rule, stages=with_odds(rule.stages, ends))
