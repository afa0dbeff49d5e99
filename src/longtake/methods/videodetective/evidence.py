"""A search under way, and what it has to show for itself: packages for the final call, citations, a best guess."""

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
from longtake.methods.videodetective.facets import Plan
from longtake.methods.videodetective.observing import Clue, Observation, Observer
from longtake.timecode import clock
from longtake.types import Answer, Evidence, Question, Segment

CITED = 3
"""Scenes that an answer cites."""
SAYS = {"caption": "seen", "onscreen": "read on screen", "speech": "heard"}


@dataclass
class Hunt:
    """A search under way."""

    footage: Footage
    question: Question
    film: SceneGraph
    plan: Plan
    observer: Observer
    anchors: NDArray[np.float64]
    """(Y_r)_i, a row per facet."""
    belief: Belief
    seen: dict[int, Observation] = field(default_factory=dict)
    """By scene."""
    latest: dict[int, Observation] = field(default_factory=dict)
    """By facet."""

    def next_best(self, facet: int, taken: Sequence[int] = ()) -> int | None:
        """The facet's best scene that nobody looked at or is about to."""
        free = self.belief.open.copy()
        free[list(taken)] = False
        return graph.most_believed(self.anchors[facet], free)

    def unresolved(self) -> list[int]:
        """M: facets that still miss something, or were never looked for."""
        facets = range(len(self.plan.facets))
        return [
            facet for facet in facets if facet not in self.latest or self.latest[facet].needs_more
        ]


@dataclass(frozen=True)
class Package:
    """A scene that somebody looked at, as the final call is told of it."""

    segment: Segment
    clue: Clue
    """The best of its texts."""
    others: tuple[Clue, ...] = ()


def packed(hunt: Hunt, nodes: Sequence[int]) -> list[Package]:
    """Those of the scenes that have a text, in time order; the others are shown as frames alone."""
    packages = []
    for node in sorted(nodes):
        if node in hunt.seen and (best := hunt.seen[node].best) is not None:
            others = tuple(clue for clue in hunt.seen[node].clues if clue is not best)
            packages.append(Package(hunt.film.segments[node], best, others))
    return packages


def told(packages: Sequence[Package], *, every: bool = False) -> list[str]:
    """The packages in words, a line each; with ``every``, a line for each of their texts."""
    return [
        line(package.segment, clue)
        for package in packages
        for clue in (package.clue, *(package.others if every else ()))
    ]


def told_by_option(hunt: Hunt, nodes: Sequence[int]) -> list[str]:
    """For each option the scene whose text fits it best, of these: what speaks for it, or that nothing was seen."""
    lines = []
    seen = {node: hunt.seen[node] for node in nodes if node in hunt.seen}
    for facet, parts in enumerate(hunt.plan.facets):
        if parts.name not in hunt.question.letters:
            continue
        found = {
            node: clue for node, one in seen.items() if (clue := one.best_for(facet)) is not None
        }
        if found:
            node = max(found, key=lambda node: (found[node].scores[facet], -node))
            lines.append(f"Option {parts.name}: {line(hunt.film.segments[node], found[node])}")
        else:
            lines.append(f"Option {parts.name}: nothing was observed")
    return lines


def line(segment: Segment, clue: Clue) -> str:
    """``00:10:00 to 00:10:40, seen: …``."""
    return f"{clock(segment.start)} to {clock(segment.end)}, {SAYS[clue.source]}: {' '.join(clue.text.split())}"


def cited(packages: Sequence[Package], look: Look, footage: Footage) -> list[Evidence]:
    """The scenes with the most relevant texts, in time order; where there are no texts, frames that were shown."""
    best = sorted(packages, key=lambda package: -package.clue.score)[:CITED]
    if best:
        return [
            Evidence(
                package.segment,
                package.clue.source,
                package.clue.text,
                round(package.clue.score, 4),
            )
            for package in sorted(best, key=lambda package: package.segment)
        ]
    moments = [float(footage.times[row]) for row in look.rows[:CITED]]
    return [Evidence(Segment(time, time), "frame") for time in moments]


def leading(hunt: Hunt) -> Answer | None:
    """The option with the best evidence so far, of "which is not" the one with the least; no model is asked."""
    supported = {
        parts.name: max(
            (clue.scores[facet] for one in hunt.seen.values() for clue in one.clues), default=0.0
        )
        for facet, parts in enumerate(hunt.plan.facets)
        if parts.name in hunt.question.letters
    }
    if not any(supported.values()):
        return None
    odd = negated(hunt.question.text)
    letter = (
        min(supported, key=lambda name: supported[name])
        if odd
        else max(supported, key=lambda n: supported[n])
    )
    reason = f"Of what was observed so far, {'least' if odd else 'most'} speaks for it."
    packages = packed(hunt, list(hunt.seen))
    return Answer(letter, reason=reason, evidence=tuple(cited(packages, Look(()), hunt.footage)))
