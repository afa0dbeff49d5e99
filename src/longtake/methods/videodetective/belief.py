"""A film as a graph of scenes, and the belief that each of them matters (VideoDetective, sections 3.1 and 3.2)."""

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
"""The threshold's name on an encoder's card."""


@dataclass(frozen=True)
class GraphRule:
    """How scenes and their graph are made (table 5)."""

    theta_sim: float | None = None
    """Cosine of neighbouring frames below which a scene ends; unset: as the encoder's card says, else by quantile."""
    quantile: float = 0.05
    """Share of neighbouring frames that are boundaries where nothing else sets the threshold."""
    min_frames: int = 10
    """Frames under which a scene merges with a neighbour (L_min)."""
    max_frames: int | None = 120
    """Frames above which a scene is divided (ours: a continuous shot must not be one scene)."""
    alpha: float = 0.6
    """Weight of looking alike, against being close in time (α)."""
    tau: float = 30.0
    """Seconds after which closeness in time has faded to a third (τ)."""
    top: int = 8
    """Edges kept of each scene (k)."""
    beta: float = 0.6
    """Share of belief that comes from neighbours (β)."""
    iterations: int = 7
    """Steps of diffusion after each observation (T_prop)."""


@dataclass(frozen=True)
class SceneGraph:
    """The scenes of a film, or of the part that a question speaks of, and how they hang together."""

    rows: NDArray[np.int64]
    """Places in the footage's grid, in order."""
    vectors: NDArray[np.float32]
    """A unit row for each of them."""
    spans: Sequence[Span]
    """Scenes as stretches of ``rows``."""
    segments: tuple[Segment, ...]
    nodes: NDArray[np.float64]
    """h_i, a unit row per scene."""
    weights: graph.Edges
    """W̃."""
    spreading: graph.Edges
    """W_norm."""

    def __len__(self) -> int:
        return len(self.spans)

    def rows_of(self, node: int) -> NDArray[np.int64]:
        """The places in the grid that a scene holds."""
        begin, end = self.spans[node]
        return self.rows[begin:end]

    def tell(self, label: str, values: Sequence[float], nodes: Sequence[int] | None = None) -> None:
        """A number per scene, or for some of them, into the trace."""
        chosen = self.segments if nodes is None else tuple(self.segments[node] for node in nodes)
        emit(ScoresSet(label=label, segments=chosen, values=tuple(np.round(values, 4).tolist())))


def scene_graph(footage: Footage, rule: GraphRule, within: Segment | None = None) -> SceneGraph:
    """Lines 2 and 4: scenes with their vectors, and the graph over them."""
    rows = np.arange(len(footage.times)) if within is None else rows_within(footage, within)
    vectors = np.asarray(footage.embeddings()[rows], np.float32)
    spans = scenes.scenes(
        vectors, cut_off(footage, vectors, rule), shortest=rule.min_frames, longest=rule.max_frames
    )
    starts = footage.times[rows[[begin for begin, _ in spans]]].tolist()
    until = footage.duration if within is None else min(within.end, footage.duration)
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
    """The state vectors: Y, what was verified or presumed; F, what follows for every scene; v, what was visited."""

    def __init__(
        self,
        film: SceneGraph,
        presumed: NDArray[np.float64],
        rule: GraphRule,
        *,
        spread: bool = True,
    ) -> None:
        self._film, self._rule, self._spread = film, rule, spread
        self.injected = np.array(presumed, np.float64)
        self.field = self.injected.copy()
        self.open = np.ones(len(film), np.bool_)
        film.tell("belief", self.field.tolist())

    def inject(self, node: int, score: float) -> None:
        """Lines 23 and 24: Y_i ← s_i, v_i ← 1, and the belief follows."""
        self.injected[node] = score
        self.open[node] = False
        if self._spread:
            self.field = graph.diffuse(
                self._film.spreading,
                self.injected,
                self.field,
                beta=self._rule.beta,
                steps=self._rule.iterations,
            )
        else:
            self.field = self.injected.copy()
        self._film.tell("observed", [score], [node])
        self._film.tell("belief", self.field.tolist())
