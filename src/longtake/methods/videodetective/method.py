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

Departures. The paper prints line 17 in the branch where M is empty; here a facet leaves M when its
observation misses nothing. Every observation costs a step. All anchors are observed in parallel, as
line 7 does not depend on observations; after an anchor with a low score, its facet's next best
scene is observed, once. Then facets take turns, each from its latest scene; if all neighbours of
that scene were visited, the scene closest to the missing keyword is next. Y⁰ is the keyword–scene
cosine alone: eq. 5 adds cosines of two scales, whose sum would dominate verified scores. It ranks
anchors, with its parts rescaled. A short scene joins a neighbour by the product of their mean
vectors, as in the released code; the paper does not say how. Scenes of more than two minutes are
divided. If the observed scores do not single out scenes, frames are evenly spaced. A question that
names its place in the film is searched there. If the budget ends the run, the option with the most
evidence so far is proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from longtake.agents.answer import guess, shown_to
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.algorithms import sampling, scene_graph
from longtake.errors import check_least
from longtake.footage.look import Look, look_at, threshold
from longtake.footage.protocol import Footage
from longtake.llm.chat import Chat
from longtake.methods.videodetective import scores
from longtake.methods.videodetective.frames import FrameRule, with_focus
from longtake.methods.videodetective.notes import cited, leading, notes_by_option, notes_on, packed
from longtake.methods.videodetective.plan import (
    SearchPlan,
    decompose,
    described,
    event_cosines,
    keyword_cosines,
    timeline,
    whole,
)
from longtake.methods.videodetective.scenes import (
    Belief,
    GraphRule,
    Observer,
    ObserveRule,
    SceneGraph,
    build_graph,
)
from longtake.methods.videodetective.search import SceneSearch
from longtake.prompts import Plain, phrase
from longtake.retrieval.question_kinds import COUNTING, HEARING, ORDER, READING, negated
from longtake.retrieval.scope import scope
from longtake.tracing.events import note, step
from longtake.types import Answer, Line, Question

PRINTED = GraphRule(theta_sim=0.82, max_frames=None)
"""The graph as printed: θ on SigLIP's scale, and scenes of any length."""

SIGLIP = {"retry_below": 0.2, "fallback_max": 0.4, "fallback_mean": 0.2, "fallback_gap": 0.15}
"""Table 6: thresholds on text scores, on SigLIP's scale."""

LOW = 0.2
"""From the released code: a score below this is low, likewise."""


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
            **SIGLIP,
            "graph": PRINTED,
            "printed_prior": True,
            "temporal_scope": False,
            "option_packs": False,
            "counting_uniform": 0,
            "wide_uniform": 0,
            "fallback_share": 1.0,
        },
        "released": {
            **SIGLIP,
            "fallback_low": LOW,
            "graph": replace(PRINTED, diffused_prior=True),
            "looking": ObserveRule(ends=False),
            "picking": FrameRule(rule="released"),
            "order": "released",
            "events": "released",
            "temporal_scope": False,
        },
        "small": {"frames": 8, "base_steps": 4, "packages": 4},
    }

    # from the paper
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
    prior_weight: float = 0.5
    """Weight of keywords against events in a facet's anchor scores (α_route)."""
    packages: int = 8
    """Scenes that go to the final call (m)."""
    eta: float = 0.2
    """Share of belief that a selected scene's neighbours keep (η)."""
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
    """Include descriptions, text and speech in the final call; off (table 3): frames alone."""
    optimized_sampling: bool = True
    """Take final frames from selected scenes; off (table 3): evenly spaced, with the same texts."""
    steps_per_option: int = 1
    """Further observations for each option beyond the fourth."""
    retry_below: float | None = None
    """An anchor with a lower score is followed by its facet's next best scene. This and the
    thresholds of the fallback are on the scale of text cosines. Unset: the value on the encoder's
    card, else that of table 6, 0.2."""
    min_uniform: int = 4
    """Final frames spread over the whole film."""
    fallback: bool = True
    """Space the final frames evenly if the observed scores do not single out any scenes."""
    fallback_max: float | None = None
    """This is the case if the highest score is below this (0.4),"""
    fallback_mean: float | None = None
    """or the mean score is below this (0.2),"""
    fallback_gap: float | None = None
    """or the highest exceeds the mean by less than this (0.15)."""

    # ours, or from the released code
    counting_uniform: int = 12
    """Further uniform frames for counting questions."""
    wide_uniform: int = 8
    """Further uniform frames for questions about order, text or speech. In all, at most
    ``frames`` − 8 are uniform."""
    fallback_low: float | None = None
    """The fallback is also used if more than ``fallback_share`` of the scores are below this
    (0.2)."""
    fallback_share: float = 0.7
    """See ``fallback_low``."""
    max_facets: int = 5
    """Most facets of an open-ended question besides the question itself (ours)."""
    temporal_scope: bool = True
    """SceneSearch only where the question says: "in the first five minutes", "at the end"."""
    package_texts: Literal["best", "all"] = "best"
    """Include the most relevant text of each scene, as in eq. 14, or all of them (ours)."""
    option_packs: bool = True
    """For "which is not" questions, list what was found for each option."""
    printed_prior: bool = False
    """Use eq. 5 as printed, with raw cosines, for anchors and for Y⁰."""
    events: Literal["nearest", "released"] = "nearest"
    """Events of the timeline describe the scenes they overlap. A scene without any takes the
    nearest one; in the released code it has no description, and scenes end with their last frame.
    """
    order: Literal["facets", "released"] = "facets"
    """The order of observations: facets in turn along the graph, as in the paper, or the released
    code's. The latter also decides which scenes are sure of a place in the final call."""

    def __post_init__(self) -> None:
        uniform = {"min_uniform": 0, "counting_uniform": 0, "wide_uniform": 0}
        check_least(self, self.name, steps_per_option=0, **uniform)
        check_least(self.looking, f"{self.name}.looking", shortest_text=0)
        check_least(self.graph, f"{self.name}.graph", tau=1e-9, iterations=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Algorithm 1."""
        within = scope(question.text, footage.duration) if self.temporal_scope else None
        if within is not None:
            note("temporal_scope", start=within.start, end=within.end)
        scenes = build_graph(footage, self.graph, within)  # 2, 4
        with step("prepare", scenes=len(scenes)):
            search = self.prepare(footage, question, scenes, run)  # 3 to 6
        with step("hunt"):  # 7 to 25
            if self.order == "released":
                search.as_released(refinement=self.refinement)
            else:
                search.by_facets(refinement=self.refinement)
        return self.conclude(search, run)  # 26

    def prepare(
        self, footage: Footage, question: Question, scenes: SceneGraph, run: Run
    ) -> SceneSearch:
        """Lines 3 to 6: timeline and facets, asked for in parallel, and the prior scores."""
        vlm_tokens = most_tokens(run["vlm"], self.vlm_tokens)
        released = self.events == "released"

        def scan() -> list[Line]:
            spread = self.looking.spread(len(scenes.rows), self.frames)
            look = look_at(footage, scenes.rows[spread].tolist())
            return timeline(run["vlm"], footage, look, tokens=vlm_tokens, released=released)

        def plan_search() -> SearchPlan:
            if not self.decomposition:
                return whole(question)
            llm, tokens = run["llm"], most_tokens(run["llm"], self.llm_tokens)
            return decompose(
                llm, question, footage.duration, max_facets=self.max_facets, tokens=tokens
            )

        tasks: list[Callable[[], Any]] = [scan, plan_search]
        events, plan = fanout(lambda task: task(), tasks)
        segments = scenes.until_last_frame(footage) if released else scenes.segments
        texts = described(events, segments, nearest=not released)  # 3
        keyword = keyword_cosines(footage, scenes.nodes, plan)
        event = event_cosines(footage, texts, plan, self.looking.piece_words)
        anchors = scores.prior(
            keyword, event, weight=self.prior_weight, printed=self.printed_prior
        )  # (5)
        prior = np.maximum(0.0, keyword.max(axis=0))
        if self.printed_prior:
            prior = anchors.max(axis=0)

        def propose(search: SceneSearch) -> None:
            best = leading(search)
            if best is not None:
                run.propose(best)

        return SceneSearch(
            footage,
            question,
            scenes,
            plan,
            Observer(footage, question, plan, run["vlm"], self.looking, vlm_tokens),
            keyword,
            event,
            anchors,
            Belief(scenes, prior, self.graph, spread=self.propagation),  # 5
            self.steps(question),
            self.threshold(footage, "retry_below"),
            propose,
        )

    def conclude(self, search: SceneSearch, run: Run) -> Answer:
        """Line 26: scenes, their frames and texts, and the final call."""
        question = search.question
        selected = self.selected(search)
        values = [float(search.belief.field[node]) for node in selected]
        search.scenes.record("selected", values, selected)
        doubt = self.distrust(search) if self.fallback else None
        if doubt is not None:
            note("fallback", why=doubt)
        trusted = doubt is None
        # without trusted scores, the notes describe every observed scene
        nodes = list(dict.fromkeys(selected)) if trusted else sorted(search.seen)
        look = self.final_look(search, selected if trusted and self.optimized_sampling else [])
        packages = packed(search, nodes) if self.textual_evidence else []
        odd = negated(question.text) and bool(question.options)
        notes = notes_on(packages, every=self.package_texts == "all")
        if odd and self.option_packs and packages:
            notes = notes_by_option(search, nodes)
        answer = guess(
            run["vlm"],
            "videodetective/answer",
            question,
            notes=notes or phrase("videodetective", "no_notes"),
            plan=search.plan.timing or phrase("videodetective", "no_plan"),
            criteria=phrase("videodetective", "which_is_not") if odd else Plain(""),
            temperature=0.0,
            max_tokens=most_tokens(run["vlm"], self.vlm_tokens),
            **shown_to(search.footage, look),
        )
        evidence = () if answer.abstained else cited(packages, look, search.footage)
        return answer.as_answer(evidence=evidence)

    def selected(self, search: SceneSearch) -> list[int]:
        """The scenes of the final call: by Graph-NMS, after those that are sure of a place."""
        belief, weights = search.belief.field, search.scenes.weights
        if self.order == "facets":
            return scene_graph.graph_nms(
                belief, search.anchors, weights, max_scenes=self.packages, eta=self.eta
            )
        sure = list(search.best.values())  # a scene may be the best for two options
        of_question = search.question_scene()
        if of_question is not None and of_question not in sure:
            sure.append(of_question)
        room = max(0, self.packages - len(sure))
        # four more than needed, since some of them are chosen already
        more = scene_graph.graph_nms(
            belief, search.anchors[:0], weights, max_scenes=room + 4, eta=self.eta
        )
        return sure + [node for node in more if node not in sure][:room]

    def final_look(self, search: SceneSearch, nodes: Sequence[int]) -> Look:
        """The frames of the final call; without scenes, evenly spaced."""
        rows, question = search.scenes.rows, search.question
        released = self.picking.rule == "released"
        if nodes:
            pick = self.most_relevant if released else self.most_believed
            picked = pick(search, nodes, self.uniform_frames(question))
        elif released:
            picked = with_focus(question.text, len(rows), self.frames, search.footage.duration)
        else:
            picked = sampling.uniform(len(rows), self.frames).tolist()
        return look_at(search.footage, rows[picked].tolist())

    def most_believed(self, search: SceneSearch, nodes: Sequence[int], uniform: int) -> list[int]:
        """``frames`` moments, those of the scenes of highest belief first."""
        scenes, belief = search.scenes, search.belief.field
        # relevance is relative to the highest belief; without any, nothing is divided by zero
        highest = max(float(belief.max()), 1e-9)
        sizes = [end - begin for begin, end in scenes.spans]
        relevance = np.repeat(np.asarray(belief / highest, np.float64), sizes)
        by_belief = sorted(nodes, key=lambda node: (-float(belief[node]), node))
        best = [scenes.spans[node] for node in by_belief]
        return self.picking(scenes.vectors, best, relevance, count=self.frames, uniform=uniform)

    def most_relevant(self, search: SceneSearch, nodes: Sequence[int], uniform: int) -> list[int]:
        """At most ``frames`` moments; a frame is as relevant as it is close to a keyword."""
        scenes, footage, question = search.scenes, search.footage, search.question
        keyword = keyword_cosines(footage, scenes.vectors, search.plan).max(axis=0)
        return self.picking.as_released(
            scenes.vectors,
            [scenes.spans[node] for node in nodes],
            np.clip(keyword, 0.0, 1.0),
            count=self.frames,
            uniform=with_focus(question.text, len(scenes.rows), uniform, footage.duration),
            recalled=self.frames - uniform,
        )

    def uniform_frames(self, question: Question) -> int:
        """How many of the final frames are spread over the whole film."""
        extra = 0
        if COUNTING.search(question.text):
            extra = self.counting_uniform
        elif any(kind.search(question.text) for kind in (ORDER, READING, HEARING)):
            extra = self.wide_uniform
        # eight frames are left for the selected scenes
        room = max(0, self.frames - 8 - self.min_uniform)
        return min(self.frames, self.min_uniform + min(extra, room))

    def distrust(self, search: SceneSearch) -> str | None:
        """Why the observed scores cannot single out scenes; ``None`` if they can."""
        return scores.distrust(
            [observation.score for observation in search.seen.values()],
            peak=self.threshold(search.footage, "fallback_max"),
            mean=self.threshold(search.footage, "fallback_mean"),
            gap=self.threshold(search.footage, "fallback_gap"),
            low=self.threshold(search.footage, "fallback_low"),
            share=self.fallback_share,
        )

    def threshold(self, footage: Footage, name: str) -> float:
        """A threshold on text scores."""
        default = SIGLIP.get(name, LOW)
        return threshold(footage.encoder.thresholds, name, getattr(self, name), default)

    def steps(self, question: Question) -> int:
        """B: the most observations."""
        return self.base_steps + self.steps_per_option * max(0, len(question.options) - 4)


def most_tokens(chat: Chat, wanted: int) -> int:
    """The limit of a reply: at most an eighth of the context, to leave room for pictures."""
    return wanted if chat.card.context is None else min(wanted, chat.card.context // 8)
