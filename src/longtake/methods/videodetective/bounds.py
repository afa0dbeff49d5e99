"""The most VideoDetective can use on a question: every step is taken."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longtake.methods.base import Bounds, words
from longtake.steps.showing import SPOKEN
from longtake.types import Question

if TYPE_CHECKING:
    from longtake.methods.videodetective.method import VideoDetective


def most(settings: VideoDetective, duration: float, question: Question) -> Bounds:
    """The bounds; scenes are observed one after another, except for the anchors."""
    looks = settings.steps(question)
    facets = 1 + len(question.options) if settings.decomposition and question.options else 1
    if not settings.refinement:
        open_ended = settings.decomposition and not question.options
        looks = min(looks, 1 + settings.max_facets if open_ended else facets)
    asked = words([question.text, *question.options])
    others = 1 + int(settings.decomposition)  # the timeline, and the decomposition
    parallel, told = min(facets, looks), max(looks, settings.packages)
    # a scene tells what was said in it; all scenes together tell at most what the film says
    longest = settings.graph.max_frames or math.inf
    spoken = round(SPOKEN * min(duration, told * longest)) if settings.looking.speech else 0
    written = 150 * (2 if settings.package_texts == "all" else 1)
    # a decomposition repeats the question: as keywords, entities, an event, and what to look for
    parts = 100 + facets * 30 + 4 * asked if settings.decomposition else 0
    calls = looks + others + 1
    return Bounds(
        calls=calls,
        frames=looks * settings.looking.window + 2 * settings.frames,
        prompt_words=calls * (asked + 200) + told * written + spoken,
        reply_words=settings.frames * 50 + looks * 200 + parts + 200,
        steps=1 + (looks - parallel + min(1, parallel)) + 1,
    )
