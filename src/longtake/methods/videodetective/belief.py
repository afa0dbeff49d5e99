"""A film as a graph of scenes, and the belief that each is relevant (sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import graph, scenes
from longtake.algorithms.scenes import Span
from longtake.events import ScoresSet, emit
from longtake.footage.look import rows_within
from longtake.footage.protocol import Footage
from longtake.types import Segment

SCENE = "scene"
"""Name of the threshold θ_sim on an encoder's card."""


@dataclass(frozen=True)
class GraphRule:
    """How scenes and their graph are built (table 5)."""

    theta_sim: float | None = None
    """Cosine of neighbouring frames below which a scene ends. Unset: the value on the encoder's
    card, else by quantile."""
    quantile: float = 0.05
    """Share of neighbouring frames that become boundaries if nothing else sets the threshold."""
    min_frames: int = 10
    """A scene with fewer frames is merged with a neighbour (L_min)."""
    max_frames: int | None = 120
    """A scene with more frames is divided (ours: a continuous shot must not be one scene)."""
    alpha: float = 0.6
    """Weight of visual similarity, against closeness in time (α)."""
    tau: float = 30.0
    """Time constant of closeness in time, in seconds (τ)."""
    top: int = 8
    """Edges kept per scene (k)."""
    beta: float = 0.6
    """Share of belief that comes from neighbours (β)."""
    iterations: int = 7
    """Diffusion steps after each observation (T_prop)."""


@dataclass(frozen=True)
class SceneGraph:
    """The scenes of a film, or of the part that a question names, and the graph over them."""

    rows: NDArray[np.int64]
    """Rows of the footage's grid, in order."""
    vectors: NDArray[np.float32]
    """A unit vector for each of them."""
    spans: Sequence[Span]
    """Scenes as ranges of ``rows``."""
    segments: tuple[Segment, ...]
    nodes: NDArray[np.float64]
    """h_i, a unit vector per scene."""
    weights: graph.Edges
    """W̃."""
    spreading: graph.Edges
    """W_norm."""

    def __len__(self) -> int:
        return len(self.spans)

    def rows_of(self, node: int) -> NDArray[np.int64]:
        """The rows of the grid in a scene."""
        begin, end = self.spans[node]
        return self.rows[begin:end]

    def tell(self, label: str, values: Sequence[float], nodes: Sequence[int] | None = None) -> None:
        """Record a number for each scene, or for some of them, in the trace."""
        chosen = self.segments if nodes is None else tuple(self.segments[node] for node in nodes)
        emit(ScoresSet(label=label, segments=chosen, values=tuple(np.round(values, 4).tolist())))


def scene_graph(footage: Footage, rule: GraphRule, within: Segment | None = None) -> SceneGraph:
    """Lines 2 and 4: the scenes with their vectors, and the graph over them."""
    rows = np.arange(len(footage.times)) if within is None else rows_within(footage, within)
    vectors = np.asarray(footage.embeddings()[rows], np.float32)
    theta = cut_off(footage, vectors, rule)
    spans = scenes.scenes(vectors, theta, shortest=rule.min_frames, longest=rule.max_frames)
    starts = footage.times[rows[[begin for begin, _ in spans]]].tolist()
    until = footage.duration if within is None else min(within.end, footage.duration)
    # scenes leave no gap: each ends where the next begins
    ends = [*starts[1:], max(until, starts[-1])]
    segments = tuple(Segment(a, b) for a, b in zip(starts, ends, strict=True))
    nodes = scenes.scene_vectors(vectors, spans)
    centres = np.array([segment.middle for segment in segments])
    weights = graph.affinity(nodes, centres, alpha=rule.alpha, tau=rule.tau, top=rule.top)
    return SceneGraph(rows, vectors, spans, segments, nodes, weights, graph.normalise(weights))


def cut_off(footage: Footage, vectors: NDArray[np.float32], rule: GraphRule) -> float:
    """θ_sim on this encoder's scale."""
    if rule.theta_sim is not None:
        return rule.theta_sim
    known = footage.encoder.thresholds.get(SCENE)
    if known is not None:
        return float(known)
    steps = scenes.neighbours(vectors)
    return float(np.quantile(steps, rule.quantile)) if len(steps) else 0.0


class Belief:
    """The state vectors: ``injected`` is Y, ``field`` is F, and ``open`` is 1 − v.

    Y holds what was verified or assumed of each scene, F what follows for every scene, and v which
    scenes were visited.
    """

    def __init__(
        self,
        scene_graph: SceneGraph,
        prior: NDArray[np.float64],
        rule: GraphRule,
        *,
        spread: bool = True,
    ) -> None:
        self._graph, self._rule, self._spread = scene_graph, rule, spread
        self.injected = np.array(prior, np.float64)
        self.field = self.injected.copy()
        self.open = np.ones(len(scene_graph), np.bool_)
        scene_graph.tell("belief", self.field.tolist())

    def inject(self, node: int, score: float) -> None:
        """Lines 23 and 24: Y_i ← s_i, v_i ← 1, and F is diffused again."""
        self.injected[node] = score
        self.open[node] = False
        if self._spread:
            # starting from the last belief, a few iterations are enough
            self.field = graph.diffuse(
                self._graph.spreading,
                self.injected,
                self.field,
                beta=self._rule.beta,
                steps=self._rule.iterations,
            )
        else:
            self.field = self.injected.copy()
        self._graph.tell("observed", [score], [node])
        self._graph.tell("belief", self.field.tolist())
