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
anchors, with its parts rescaled. Scenes of more than two minutes are divided. If the observed
scores do not single out scenes, frames are evenly spaced. A question that names its place in the
film is searched there. If the budget ends the run, the option with the most evidence so far is
proposed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from longtake.agents.answer import SPOKEN, guess, shown_to
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.algorithms import sampling, scene_graph
from longtake.algorithms.question_kinds import COUNTING, HEARING, ORDER, READING, negated
from longtake.algorithms.scene_graph import FrameRule
from longtake.algorithms.scope import scope
from longtake.errors import check_least
from longtake.footage.look import Look, look_at
from longtake.footage.protocol import Footage
from longtake.llm.chat import Chat
from longtake.methods.base import Bounds, words
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
    Observation,
    Observer,
    ObserveRule,
    SceneGraph,
    SceneText,
    build_graph,
)
from longtake.prompts import Plain, phrase
from longtake.tracing.events import note, step
from longtake.types import Answer, Evidence, Line, Question, Segment

PRINTED = GraphRule(theta_sim=0.82, max_frames=None)
"""The graph as printed: θ on SigLIP's scale, and scenes of any length."""

CITED = 3
"""Scenes cited for an answer."""

SOURCES = {"caption": "seen", "onscreen": "read_on_screen", "speech": "heard"}
"""The phrase that names the source of a text."""


@dataclass
class SearchState:
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

    def unresolved(self) -> list[int]:
        """M: facets that still miss something, or have no observation."""
        left = []
        for facet in range(len(self.plan.facets)):
            last = self.latest.get(facet)
            if last is None or last.needs_more:
                left.append(facet)
        return left


@dataclass(frozen=True)
class Package:
    """An observed scene, as described in the final call."""

    segment: Segment
    text: SceneText
    """The best of its texts."""
    others: tuple[SceneText, ...] = ()


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
    retry_below: float = 0.2
    """An anchor with a lower score is followed by its facet's next best scene. This and the
    thresholds of the fallback are on the scale of text cosines; an encoder's card may override
    them."""
    min_uniform: int = 4
    """Final frames spread over the whole film."""
    fallback: bool = True
    """Space the final frames evenly if the observed scores do not single out any scenes."""
    fallback_max: float = 0.4
    """This is the case if the highest score is below this,"""
    fallback_mean: float = 0.2
    """or the mean score is below this,"""
    fallback_gap: float = 0.15
    """or the highest exceeds the mean by less than this."""

    # ours, or from the released code
    counting_uniform: int = 12
    """Further uniform frames for counting questions."""
    wide_uniform: int = 8
    """Further uniform frames for questions about order, text or speech. In all, at most
    ``frames`` − 8 are uniform."""
    fallback_low: float = 0.2
    """The fallback is also used if more than ``fallback_share`` of the scores are below this."""
    fallback_share: float = 0.7
    """See ``fallback_low``."""
    max_facets: int = 5
    """Most facets of an open-ended question besides the question itself (ours)."""
    temporal_scope: bool = True
    """Search only where the question says: "in the first five minutes", "at the end"."""
    package_texts: Literal["best", "all"] = "best"
    """Include the most relevant text of each scene, as in eq. 14, or all of them (ours)."""
    option_packs: bool = True
    """For "which is not" questions, list what was found for each option."""
    printed_prior: bool = False
    """Use eq. 5 as printed, with raw cosines, for anchors and for Y⁰."""

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
            state = self.prepare(footage, question, scenes, run)  # 3 to 6
        with step("hunt"):
            self.search(state, run)  # 7 to 25
        return self.conclude(state, run)  # 26

    def prepare(
        self, footage: Footage, question: Question, scenes: SceneGraph, run: Run
    ) -> SearchState:
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
            return decompose(
                llm, question, footage.duration, max_facets=self.max_facets, tokens=tokens
            )

        tasks: list[Callable[[], Any]] = [scan, plan_search]
        events, plan = fanout(lambda task: task(), tasks)
        texts = described(events, scenes.segments)  # 3
        keyword = keyword_cosines(footage, scenes.nodes, plan)
        event = event_cosines(footage, texts, plan, self.looking.piece_words)
        weight = self.prior_weight
        anchors = scene_graph.prior(
            keyword, event, weight=weight, printed=self.printed_prior
        )  # (5)
        prior = np.maximum(0.0, keyword.max(axis=0))
        if self.printed_prior:
            prior = anchors.max(axis=0)
        observer = Observer(footage, question, plan, run["vlm"], self.looking, vlm_tokens)
        belief = Belief(scenes, prior, self.graph, spread=self.propagation)  # 5
        return SearchState(footage, question, scenes, plan, observer, anchors, belief)

    def search(self, state: SearchState, run: Run) -> None:
        """Lines 7 to 25."""
        steps = self.steps(state.question)
        by_score = np.argsort(-state.anchors.max(axis=1), kind="stable").tolist()
        anchors = self.best_scenes(state, by_score)[:steps]  # 7
        scores = [float(state.anchors[facet, node]) for node, facet in anchors]
        state.scenes.record("anchors", scores, [node for node, _ in anchors])
        self.verify(state, anchors, run, "anchor")
        if not self.refinement:
            return
        retry_below = self.threshold(state.footage, "retry_below")
        low = [facet for node, facet in anchors if state.seen[node].score < retry_below]
        self.verify(state, self.best_scenes(state, low)[: steps - len(state.seen)], run, "retry")
        turns = deque(state.unresolved())  # M
        while len(state.seen) < steps and state.belief.open.any():  # 8, 9
            facet = turns.popleft() if turns else None  # 13, 15
            node, why = self.hypothesis(state, facet)
            self.verify(state, [(node, facet or 0)], run, why)
            if facet is not None and state.latest[facet].needs_more:
                turns.append(facet)  # 17: otherwise it has left M

    def best_scenes(self, state: SearchState, facets: Sequence[int]) -> list[tuple[int, int]]:
        """Each facet's best unvisited scene that no earlier facet has taken."""
        free = state.belief.open.copy()
        picks: list[tuple[int, int]] = []
        for facet in facets:
            node = scene_graph.most_believed(state.anchors[facet], free)
            if node is not None:
                picks.append((node, facet))
                free[node] = False
        return picks

    def hypothesis(self, state: SearchState, facet: int | None) -> tuple[int, str]:
        """Lines 13 to 18: where to look next, and why there."""
        scenes, belief = state.scenes, state.belief
        if facet is not None and facet in state.latest:
            last = state.latest[facet]
            neighbour = scene_graph.strongest_neighbour(
                scenes.weights, last.node, belief.field, belief.open
            )  # (6)
            if neighbour is not None:
                return neighbour, "neighbour"
            if last.missing:
                closeness = scenes.nodes @ state.footage.encode([last.missing])[0]
                return int(np.where(belief.open, closeness, -np.inf).argmax()), "missing keyword"
        node = scene_graph.most_believed(belief.field, belief.open)  # (7)
        assert node is not None  # the loop ends when all scenes are visited
        return node, "highest belief"

    def verify(
        self, state: SearchState, picks: Sequence[tuple[int, int]], run: Run, why: str
    ) -> None:
        """Lines 20 to 24: observe independent picks in parallel, then apply them in their order."""

        def observe(pick: tuple[int, int]) -> Observation:
            node, facet = pick
            rows, segment = state.scenes.rows_of(node), state.scenes.segments[node]
            return state.observer.observe(node, rows, segment, facet)  # 21

        for (node, facet), seen in zip(picks, fanout(observe, picks), strict=True):
            state.seen[node] = state.latest[facet] = seen
            state.belief.inject(node, seen.score)  # 23, 24
            note(
                "observed",
                step=len(state.seen),
                scene=node,
                why=why,
                facet=state.plan.facets[facet].name,
                score=round(seen.score, 4),
                needs_more=seen.needs_more,
                missing=seen.missing,
            )
        best = leading(state)
        if best is not None:
            run.propose(best)

    def conclude(self, state: SearchState, run: Run) -> Answer:
        """Line 26: scenes by Graph-NMS, their frames and texts, and the final call."""
        belief, question = state.belief.field, state.question
        selected = scene_graph.graph_nms(
            belief, state.anchors, state.scenes.weights, max_scenes=self.packages, eta=self.eta
        )
        state.scenes.record("selected", [float(belief[node]) for node in selected], selected)
        doubt = self.distrust(state) if self.fallback else None
        if doubt is not None:
            note("fallback", why=doubt)
        trusted = doubt is None
        # without trusted scores, the notes describe every observed scene
        nodes = selected if trusted else sorted(state.seen)
        look = self.final_look(state, selected if trusted and self.optimized_sampling else [])
        packages = packed(state, nodes) if self.textual_evidence else []
        odd = negated(question.text) and bool(question.options)
        notes = notes_on(packages, every=self.package_texts == "all")
        if odd and self.option_packs and packages:
            notes = notes_by_option(state, nodes)
        answer = guess(
            run["vlm"],
            "videodetective/answer",
            question,
            notes=notes or phrase("videodetective", "no_notes"),
            plan=state.plan.timing or phrase("videodetective", "no_plan"),
            criteria=phrase("videodetective", "which_is_not") if odd else Plain(""),
            temperature=0.0,
            max_tokens=most_tokens(run["vlm"], self.vlm_tokens),
            **shown_to(state.footage, look),
        )
        return answer.as_answer(
            evidence=() if answer.abstained else cited(packages, look, state.footage)
        )

    def final_look(self, state: SearchState, nodes: Sequence[int]) -> Look:
        """``frames`` moments, or all if the film has fewer; without scenes, evenly spaced."""
        scenes, belief = state.scenes, state.belief.field
        if not nodes:
            spread = sampling.uniform(len(scenes.rows), self.frames)
            return look_at(state.footage, scenes.rows[spread].tolist())
        # relevance is relative to the highest belief; without any, nothing is divided by zero
        highest = max(float(belief.max()), 1e-9)
        sizes = [end - begin for begin, end in scenes.spans]
        relevance = np.repeat(np.asarray(belief / highest, np.float64), sizes)
        by_belief = sorted(nodes, key=lambda node: (-float(belief[node]), node))
        best = [scenes.spans[node] for node in by_belief]
        uniform = self.uniform_frames(state.question)
        picked = self.picking(scenes.vectors, best, relevance, count=self.frames, uniform=uniform)
        return look_at(state.footage, scenes.rows[picked].tolist())

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

    def distrust(self, state: SearchState) -> str | None:
        """Why the observed scores cannot single out scenes; ``None`` if they can."""
        return scene_graph.distrust(
            [observation.score for observation in state.seen.values()],
            peak=self.threshold(state.footage, "fallback_max"),
            mean=self.threshold(state.footage, "fallback_mean"),
            gap=self.threshold(state.footage, "fallback_gap"),
            low=self.threshold(state.footage, "fallback_low"),
            share=self.fallback_share,
        )

    def threshold(self, footage: Footage, name: str) -> float:
        """A threshold on text scores; the encoder's card may set it for its own scale."""
        return float(footage.encoder.thresholds.get(name, getattr(self, name)))

    def steps(self, question: Question) -> int:
        """B: the most observations."""
        return self.base_steps + self.steps_per_option * max(0, len(question.options) - 4)

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Every step is taken."""
        observations = self.steps(question)
        facets = 1 + len(question.options) if self.decomposition and question.options else 1
        if not self.refinement:
            open_ended = self.decomposition and not question.options
            observations = min(observations, 1 + self.max_facets if open_ended else facets)
        question_words = words([question.text, *question.options])
        others = 1 + int(self.decomposition)  # the timeline, and the decomposition
        described_scenes = max(observations, self.packages)
        # the notes on a scene include its speech, and together at most that of the whole film
        longest = self.graph.max_frames or math.inf
        heard_seconds = min(duration, described_scenes * longest)
        spoken = round(SPOKEN * heard_seconds) if self.looking.speech else 0
        written = 150 * (2 if self.package_texts == "all" else 1)
        # a decomposition repeats the question: keywords, entities, an event, what to look for
        parts = 100 + facets * 30 + 4 * question_words if self.decomposition else 0
        calls = observations + others + 1
        return Bounds(
            calls=calls,
            frames=observations * self.looking.window + 2 * self.frames,
            prompt_words=calls * (question_words + 200) + described_scenes * written + spoken,
            reply_words=self.frames * 50 + observations * 200 + parts + 200,
        )


def packed(state: SearchState, nodes: Sequence[int]) -> list[Package]:
    """The scenes that have a text, in time order; the others are shown as frames alone."""
    packages = []
    for node in sorted(nodes):
        best = state.seen[node].best if node in state.seen else None
        if best is not None:
            others = tuple(text for text in state.seen[node].texts if text is not best)
            packages.append(Package(state.scenes.segments[node], best, others))
    return packages


def notes_on(packages: Sequence[Package], *, every: bool = False) -> list[str]:
    """The packages in words, one line each; with ``every``, one line per text."""
    lines = []
    for package in packages:
        lines.append(note_line(package.segment, package.text))
        if every:
            lines += [note_line(package.segment, text) for text in package.others]
    return lines


def notes_by_option(state: SearchState, nodes: Sequence[int]) -> list[str]:
    """For each option, the text that fits it best, or that nothing was observed for it."""
    lines = []
    for facet, parts in enumerate(state.plan.facets):
        if parts.name not in state.question.letters:
            continue
        letter = Plain(parts.name)
        best: dict[int, SceneText] = {}
        for node in nodes:
            text = state.seen[node].best_for(facet) if node in state.seen else None
            if text is not None:
                best[node] = text
        if best:
            # ties go to the earlier scene
            node = max(best, key=lambda node: (best[node].scores[facet], -node))
            text_line = note_line(state.scenes.segments[node], best[node])
            lines.append(phrase("videodetective", "option_note", letter=letter, note=text_line))
        else:
            lines.append(phrase("videodetective", "option_not_observed", letter=letter))
    return lines


def note_line(segment: Segment, text: SceneText) -> str:
    """``00:10:00 to 00:10:40, seen: …``."""
    source = phrase("videodetective", SOURCES[text.source])
    words_of_text = " ".join(text.text.split())
    return phrase("videodetective", "note", segment=segment, source=source, text=words_of_text)


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


def leading(state: SearchState) -> Answer | None:
    """The option with the most evidence so far, or the least for "which is not" questions."""
    support = {}
    for facet, parts in enumerate(state.plan.facets):
        if parts.name in state.question.letters:
            texts = [text for observation in state.seen.values() for text in observation.texts]
            support[parts.name] = max((text.scores[facet] for text in texts), default=0.0)
    if not any(support.values()):
        return None
    odd = negated(state.question.text)
    choose = min if odd else max
    letter = choose(support, key=lambda name: support[name])
    reason = f"Of what was observed so far, {'least' if odd else 'most'} speaks for it."
    packages = packed(state, list(state.seen))
    return Answer(letter, reason=reason, evidence=tuple(cited(packages, Look(()), state.footage)))


def most_tokens(chat: Chat, wanted: int) -> int:
    """The limit of a reply: at most an eighth of the context, to leave room for pictures."""
    return wanted if chat.card.context is None else min(wanted, chat.card.context // 8)
