"""What roughly happens in the film: a timeline, and a description of each scene (line 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.clues import pieces, semantic
from longtake.errors import ConfigError
from longtake.events import note
from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.methods.videodetective.facets import SearchPlan
from longtake.methods.videodetective.replies import TimelineReply
from longtake.models.chat import Chat
from longtake.steps.ask import ask
from longtake.steps.showing import shown_to
from longtake.timecode import parse_time
from longtake.types import Line, Segment


def timeline(chat: Chat, footage: Footage, look: Look, *, tokens: int) -> list[Line]:
    """The events of a film that a vision model sees in a few frames; none if it is unreadable."""
    reply = ask(
        chat,
        "videodetective/timeline",
        TimelineReply,
        default=TimelineReply(events=[]),
        temperature=0.0,
        max_tokens=tokens,
        **shown_to(footage, look),
    )
    duration = footage.duration
    events = []
    for event in reply.events:
        try:
            start, end = parse_time(event.start), parse_time(event.end)
        except ConfigError as error:
            note("event_dropped", why=str(error))
            continue
        text = event.description.strip()
        if start > duration:
            note("event_dropped", why="it lies outside the film")
        elif not text:
            note("event_dropped", why="it says nothing")
        else:
            events.append(Line(Segment(start, max(start, min(end, duration))), text))
    return events


def described(events: Sequence[Line], segments: Sequence[Segment]) -> list[str]:
    """e_i: the events that overlap each scene, joined; if none does, the nearest event."""
    if not events:
        return [""] * len(segments)
    texts = []
    for scene in segments:
        inside = []
        for event in events:
            # an event of no length overlaps nothing, but it lies in a scene
            if event.segment.overlap(scene) > 0 or event.segment.start in scene:
                inside.append(event.text)
        nearest = min(events, key=lambda event: abs(event.segment.middle - scene.middle))
        texts.append(" ".join(inside) or nearest.text)
    return texts


def event_cosines(
    footage: Footage, descriptions: Sequence[str], plan: SearchPlan, words: int
) -> NDArray[np.float64]:
    """max_{p ∈ P_r} ⟨ψ(p), ψ(e_i)⟩, one row per facet.

    Long descriptions are compared in pieces of ``words`` words.
    """
    # neighbouring scenes often share an event: each text is encoded once
    rows = {
        text: footage.encode(pieces(text, words)) for text in dict.fromkeys(descriptions) if text
    }
    cosines = np.zeros((len(plan.facets), len(descriptions)))
    for number, facet in enumerate(plan.facets):
        queries = footage.encode(facet.queries)
        for scene, text in enumerate(descriptions):
            if text:
                cosines[number, scene] = semantic(rows[text], queries)
    return cosines
