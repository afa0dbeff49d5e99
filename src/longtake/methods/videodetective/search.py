"""The search: which scene is observed next, and what each observation changes (lines 7 to 25)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from longtake.agents.team import fanout
from longtake.algorithms import scene_graph
from longtake.footage.protocol import Footage
from longtake.methods.videodetective.plan import SearchPlan
from longtake.methods.videodetective.scenes import Belief, Observation, Observer, SceneGraph
from longtake.tracing.events import note
from longtake.types import Question

QUESTION = 0
"""The facet that is the question as a whole."""


@dataclass
class SceneSearch:
    """A search in progress."""

    footage: Footage
    question: Question
    scenes: SceneGraph
    plan: SearchPlan
    observer: Observer
    keyword: NDArray[np.float64]
    """Keyword–scene cosines, one row per facet."""
    event: NDArray[np.float64]
    """Query–event cosines, likewise."""
    anchors: NDArray[np.float64]
    """(Y_r)_i, likewise."""
    belief: Belief
    steps: int
    """B: the most observations."""
    retry_below: float
    """An anchor with a lower score is followed by its facet's next best scene."""
    propose: Callable[[SceneSearch], None]
    """Called after each observation."""
    seen: dict[int, Observation] = field(default_factory=dict)
    """Observations by scene, in their order."""
    latest: dict[int, Observation] = field(default_factory=dict)
    """The latest observation for each facet."""
    best: dict[int, int] = field(default_factory=dict)
    """Each facet's best scene, in the order of anchors (released order only)."""

    @property
    def exhausted(self) -> bool:
        """Whether all steps are taken or all scenes are visited."""
        return len(self.seen) >= self.steps or not self.belief.open.any()

    # ---- the paper's order

    def by_facets(self, *, refinement: bool) -> None:
        """All anchors, a retry after each low one, then facets in turn."""
        by_score = np.argsort(-self.anchors.max(axis=1), kind="stable").tolist()
        anchors = self.best_scenes(by_score)[: self.steps]  # 7
        values = [float(self.anchors[facet, node]) for node, facet in anchors]
        self.scenes.record("anchors", values, [node for node, _ in anchors])
        self.verify(anchors, "anchor")
        if not refinement:
            return
        low = [facet for node, facet in anchors if self.seen[node].score < self.retry_below]
        self.verify(self.best_scenes(low)[: self.steps - len(self.seen)], "retry")
        turns = deque(self.unresolved())  # M
        while not self.exhausted:  # 8, 9
            facet = turns.popleft() if turns else None  # 13, 15
            node, why = self.hypothesis(facet)
            self.verify([(node, facet or QUESTION)], why)
            if facet is not None and self.latest[facet].needs_more:
                turns.append(facet)  # 17: otherwise it has left M

    def unresolved(self) -> list[int]:
        """M: facets that still miss something, or have no observation."""
        left = []
        for facet in range(len(self.plan.facets)):
            last = self.latest.get(facet)
            if last is None or last.needs_more:
                left.append(facet)
        return left

    def best_scenes(self, facets: Sequence[int]) -> list[tuple[int, int]]:
        """Each facet's best unvisited scene that no earlier facet has taken."""
        free = self.belief.open.copy()
        picks: list[tuple[int, int]] = []
        for facet in facets:
            node = scene_graph.most_believed(self.anchors[facet], free)
            if node is not None:
                picks.append((node, facet))
                free[node] = False
        return picks

    def hypothesis(self, facet: int | None) -> tuple[int, str]:
        """Lines 13 to 18: where to look next, and why there."""
        if facet is not None and facet in self.latest:
            last = self.latest[facet]
            neighbour = scene_graph.strongest_neighbour(
                self.scenes.weights, last.node, self.belief.field, self.belief.open
            )  # (6)
            if neighbour is not None:
                return neighbour, "neighbour"
            if last.missing:
                return self.closest(last.missing), "missing keyword"
        return self.most_believed(), "highest belief"  # (7)

    def closest(self, keyword: str) -> int:
        """The unvisited scene closest to a keyword."""
        closeness = self.scenes.nodes @ self.footage.encode([keyword])[0]
        return int(np.where(self.belief.open, closeness, -np.inf).argmax())

    def most_believed(self) -> int:
        """The unvisited scene of highest belief."""
        node = scene_graph.most_believed(self.belief.field, self.belief.open)
        assert node is not None  # no search goes on when all scenes are visited
        return node

    # ---- the released order

    def as_released(self, *, refinement: bool) -> None:
        """The question's scene, an anchor per option, retries at once, then wherever leads.

        No step follows an edge of the graph: after the anchors, the last missing keyword decides,
        else the highest belief.
        """
        anchors = self.released_anchors()
        queue = [] if (first := self.question_scene()) is None else [first]
        queue += [node for node in anchors.values() if node not in queue]
        facets = {node: facet for facet, node in anchors.items()}
        scores = dict.fromkeys(anchors, 0.0)
        self.best, missing = dict(anchors), ""
        while not self.exhausted and (queue or refinement):
            if queue:
                node, why = queue.pop(0), "anchor"
            elif missing:
                node, why, missing = self.closest(missing), "missing keyword", ""
            else:
                node, why = self.most_believed(), "highest belief"
            facet = facets.get(node, QUESTION)
            self.verify([(node, facet)], why)
            seen = self.seen[node]
            if seen.score > scores.get(facet, np.inf):
                scores[facet], self.best[facet] = seen.score, node
            if why == "anchor" and facet in anchors and seen.score < self.retry_below:
                again = scene_graph.most_believed(self.anchors[facet], self.belief.open)
                if again is not None and again not in queue and self.anchors[facet, again] > 0:
                    queue.insert(0, again)
                    facets[again] = facet
            if seen.missing:
                # what is written in the film cannot be found by its look
                missing = "" if seen.missing.lower().startswith("text:") else seen.missing

    def question_scene(self) -> int | None:
        """The scene closest to the question's keywords, else to its event; ``None`` if neither."""
        for row in (self.keyword[QUESTION], self.event[QUESTION]):
            if row.max() > 0:
                return int(row.argmax())
        return None

    def released_anchors(self) -> dict[int, int]:
        """Each option's best scene that no earlier option has taken, in order of score."""
        taken: dict[int, int] = {}
        for facet in np.argsort(-self.anchors.max(axis=1), kind="stable").tolist():
            if facet != QUESTION:
                ranked = np.argsort(-self.anchors[facet], kind="stable").tolist()
                free = [node for node in ranked if node not in taken.values()]
                taken[facet] = (free or ranked)[0]
        return taken

    # ---- both

    def verify(self, picks: Sequence[tuple[int, int]], why: str) -> None:
        """Lines 20 to 24: observe independent picks in parallel, then apply them in their order."""

        def observe(pick: tuple[int, int]) -> Observation:
            node, facet = pick
            rows, segment = self.scenes.rows_of(node), self.scenes.segments[node]
            return self.observer.observe(node, rows, segment, facet)  # 21

        for (node, facet), seen in zip(picks, fanout(observe, picks), strict=True):
            self.seen[node] = self.latest[facet] = seen
            self.belief.inject(node, seen.score)  # 23, 24
            note(
                "observed",
                step=len(self.seen),
                scene=node,
                why=why,
                facet=self.plan.facets[facet].name,
                score=round(seen.score, 4),
                needs_more=seen.needs_more,
                missing=seen.missing,
            )
        self.propose(self)
