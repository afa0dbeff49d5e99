"""A search in progress and what it has found: notes for the final call, citations, a best guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import graph
from longtake.algorithms.asking import negated
from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.methods.videodetective.belief import Belief, SceneGraph
from longtake.methods.videodetective.facets import SearchPlan
from longtake.methods.videodetective.observing import Observation, Observer, SceneText
from longtake.prompts import Plain, phrase
from longtake.types import Answer, Evidence, Question, Segment

CITED = 3
"""Scenes cited for an answer."""
SOURCES = {"caption": "seen", "onscreen": "read_on_screen", "speech": "heard"}
"""The phrase that tells where a text comes from."""


@dataclass
class Hunt:
    """A search in progress."""

    footage: Footage
    question: Question
    scenes: SceneGraph
    plan: SearchPlan
    observer: Observer
    anchors: NDArray[np.float64]
    """(Y_r)_i, one row per facet."""
    belief: Belief
    seen: dict[int, Observation] = field(default_factory=dict)
    """Observations by scene."""
    latest: dict[int, Observation] = field(default_factory=dict)
    """The latest observation for each facet."""

    def next_best(self, facet: int, taken: Sequence[int] = ()) -> int | None:
        """The facet's best scene that is neither observed nor taken."""
        free = self.belief.open.copy()
        free[list(taken)] = False
        return graph.most_believed(self.anchors[facet], free)

    def unresolved(self) -> list[int]:
        """M: facets that still miss something, or were never looked for."""
        left = []
        for facet in range(len(self.plan.facets)):
            last = self.latest.get(facet)
            if last is None or last.needs_more:
                left.append(facet)
        return left


@dataclass(frozen=True)
class Package:
    """An observed scene, as the final call is told of it."""

    segment: Segment
    text: SceneText
    """The best of its texts."""
    others: tuple[SceneText, ...] = ()


def packed(hunt: Hunt, nodes: Sequence[int]) -> list[Package]:
    """The scenes that have a text, in time order; the others are shown as frames alone."""
    packages = []
    for node in sorted(nodes):
        best = hunt.seen[node].best if node in hunt.seen else None
        if best is not None:
            others = tuple(text for text in hunt.seen[node].texts if text is not best)
            packages.append(Package(hunt.scenes.segments[node], best, others))
    return packages


def notes_on(packages: Sequence[Package], *, every: bool = False) -> list[str]:
    """The packages in words, one line each; with ``every``, one line per text."""
    lines = []
    for package in packages:
        lines.append(note_line(package.segment, package.text))
        if every:
            lines += [note_line(package.segment, text) for text in package.others]
    return lines


def notes_by_option(hunt: Hunt, nodes: Sequence[int]) -> list[str]:
    """For each option, the text that fits it best, or that nothing was observed for it."""
    lines = []
    for facet, parts in enumerate(hunt.plan.facets):
        if parts.name not in hunt.question.letters:
            continue
        letter = Plain(parts.name)
        best: dict[int, SceneText] = {}
        for node in nodes:
            text = hunt.seen[node].best_for(facet) if node in hunt.seen else None
            if text is not None:
                best[node] = text
        if best:
            # ties go to the earlier scene
            node = max(best, key=lambda node: (best[node].scores[facet], -node))
            text_line = note_line(hunt.scenes.segments[node], best[node])
            lines.append(phrase("videodetective", "option_note", letter=letter, note=text_line))
        else:
            lines.append(phrase("videodetective", "option_not_observed", letter=letter))
    return lines


def note_line(segment: Segment, text: SceneText) -> str:
    """``00:10:00 to 00:10:40, seen: …``."""
    source = phrase("videodetective", SOURCES[text.source])
    told = " ".join(text.text.split())
    return phrase("videodetective", "note", segment=segment, source=source, text=told)


def cited(packages: Sequence[Package], look: Look, footage: Footage) -> list[Evidence]:
    """The scenes with the most relevant texts, in time order; without texts, frames shown."""
    # sorted() is stable: of a tie, the earlier scene is cited
    best = sorted(packages, key=lambda package: -package.text.score)[:CITED]
    if not best:
        moments = [float(footage.times[row]) for row in look.rows[:CITED]]
        return [Evidence(Segment(time, time), "frame") for time in moments]
    evidence = []
    for package in sorted(best, key=lambda package: package.segment):
        text = package.text
        evidence.append(Evidence(package.segment, text.source, text.text, round(text.score, 4)))
    return evidence


def leading(hunt: Hunt) -> Answer | None:
    """The option with the most evidence so far, found without asking a model.

    For "which is not" questions it is the option with the least evidence.
    """
    support = {}
    for facet, parts in enumerate(hunt.plan.facets):
        if parts.name in hunt.question.letters:
            texts = [text for observation in hunt.seen.values() for text in observation.texts]
            support[parts.name] = max((text.scores[facet] for text in texts), default=0.0)
    if not any(support.values()):
        return None
    # asked for what is NOT shown, the option nobody found is the likely answer
    odd = negated(hunt.question.text)
    choose = min if odd else max
    letter = choose(support, key=lambda name: support[name])
    reason = f"Of what was observed so far, {'least' if odd else 'most'} speaks for it."
    packages = packed(hunt, list(hunt.seen))
    return Answer(letter, reason=reason, evidence=tuple(cited(packages, Look(()), hunt.footage)))
