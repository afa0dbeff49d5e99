"""The final call (line 26): selected scenes, their frames and texts, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from longtake.algorithms import clues, graph, sampling
from longtake.algorithms.asking import COUNTING, HEARING, ORDER, READING, negated
from longtake.events import note
from longtake.footage.look import Look, look_at
from longtake.methods.videodetective.evidence import Hunt, cited, notes_by_option, notes_on, packed
from longtake.models.chat import Chat
from longtake.prompts import Plain, phrase
from longtake.steps.answer import guess
from longtake.steps.run import Run
from longtake.steps.showing import shown_to
from longtake.types import Answer, Question

if TYPE_CHECKING:
    from longtake.methods.videodetective.method import VideoDetective


def conclude(settings: VideoDetective, hunt: Hunt, run: Run) -> Answer:
    """Line 26: scenes by Graph-NMS, their frames and texts, and the final call."""
    belief, question = hunt.belief.field, hunt.question
    selected = graph.graph_nms(
        belief, hunt.anchors, hunt.scenes.weights, most=settings.packages, eta=settings.eta
    )
    hunt.scenes.tell("selected", [float(belief[node]) for node in selected], selected)
    doubt = distrust(settings, hunt) if settings.fallback else None
    if doubt is not None:
        note("fallback", why=doubt)
    trusted = doubt is None
    # scores that distinguish nothing select nothing: every observed scene is told of
    nodes = selected if trusted else sorted(hunt.seen)
    look = final_look(settings, hunt, selected if trusted and settings.optimized_sampling else [])
    packages = packed(hunt, nodes) if settings.textual_evidence else []
    odd = negated(question.text) and bool(question.options)
    notes = notes_on(packages, every=settings.package_texts == "all")
    if odd and settings.option_packs and packages:
        notes = notes_by_option(hunt, nodes)
    said = guess(
        run["vlm"],
        "videodetective/answer",
        question,
        notes=notes or phrase("videodetective", "no_notes"),
        plan=hunt.plan.timing or phrase("videodetective", "no_plan"),
        criteria=phrase("videodetective", "which_is_not") if odd else Plain(""),
        rotated=not odd,  # notes by option name their letters
        temperature=0.0,
        max_tokens=most_tokens(run["vlm"], settings.vlm_tokens),
        **shown_to(hunt.footage, look),
    )
    return said.as_answer(evidence=() if said.abstained else cited(packages, look, hunt.footage))


def final_look(settings: VideoDetective, hunt: Hunt, nodes: Sequence[int]) -> Look:
    """Exactly ``frames`` moments, or all if the film has fewer; without scenes, evenly spaced."""
    scenes, belief = hunt.scenes, hunt.belief.field
    if not nodes:
        spread = sampling.uniform(len(scenes.rows), settings.frames)
        return look_at(hunt.footage, scenes.rows[spread].tolist())
    # relevance is relative to the highest belief; without any, nothing is divided by zero
    highest = max(float(belief.max()), 1e-9)
    sizes = [end - begin for begin, end in scenes.spans]
    relevance = np.repeat(np.asarray(belief / highest, np.float64), sizes)
    best = [scenes.spans[node] for node in graph.in_order(nodes, belief)]
    uniform = uniform_frames(settings, hunt.question)
    picked = settings.picking(
        scenes.vectors, best, relevance, count=settings.frames, uniform=uniform
    )
    return look_at(hunt.footage, scenes.rows[picked].tolist())


def uniform_frames(settings: VideoDetective, question: Question) -> int:
    """How many of the final frames are spread over the whole film."""
    extra = 0
    if COUNTING.search(question.text):
        extra = settings.counting_uniform
    elif any(kind.search(question.text) for kind in (ORDER, READING, HEARING)):
        extra = settings.wide_uniform
    # eight frames are left for the selected scenes
    room = max(0, settings.frames - 8 - settings.min_uniform)
    return min(settings.frames, settings.min_uniform + min(extra, room))


def distrust(settings: VideoDetective, hunt: Hunt) -> str | None:
    """Why the observed scores distinguish nothing, if they do not."""
    return clues.distrust(
        [observation.score for observation in hunt.seen.values()],
        peak=settings.threshold(hunt.footage, "fallback_max"),
        mean=settings.threshold(hunt.footage, "fallback_mean"),
        gap=settings.threshold(hunt.footage, "fallback_gap"),
        low=settings.threshold(hunt.footage, "fallback_low"),
        share=settings.fallback_share,
    )


def most_tokens(chat: Chat, wanted: int) -> int:
    """Most tokens in a reply: at most an eighth of the context; the rest is for pictures."""
    return wanted if chat.card.context is None else min(wanted, chat.card.context // 8)
