"""Scenes: their graph, the belief that each is relevant (3.1, 3.2), and a close look (3.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake.agents.answer import captions_of
from longtake.algorithms import lexical, sampling, scene_graph, segmentation
from longtake.algorithms.segmentation import Likeness, Span
from longtake.footage.look import look_at, rows_within, threshold
from longtake.footage.protocol import Footage
from longtake.llm.chat import Chat
from longtake.llm.structured.ask import ask
from longtake.methods.videodetective import scores
from longtake.methods.videodetective.plan import SearchPlan
from longtake.prompts import words
from longtake.tracing.events import note_scores
from longtake.types import Line, Question, Segment

SCENE = "scene"
"""Name of the threshold θ_sim on an encoder's card."""

Sources: TypeAlias = dict[str, str]
"""Text by source: ``caption``, ``onscreen`` or ``speech``."""


class ReportReply(BaseModel):
    """What a look at a scene showed."""

    reasoning: str = Field(default="", description="one or two sentences")
    caption: str
    needs_more_info: bool
    missing_keyword: str = Field(default="", description="empty if nothing is missing")


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
    likeness: Likeness = "product"
    """Which neighbour: by the product of the mean vectors of two scenes, or by its cosine."""
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
    diffused_prior: bool = False
    """Also diffuse before the first observation, so that F⁰ is not Y⁰ (from the released code)."""


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
    weights: NDArray[np.float64]
    """W̃."""
    spreading: NDArray[np.float64]
    """W_norm."""

    def __len__(self) -> int:
        return len(self.spans)

    def rows_of(self, node: int) -> NDArray[np.int64]:
        """The rows of the grid in a scene."""
        begin, end = self.spans[node]
        return self.rows[begin:end]

    def until_last_frame(self, footage: Footage) -> list[Segment]:
        """The scenes as the released code has them: each ends with its last frame."""
        ends = [float(footage.times[self.rows[end - 1]]) for _, end in self.spans]
        return [Segment(scene.start, end) for scene, end in zip(self.segments, ends, strict=True)]

    def record(
        self, label: str, values: Sequence[float], nodes: Sequence[int] | None = None
    ) -> None:
        """Record a number for each scene, or for some of them, in the trace."""
        chosen = self.segments if nodes is None else tuple(self.segments[node] for node in nodes)
        note_scores(label, chosen, values)


def build_graph(footage: Footage, rule: GraphRule, within: Segment | None = None) -> SceneGraph:
    """Lines 2 and 4: the scenes with their vectors, and the graph over them."""
    rows = np.arange(len(footage.times)) if within is None else rows_within(footage, within)
    vectors = np.asarray(footage.embeddings()[rows], np.float32)
    # frames and texts are compared in one space, so scenes are cut in the same space
    theta = cut_off(footage, vectors, rule)
    spans = segmentation.scenes(
        vectors, theta, shortest=rule.min_frames, longest=rule.max_frames, likeness=rule.likeness
    )
    starts = footage.times[rows[[begin for begin, _ in spans]]].tolist()
    until = footage.duration if within is None else min(within.end, footage.duration)
    # scenes leave no gap: each ends where the next begins
    ends = [*starts[1:], max(until, starts[-1])]
    segments = tuple(Segment(a, b) for a, b in zip(starts, ends, strict=True))
    nodes = segmentation.scene_vectors(vectors, spans)
    centres = np.array([segment.middle for segment in segments])
    weights = scene_graph.affinity(nodes, centres, alpha=rule.alpha, tau=rule.tau, top=rule.top)
    return SceneGraph(
        rows, vectors, spans, segments, nodes, weights, scene_graph.normalise(weights)
    )


def cut_off(footage: Footage, vectors: NDArray[np.float32], rule: GraphRule) -> float:
    """θ_sim on this encoder's scale."""
    known = threshold(footage.encoder.thresholds, SCENE, rule.theta_sim, None)
    if known is not None:
        return known
    # an unknown encoder: its own distribution of similarities sets the threshold
    steps = segmentation.neighbours(vectors)
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
        if rule.diffused_prior:
            self._diffuse()
        scene_graph.record("belief", self.field.tolist())

    def inject(self, node: int, score: float) -> None:
        """Lines 23 and 24: Y_i ← s_i, v_i ← 1, and F is diffused again."""
        self.injected[node] = score
        self.open[node] = False
        self._diffuse()
        self._graph.record("observed", [score], [node])
        self._graph.record("belief", self.field.tolist())

    def _diffuse(self) -> None:
        if not self._spread:
            # Table 3 without propagation: scenes are independent
            self.field = self.injected.copy()
            return
        # starting from the last belief, a few iterations are enough
        self.field = scene_graph.diffuse(
            self._graph.spreading,
            self.injected,
            self.field,
            beta=self._rule.beta,
            steps=self._rule.iterations,
        )


@dataclass(frozen=True)
class SceneText:
    """A text from a scene, with its relevance to each facet."""

    source: str
    """``caption``, ``onscreen`` or ``speech``."""
    text: str
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """Its relevance to the facet it fits best."""
        return max(self.scores)


@dataclass(frozen=True)
class Observation:
    """The result of a look at a scene."""

    node: int
    texts: tuple[SceneText, ...]
    needs_more: bool = True
    missing: str = ""

    @property
    def score(self) -> float:
        """Eq. 11: s_i, the maximum over sources and facets."""
        return max((text.score for text in self.texts), default=0.0)

    @property
    def best(self) -> SceneText | None:
        """Eq. 14: the text with the highest relevance."""
        return max(self.texts, key=lambda text: text.score, default=None)

    def best_for(self, facet: int) -> SceneText | None:
        """The text that fits one facet best."""
        return max(self.texts, key=lambda text: text.scores[facet], default=None)


@dataclass(frozen=True)
class SourceWeights:
    """λ by source (table 7): the weight of shared words, against similarity of meaning."""

    onscreen: float = 0.7
    speech: float = 0.5
    caption: float = 0.3


@dataclass(frozen=True)
class ObserveRule:
    """How scenes are observed, and their texts scored."""

    window: int = 9
    """Frames shown of a scene."""
    ends: bool = True
    """Include the last frame of a scene, and that of the film in the timeline (the released code
    shows the first frames of equal stretches)."""
    onscreen: bool = True
    """Read text in the picture."""
    speech: bool = True
    """Use what is said."""
    shortest_text: int = 4
    """Fewest characters of on-screen text."""
    weights: SourceWeights = SourceWeights()
    z_lex: float = lexical.Z_LEX
    """Sum of word weights at which keywords are fully matched (Z_lex)."""
    piece_words: int = 50
    """Long texts are compared in pieces of this many words."""

    def spread(self, count: int, n: int) -> NDArray[np.int64]:
        """Which ``n`` of ``count`` frames are shown."""
        return sampling.uniform(count, n) if self.ends else sampling.starts(count, n)


@dataclass(frozen=True)
class Observer:
    """Observes scenes of one film for one question; safe to use from several threads."""

    footage: Footage
    question: Question
    plan: SearchPlan
    chat: Chat
    rule: ObserveRule
    tokens: int
    """Most tokens in a reply."""

    def observe(
        self, node: int, rows: NDArray[np.int64], segment: Segment, facet: int
    ) -> Observation:
        """OBSERVE(i, q, K_r, P_r): the texts of a scene, their relevance, and what is missing."""
        chosen = rows[self.rule.spread(len(rows), self.rule.window)]
        look = look_at(self.footage, chosen.tolist())
        focus = self.plan.facets[facet]
        report = ask(
            self.chat,
            "videodetective/observe",
            ReportReply,
            default=ReportReply(caption="", needs_more_info=True),
            temperature=0.0,
            max_tokens=self.tokens,
            frames=look.frames,
            seen=captions_of(look),
            question=self.question,
            asked=self.plan.asked,
            keywords=list(focus.keywords),
            events=list(focus.queries),
            stretch=segment,
        )
        # a model that needs nothing more may still name a keyword
        missing = report.missing_keyword.strip() if report.needs_more_info else ""
        sources: Sources = {"caption": report.caption.strip()}
        if self.rule.onscreen:
            sources["onscreen"] = _joined(self._read(rows))
        if self.rule.speech:
            sources["speech"] = _joined(self.footage.speech(segment))
        return Observation(node, self.rated(sources), report.needs_more_info, missing)

    def rated(self, sources: Sources) -> tuple[SceneText, ...]:
        """Eq. 8 to 10: every text scored against every facet."""
        rated = []
        for source, text in sources.items():
            if not text:
                continue
            lemmas = lexical.lemmas([text])
            # the time before a line is not part of its meaning
            pieces = scores.pieces(lexical.untimed(text), self.rule.piece_words)
            rows = self.footage.encode(pieces)
            weight = getattr(self.rule.weights, source)
            ratings = []
            for keywords, queries in self._facets:
                shared = lexical.overlap(lemmas, keywords, z=self.rule.z_lex)  # (8)
                alike = scores.semantic(rows, queries)  # (9)
                ratings.append(scores.source_aware(shared, alike, weight))  # (10)
            rated.append(SceneText(source, text, tuple(ratings)))
        return tuple(rated)

    @cached_property
    def _facets(self) -> list[tuple[frozenset[str], NDArray[np.float32]]]:
        """Keywords as lemmas and queries as vectors, computed once."""
        return [
            (lexical.lemmas(facet.keywords), self.footage.encode(facet.queries))
            for facet in self.plan.facets
        ]

    def _read(self, rows: NDArray[np.int64]) -> list[Line]:
        """The text in the first, the middle and the last frame, each once, with its first time."""
        lines: dict[str, Line] = {}
        # reading is slow, and most signs stay for the whole scene
        for row in sorted({int(rows[0]), int(rows[len(rows) // 2]), int(rows[-1])}):
            time = float(self.footage.times[row])
            for line in self.footage.onscreen(Segment(time, time + 1e-3)):
                text = line.text.strip()
                if len(text) >= self.rule.shortest_text:
                    lines.setdefault(text, Line(Segment(time, time), text))
        return list(lines.values())


def _joined(lines: Sequence[Line]) -> str:
    return " ".join(words(line) for line in lines)
