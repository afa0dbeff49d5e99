"""VideoDetective (Yang, Wu, Shan, He and Fu, "VideoDetective: Clue Hunting via both Extrinsic Query and Intrinsic
Relevance for Long Video Understanding"), Algorithm 1::

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

Departures. Line 17 is printed in the branch in which M is empty; here a facet leaves M when its observation misses
nothing. Every observation costs a step. All anchors are observed side by side, which changes nothing, since line 7
does not depend on what was seen; an anchor that scores low is followed by its facet's next best scene, once. Then
facets take turns, each from its own latest scene; one whose neighbours were all visited goes to the scene closest to
the missing keyword. Y⁰ is the keyword–scene cosine alone, since eq. 5 adds cosines of two scales and would swamp
verified scores; eq. 5, with its parts brought to one scale, ranks anchors. Scenes of more than two minutes are divided.
Where observed scores tell nothing apart, frames are spread evenly. A question that names its place in the film is
searched there. Should a budget end the run, the option with the best evidence so far is proposed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from longtake.algorithms import clues, graph, sampling
from longtake.algorithms.asking import COUNTING, HEARING, ORDER, READING, negated
from longtake.algorithms.keyframes import FrameRule
from longtake.algorithms.scope import scope
from longtake.errors import check_least
from longtake.events import note, step
from longtake.footage.look import Look, look_at
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.methods.videodetective.belief import Belief, GraphRule, SceneGraph, scene_graph
from longtake.methods.videodetective.evidence import (
    Hunt,
    cited,
    leading,
    packed,
    told,
    told_by_option,
)
from longtake.methods.videodetective.facets import (
    Plan,
    decompose,
    described,
    event_cosines,
    keyword_cosines,
    timeline,
    whole,
)
from longtake.methods.videodetective.observing import Looking, Observation, Observer
from longtake.models.chat import Chat
from longtake.prompts import Plain
from longtake.steps.answer import guess
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.steps.showing import SPOKEN
from longtake.timecode import clock
from longtake.types import Answer, Line, Question

PRINTED = GraphRule(theta_sim=0.82, max_frames=None)
"""The graph as printed: θ on SigLIP's scale, and scenes of any length."""


@dataclass(frozen=True)
class VideoDetective:
    """Scenes as a graph: a few are observed, relevance spreads to the rest, the best go to the final call."""

    name: ClassVar[str] = "videodetective"
    paper: ClassVar[str] = (
        "VideoDetective: Clue Hunting via both Extrinsic Query and Intrinsic Relevance for Long Video Understanding"
    )
    roles: ClassVar[tuple[str, ...]] = ("llm", "vlm")
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
    }

    graph: GraphRule = field(default_factory=GraphRule)
    """Scenes and their graph."""
    looking: Looking = field(default_factory=Looking)
    """How a scene is observed, and its texts scored; ``looking.onscreen`` and ``looking.speech`` are channels."""
    picking: FrameRule = field(default_factory=FrameRule)
    """How final frames are chosen."""
    frames: int = 32
    """Frames of the timeline and of the final call (F)."""
    base_steps: int = 10
    """Observations (B) …"""
    steps_per_option: int = 1
    """… and how many more for each option beyond the fourth."""
    prior_weight: float = 0.5
    """Weight of keywords against events in a facet's anchor scores (α_route)."""
    retry_below: float = 0.2
    """Score under which an anchor is followed by its facet's next best scene; this and the thresholds of the fallback
    are on the scale of text cosines, and give way to an encoder's card that names its own."""
    packages: int = 8
    """Scenes that go to the final call (m)."""
    eta: float = 0.2
    """What is left of the belief in a selected scene's neighbours (η)."""
    min_uniform: int = 4
    """Final frames spread over the whole film …"""
    counting_uniform: int = 12
    """… how many more for counting …"""
    wide_uniform: int = 8
    """… and for questions of order, of text and of speech; with them at most ``frames`` − 8 in all."""
    fallback: bool = True
    """Spread final frames evenly where observed scores tell nothing apart."""
    fallback_max: float = 0.4
    """Highest score below which they do not …"""
    fallback_mean: float = 0.2
    """… mean score …"""
    fallback_gap: float = 0.15
    """… distance of the highest from the mean …"""
    fallback_low: float = 0.2
    """… and the score below which more than ``fallback_share`` of them lie."""
    fallback_share: float = 0.7
    """See ``fallback_low``."""
    max_facets: int = 5
    """Most facets of an open-ended question beside the question itself (ours)."""
    temporal_scope: bool = True
    """Search only where the question says: "in the first five minutes", "at the end"."""
    package_texts: Literal["best", "all"] = "best"
    """Of each scene the text with the highest relevance, as in eq. 14, or all that there are (ours)."""
    option_packs: bool = True
    """For "which is not" questions, tell what was found for each option."""
    printed_prior: bool = False
    """Eq. 5 to the letter, raw cosines, for anchors and for Y⁰."""
    vlm_tokens: int = 4096
    """Longest reply of the vision model; at most an eighth of its context."""
    llm_tokens: int = 2048
    """Longest reply of the language model, likewise."""
    decomposition: bool = True
    """Take the question apart; off (table 3), it is its only facet."""
    refinement: bool = True
    """Go on after the anchors; off (table 3), one observation for each facet."""
    propagation: bool = True
    """Diffuse relevance over the graph; off (table 3), belief is what was observed or presumed of the scene itself."""
    textual_evidence: bool = True
    """Tell the final call what was described, read and heard; off (table 3), frames alone."""
    optimized_sampling: bool = True
    """Take final frames from selected scenes; off (table 3), spread evenly, the texts being kept."""

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
        film = scene_graph(footage, self.graph, within)  # 2, 4
        with step("prepare", scenes=len(film)):
            hunt = self.prepare(footage, question, film, run)  # 3 to 6
        with step("hunt"):
            self.hunt(hunt, run)  # 7 to 25
        return self.conclude(hunt, run)  # 26

    def prepare(self, footage: Footage, question: Question, film: SceneGraph, run: Run) -> Hunt:
        """Lines 3 to 6: timeline and facets, asked for side by side, and what they let one presume of each scene."""
        uniform = film.rows[sampling.uniform(len(film.rows), self.frames)].tolist()

        def scan() -> list[Line]:
            look = look_at(footage, uniform)
            return timeline(
                run["vlm"], look, footage.duration, tokens=most_tokens(run["vlm"], self.vlm_tokens)
            )

        def parts() -> Plan:
            if not self.decomposition:
                return whole(question)
            tokens = most_tokens(run["llm"], self.llm_tokens)
            return decompose(
                run["llm"], question, footage.duration, most=self.max_facets, tokens=tokens
            )

        acts: list[Callable[[], Any]] = [scan, parts]
        events, plan = fanout(lambda act: act(), acts)
        texts = described(events, film.segments)  # 3
        keyword = keyword_cosines(footage, film.nodes, plan)
        event = event_cosines(footage, texts, plan, self.looking.piece_words)
        anchors = clues.prior(
            keyword, event, weight=self.prior_weight, printed=self.printed_prior
        )  # (5)
        presumed = (
            anchors.max(axis=0) if self.printed_prior else np.maximum(0.0, keyword.max(axis=0))
        )
        tokens = most_tokens(run["vlm"], self.vlm_tokens)
        observer = Observer(footage, question, plan, run["vlm"], self.looking, tokens)
        belief = Belief(film, presumed, self.graph, spread=self.propagation)  # 5
        return Hunt(footage, question, film, plan, observer, anchors, belief)

    def hunt(self, hunt: Hunt, run: Run) -> None:
        """Lines 7 to 25."""
        steps = self.steps(hunt.question)
        by_score = np.argsort(-hunt.anchors.max(axis=1), kind="stable").tolist()
        anchors = self.best_scenes(hunt, by_score)[:steps]  # 7
        hunt.film.tell(
            "anchors", [float(hunt.anchors[f, n]) for n, f in anchors], [n for n, _ in anchors]
        )
        self.verify(hunt, anchors, run, "anchor")
        if not self.refinement:
            return
        low = [
            facet
            for node, facet in anchors
            if hunt.seen[node].score < self.threshold(hunt.footage, "retry_below")
        ]
        self.verify(hunt, self.best_scenes(hunt, low)[: steps - len(hunt.seen)], run, "retry")
        turns = deque(hunt.unresolved())  # M
        while len(hunt.seen) < steps and hunt.belief.open.any():  # 8, 9
            facet = turns.popleft() if turns else None  # 13, 15
            node, why = self.hypothesis(hunt, facet)
            self.verify(hunt, [(node, facet or 0)], run, why)
            if facet is not None and hunt.latest[facet].needs_more:
                turns.append(facet)  # 17: otherwise it has left M

    def best_scenes(self, hunt: Hunt, facets: Sequence[int]) -> list[tuple[int, int]]:
        """Each facet's best unvisited scene; one that an earlier facet takes gives way to the next best."""
        found: list[tuple[int, int]] = []
        for facet in facets:
            node = hunt.next_best(facet, [n for n, _ in found])
            if node is not None:
                found.append((node, facet))
        return found

    def hypothesis(self, hunt: Hunt, facet: int | None) -> tuple[int, str]:
        """Lines 13 to 18: where to look next, and why there."""
        belief = hunt.belief
        if facet is not None and facet in hunt.latest:
            last = hunt.latest[facet]
            node = graph.strongest_neighbour(
                hunt.film.weights, last.node, belief.field, belief.open
            )  # (6)
            if node is not None:
                return node, "neighbour"
            if last.missing:
                closeness = hunt.film.nodes @ hunt.footage.encode([last.missing])[0]
                return int(np.where(belief.open, closeness, -np.inf).argmax()), "missing keyword"
        node = graph.most_believed(belief.field, belief.open)  # (7)
        assert node is not None  # the loop ends when all is visited
        return node, "highest belief"

    def verify(self, hunt: Hunt, picks: Sequence[tuple[int, int]], run: Run, why: str) -> None:
        """Lines 20 to 24, side by side for picks that do not depend on each other, taken in in their order."""

        def look(pick: tuple[int, int]) -> Observation:
            node, facet = pick
            return hunt.observer.observe(
                node, hunt.film.rows_of(node), hunt.film.segments[node], facet
            )  # 21

        for (node, facet), found in zip(picks, fanout(look, picks), strict=True):
            hunt.seen[node] = hunt.latest[facet] = found
            hunt.belief.inject(node, found.score)  # 23, 24
            note(
                "observed",
                step=len(hunt.seen),
                scene=node,
                why=why,
                facet=hunt.plan.facets[facet].name,
                score=round(found.score, 4),
                needs_more=found.needs_more,
                missing=found.missing,
            )
        if (best := leading(hunt)) is not None:
            run.propose(best)

    def conclude(self, hunt: Hunt, run: Run) -> Answer:
        """Line 26: scenes by Graph-NMS, their frames and texts, and the final call."""
        film, belief = hunt.film, hunt.belief.field
        chosen = graph.graph_nms(
            belief, hunt.anchors, film.weights, most=self.packages, eta=self.eta
        )
        film.tell("selected", [float(belief[node]) for node in chosen], chosen)
        doubt = self.distrust(hunt) if self.fallback else None
        if doubt is not None:
            note("fallback", why=doubt)
        nodes = chosen if doubt is None else sorted(hunt.seen)
        look = self.final_look(hunt, chosen if doubt is None and self.optimized_sampling else [])
        packages = packed(hunt, nodes) if self.textual_evidence else []
        odd = negated(hunt.question.text) and bool(hunt.question.options)
        notes = told(packages, every=self.package_texts == "all")
        if odd and self.option_packs and packages:
            notes = told_by_option(hunt, nodes)
        said = guess(
            run["vlm"],
            "videodetective/answer",
            hunt.question,
            frames=look.frames,
            seen=list(look.captions) or Plain(""),
            length=Plain(clock(hunt.footage.duration)),
            notes=notes or Plain("(none)"),
            plan=hunt.plan.timing or Plain("(nothing)"),
            criteria=Plain("The question asks for the one option that is NOT so." if odd else ""),
            temperature=0.0,
            max_tokens=most_tokens(run["vlm"], self.vlm_tokens),
        )
        return said.as_answer(
            evidence=() if said.abstained else cited(packages, look, hunt.footage)
        )

    def final_look(self, hunt: Hunt, nodes: Sequence[int]) -> Look:
        """Exactly ``frames`` moments, fewer only where the film has fewer; without scenes, spread evenly."""
        film, belief = hunt.film, hunt.belief.field
        if not nodes:
            return look_at(
                hunt.footage, film.rows[sampling.uniform(len(film.rows), self.frames)].tolist()
            )
        most = max(float(belief.max()), 1e-9)
        relevance = np.concatenate(
            [np.full(b - a, belief[n] / most) for n, (a, b) in enumerate(film.spans)]
        )
        best = [film.spans[node] for node in graph.in_order(nodes, belief)]
        uniform = self.uniform_frames(hunt.question)
        picked = self.picking(film.vectors, best, relevance, count=self.frames, uniform=uniform)
        return look_at(hunt.footage, film.rows[picked].tolist())

    def uniform_frames(self, question: Question) -> int:
        """How many of the final frames are spread over the whole film."""
        text = question.text
        wide = any(kind.search(text) for kind in (ORDER, READING, HEARING))
        more = self.counting_uniform if COUNTING.search(text) else self.wide_uniform if wide else 0
        return min(
            self.frames, self.min_uniform + min(more, max(0, self.frames - 8 - self.min_uniform))
        )

    def distrust(self, hunt: Hunt) -> str | None:
        """Why the observed scores tell nothing apart, if so."""
        limits = {
            name: self.threshold(hunt.footage, f"fallback_{field}")
            for name, field in {"peak": "max", "mean": "mean", "gap": "gap", "low": "low"}.items()
        }
        return clues.distrust(
            [seen.score for seen in hunt.seen.values()], **limits, share=self.fallback_share
        )

    def threshold(self, footage: Footage, name: str) -> float:
        """A threshold on scores of text, which an encoder's card may set for its own scale."""
        return float(footage.encoder.thresholds.get(name, getattr(self, name)))

    def steps(self, question: Question) -> int:
        """B: the most observations."""
        return self.base_steps + self.steps_per_option * max(0, len(question.options) - 4)

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Every step taken; scenes are observed one after another but for the anchors."""
        looks = self.steps(question)
        facets = 1 + len(question.options) if self.decomposition and question.options else 1
        if not self.refinement:
            looks = min(
                looks, facets if question.options or not self.decomposition else 1 + self.max_facets
            )
        asked, others = words([question.text, *question.options]), 1 + int(self.decomposition)
        side_by_side, told = min(facets, looks), max(looks, self.packages)
        # a scene tells what was said in it, all scenes together no more than what is said in the film
        longest = self.graph.max_frames or math.inf
        spoken = round(SPOKEN * min(duration, told * longest)) if self.looking.speech else 0
        written = 150 * (2 if self.package_texts == "all" else 1)
        # taken apart, a question is told again: as keywords, entities, an event, and what to look for
        parts = 100 + facets * 30 + 4 * asked if self.decomposition else 0
        return Bounds(
            calls=looks + others + 1,
            frames=looks * self.looking.window + 2 * self.frames,
            prompt_words=(looks + others + 1) * (asked + 200) + told * written + spoken,
            reply_words=self.frames * 50 + looks * 200 + parts + 200,
            steps=1 + (looks - side_by_side + min(1, side_by_side)) + 1,
        )


def most_tokens(chat: Chat, wanted: int) -> int:
    """Longest reply: as wanted, but no more than an eighth of what the model holds; the rest is for pictures."""
    return wanted if chat.card.context is None else min(wanted, chat.card.context // 8)
