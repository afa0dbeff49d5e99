"""VideoDetective, Algorithm 1.

Yang, Wu, Shan, He and Fu, "VideoDetective: Clue Hunting via both Extrinsic Query and Intrinsic
Relevance for Long Video Understanding"::

     2  the film in K scenes c_i with features h_i
     3  a timeline of the film, and from it a description e_i of each scene
     4  the affinity graph W; the question in facets (K_r, P_r)
     5  Y⁰ ← prior scores; F⁰ ← Y⁰
     6  M ← all facets; v ← 0
     7  each facet's anchor i* ← arg max_i (Y_r)_i
     8  for t = 1 … B
     9      if M = ∅ and all is visited
    10          break
    13      if M ≠ ∅                                             hypothesis
    14          i* ← arg max over unvisited neighbours j of i* of W̃_i*j · F_j     (6)
    15          for a facet r of M
    17      else, once what r misses was found and r left M
    18          i* ← arg max_j F_j (1 − v_j)                                       (7)
    21      (s, need_more) ← Observe(i*, q, K_r, P_r)            verification
    23      Y_i* ← s; v_i* ← 1                                   refinement
    24      F ← Diffuse(Y, W)
    26  S ← GraphNMS(F); return MLLM(S, q)

Departures. Line 17 is printed in the branch in which M is empty; here a facet leaves M when its
observation misses nothing. Every observation costs a step. All anchors are observed in parallel,
which changes nothing, since line 7 does not depend on what was seen; an anchor with a low score is
followed by its facet's next best scene, once. Then facets take turns, each from its own latest
scene; one whose neighbours were all visited goes to the scene closest to the missing keyword. Y⁰ is
the keyword–scene cosine alone, since eq. 5 adds cosines of two scales and would swamp verified
scores; eq. 5, with its parts brought to one scale, ranks anchors. Scenes of more than two minutes
are divided. If observed scores distinguish nothing, frames are evenly spaced. A question that names
its place in the film is searched there. If the budget ends the run, the option with the most
evidence so far is proposed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from longtake.algorithms import clues, graph, sampling
from longtake.algorithms.keyframes import FrameRule
from longtake.algorithms.scope import scope
from longtake.errors import check_least
from longtake.events import note, step
from longtake.footage.look import look_at
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds
from longtake.methods.videodetective.answering import conclude, most_tokens
from longtake.methods.videodetective.belief import Belief, GraphRule, SceneGraph, scene_graph
from longtake.methods.videodetective.bounds import most
from longtake.methods.videodetective.evidence import Hunt, leading
from longtake.methods.videodetective.facets import SearchPlan, decompose, keyword_cosines, whole
from longtake.methods.videodetective.observing import Observation, Observer, ObserveRule
from longtake.methods.videodetective.timeline import described, event_cosines, timeline
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.types import Answer, Line, Question

PRINTED = GraphRule(theta_sim=0.82, max_frames=None)
"""The graph as printed: θ on SigLIP's scale, and scenes of any length."""


@dataclass(frozen=True)
class VideoDetective:
    """Scenes as a graph: some are observed, relevance spreads, and the best decide the answer."""

    name: ClassVar[str] = "videodetective"
    paper: ClassVar[str] = (
        "VideoDetective: Clue Hunting via both Extrinsic Query and Intrinsic Relevance "
        "for Long Video Understanding"
    )
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm")
    needs_index: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "graph": PRINTED,
            "printed_prior": True,
            "temporal_scope": False,
            "option_packs": False,
            "counting_uniform": 0,
            "wide_uniform": 0,
            "fallback_share": 1.0,
        },
        "released": {"graph": PRINTED},
        "small": {"frames": 8, "base_steps": 4, "packages": 4},
    }

    graph: GraphRule = field(default_factory=GraphRule)
    """Scenes and their graph."""
    looking: ObserveRule = field(default_factory=ObserveRule)
    """How a scene is observed, and its texts scored; ``looking.onscreen`` and ``looking.speech``
    switch channels on and off."""
    picking: FrameRule = field(default_factory=FrameRule)
    """How final frames are chosen."""
    frames: int = 32
    """Frames in the timeline and in the final call (F)."""
    base_steps: int = 10
    """Most observations (B) for up to four options."""
    steps_per_option: int = 1
    """Further observations for each option beyond the fourth."""
    prior_weight: float = 0.5
    """Weight of keywords against events in a facet's anchor scores (α_route)."""
    retry_below: float = 0.2
    """An anchor with a lower score is followed by its facet's next best scene. This and the
    thresholds of the fallback are on the scale of text cosines; an encoder's card may override
    them."""
    packages: int = 8
    """Scenes that go to the final call (m)."""
    eta: float = 0.2
    """Share of belief that a selected scene's neighbours keep (η)."""
    min_uniform: int = 4
    """Final frames spread over the whole film."""
    counting_uniform: int = 12
    """Further uniform frames for counting questions."""
    wide_uniform: int = 8
    """Further uniform frames for questions about order, text or speech. In all, at most
    ``frames`` − 8 are uniform."""
    fallback: bool = True
    """Space the final frames evenly if the observed scores distinguish nothing."""
    fallback_max: float = 0.4
    """They do not if the highest score is below this,"""
    fallback_mean: float = 0.2
    """or the mean score is below this,"""
    fallback_gap: float = 0.15
    """or the highest exceeds the mean by less than this,"""
    fallback_low: float = 0.2
    """or more than ``fallback_share`` of the scores are below this."""
    fallback_share: float = 0.7
    """See ``fallback_low``."""
    max_facets: int = 5
    """Most facets of an open-ended question besides the question itself (ours)."""
    temporal_scope: bool = True
    """Search only where the question says: "in the first five minutes", "at the end"."""
    package_texts: Literal["best", "all"] = "best"
    """Tell the most relevant text of each scene, as in eq. 14, or all of them (ours)."""
    option_packs: bool = True
    """For "which is not" questions, tell what was found for each option."""
    printed_prior: bool = False
    """Use eq. 5 as printed, with raw cosines, for anchors and for Y⁰."""
    vlm_tokens: int = 4096
    """Most tokens in a reply of the vision model; at most an eighth of its context."""
    llm_tokens: int = 2048
    """Most tokens in a reply of the language model, likewise."""
    decomposition: bool = True
    """Decompose the question; off (table 3): it is the only facet."""
    refinement: bool = True
    """Continue after the anchors; off (table 3): one observation per facet."""
    propagation: bool = True
    """Diffuse relevance over the graph; off (table 3): belief is what was observed or assumed of
    the scene itself."""
    textual_evidence: bool = True
    """Tell the final call what was described, read and heard; off (table 3): frames alone."""
    optimized_sampling: bool = True
    """Take final frames from selected scenes; off (table 3): evenly spaced, with the same texts."""

    def __post_init__(self) -> None:
        check_least(
            self,
            self.name,
            frames=1,
            base_steps=1,
            steps_per_option=0,
            packages=1,
            min_uniform=0,
            counting_uniform=0,
            wide_uniform=0,
            max_facets=1,
            vlm_tokens=1,
            llm_tokens=1,
        )
        check_least(self.looking, f"{self.name}.looking", window=1, piece_words=1)
        check_least(self.graph, f"{self.name}.graph", min_frames=1, tau=1e-9, top=1, iterations=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Algorithm 1."""
        within = scope(question.text, footage.duration) if self.temporal_scope else None
        if within is not None:
            note("temporal_scope", start=within.start, end=within.end)
        scenes = scene_graph(footage, self.graph, within)  # 2, 4
        with step("prepare", scenes=len(scenes)):
            hunt = self.prepare(footage, question, scenes, run)  # 3 to 6
        with step("hunt"):
            self.hunt(hunt, run)  # 7 to 25
        return conclude(self, hunt, run)  # 26

    def prepare(self, footage: Footage, question: Question, scenes: SceneGraph, run: Run) -> Hunt:
        """Lines 3 to 6: timeline and facets, asked for in parallel, and the prior scores."""
        vlm_tokens = most_tokens(run["vlm"], self.vlm_tokens)

        def scan() -> list[Line]:
            spread = sampling.uniform(len(scenes.rows), self.frames)
            look = look_at(footage, scenes.rows[spread].tolist())
            return timeline(run["vlm"], footage, look, tokens=vlm_tokens)

        def plan_search() -> SearchPlan:
            if not self.decomposition:
                return whole(question)
            llm, tokens = run["llm"], most_tokens(run["llm"], self.llm_tokens)
            return decompose(llm, question, footage.duration, most=self.max_facets, tokens=tokens)

        tasks: list[Callable[[], Any]] = [scan, plan_search]
        events, plan = fanout(lambda task: task(), tasks)
        texts = described(events, scenes.segments)  # 3
        keyword = keyword_cosines(footage, scenes.nodes, plan)
        event = event_cosines(footage, texts, plan, self.looking.piece_words)
        weight = self.prior_weight
        anchors = clues.prior(keyword, event, weight=weight, printed=self.printed_prior)  # (5)
        prior = np.maximum(0.0, keyword.max(axis=0))
        if self.printed_prior:
            prior = anchors.max(axis=0)
        observer = Observer(footage, question, plan, run["vlm"], self.looking, vlm_tokens)
        belief = Belief(scenes, prior, self.graph, spread=self.propagation)  # 5
        return Hunt(footage, question, scenes, plan, observer, anchors, belief)

    def hunt(self, hunt: Hunt, run: Run) -> None:
        """Lines 7 to 25."""
        steps = self.steps(hunt.question)
        by_score = np.argsort(-hunt.anchors.max(axis=1), kind="stable").tolist()
        anchors = self.best_scenes(hunt, by_score)[:steps]  # 7
        scores = [float(hunt.anchors[facet, node]) for node, facet in anchors]
        hunt.scenes.tell("anchors", scores, [node for node, _ in anchors])
        self.verify(hunt, anchors, run, "anchor")
        if not self.refinement:
            return
        least = self.threshold(hunt.footage, "retry_below")
        low = [facet for node, facet in anchors if hunt.seen[node].score < least]
        self.verify(hunt, self.best_scenes(hunt, low)[: steps - len(hunt.seen)], run, "retry")
        turns = deque(hunt.unresolved())  # M
        while len(hunt.seen) < steps and hunt.belief.open.any():  # 8, 9
            facet = turns.popleft() if turns else None  # 13, 15
            node, why = self.hypothesis(hunt, facet)
            self.verify(hunt, [(node, facet or 0)], run, why)
            if facet is not None and hunt.latest[facet].needs_more:
                turns.append(facet)  # 17: otherwise it has left M

    def best_scenes(self, hunt: Hunt, facets: Sequence[int]) -> list[tuple[int, int]]:
        """Each facet's best unvisited scene that no earlier facet has taken."""
        picks: list[tuple[int, int]] = []
        for facet in facets:
            node = hunt.next_best(facet, [taken for taken, _ in picks])
            if node is not None:
                picks.append((node, facet))
        return picks

    def hypothesis(self, hunt: Hunt, facet: int | None) -> tuple[int, str]:
        """Lines 13 to 18: where to look next, and why there."""
        scenes, belief = hunt.scenes, hunt.belief
        if facet is not None and facet in hunt.latest:
            last = hunt.latest[facet]
            neighbour = graph.strongest_neighbour(
                scenes.weights, last.node, belief.field, belief.open
            )  # (6)
            if neighbour is not None:
                return neighbour, "neighbour"
            if last.missing:
                closeness = scenes.nodes @ hunt.footage.encode([last.missing])[0]
                return int(np.where(belief.open, closeness, -np.inf).argmax()), "missing keyword"
        node = graph.most_believed(belief.field, belief.open)  # (7)
        assert node is not None  # the loop ends when all scenes are visited
        return node, "highest belief"

    def verify(self, hunt: Hunt, picks: Sequence[tuple[int, int]], run: Run, why: str) -> None:
        """Lines 20 to 24: observe independent picks in parallel, then apply them in their order."""

        def observe(pick: tuple[int, int]) -> Observation:
            node, facet = pick
            rows, segment = hunt.scenes.rows_of(node), hunt.scenes.segments[node]
            return hunt.observer.observe(node, rows, segment, facet)  # 21

        for (node, facet), seen in zip(picks, fanout(observe, picks), strict=True):
            hunt.seen[node] = hunt.latest[facet] = seen
            hunt.belief.inject(node, seen.score)  # 23, 24
            note(
                "observed",
                step=len(hunt.seen),
                scene=node,
                why=why,
                facet=hunt.plan.facets[facet].name,
                score=round(seen.score, 4),
                needs_more=seen.needs_more,
                missing=seen.missing,
            )
        best = leading(hunt)
        if best is not None:
            run.propose(best)

    def threshold(self, footage: Footage, name: str) -> float:
        """A threshold on text scores; the encoder's card may set it for its own scale."""
        return float(footage.encoder.thresholds.get(name, getattr(self, name)))

    def steps(self, question: Question) -> int:
        """B: the most observations."""
        return self.base_steps + self.steps_per_option * max(0, len(question.options) - 4)

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Every step is taken; scenes are observed one after another, except for the anchors."""
        return most(self, duration, question)
