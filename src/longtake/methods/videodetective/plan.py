"""What to search for: the facets of a question, and a timeline of the film (line 3).

A facet is one thing to find: the question as a whole, then each option; for an open-ended question,
each group of entities with an event. Keywords are compared with pictures, queries with the timeline
and with observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from longtake._util.timecode import clock, parse_time
from longtake.agents.answer import shown_to
from longtake.algorithms.lexical import content_words
from longtake.errors import ConfigError
from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.llm.chat import Chat
from longtake.llm.structured.ask import ask
from longtake.llm.structured.letters import read_letter
from longtake.methods.videodetective.scores import pieces, semantic
from longtake.prompts import Plain, phrase
from longtake.tracing.events import note
from longtake.types import Line, Question, Segment


class Parts(BaseModel):
    """Entities and an event."""

    entities: list[str] = Field(description="2 to 5 of them")
    event_query: str = Field(description="one event")


class OptionParts(Parts):
    """What would be seen if an option were right."""

    option: str = Field(description="the letter of the option")


class Decomposition(BaseModel):
    """A question in parts."""

    query_keywords: list[str]
    general_query: str
    temporal_plan: str = ""
    vlm_query: str = ""


class OptionDecomposition(Decomposition):
    """A multiple-choice question in parts, one for each option."""

    options: list[OptionParts]


class OpenDecomposition(Decomposition):
    """An open-ended question in parts."""

    facets: list[Parts]


class TimelineEvent(BaseModel):
    """An event of the timeline."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    start: str = Field(description="when it begins, such as 00:12:31")
    end: str = Field(description="when it ends, such as 00:12:31")
    description: str


class TimelineReply(BaseModel):
    """A film as events."""

    events: list[TimelineEvent]


NOTHING_SAID = Decomposition(query_keywords=[], general_query="")
"""The default for an unreadable reply."""


@dataclass(frozen=True)
class Facet:
    """f_r = (K_r, P_r): something to find."""

    name: str
    """``question``, the letter of an option, or a number."""
    keywords: tuple[str, ...]
    queries: tuple[str, ...]


@dataclass(frozen=True)
class SearchPlan:
    """What to search for; the first facet is the question as a whole."""

    facets: tuple[Facet, ...]
    asked: str
    """The question as it is put to a model that looks at one scene."""
    timing: str = ""
    """What matters about time and order."""


def whole(question: Question) -> SearchPlan:
    """The question as the only facet."""
    return SearchPlan((_facet("question", (), "", question.text),), question.text)


def decompose(
    chat: Chat, question: Question, duration: float, *, max_facets: int, tokens: int
) -> SearchPlan:
    """Eq. 4: facets by a language model; if unreadable, content words of question and options."""
    form = OptionDecomposition if question.options else OpenDecomposition
    parts = phrase("videodetective", "parts_by_option")
    if not question.options:
        parts = phrase("videodetective", "parts_by_thing", most=max_facets)
    reply = ask(
        chat,
        "videodetective/decompose",
        form,
        default=NOTHING_SAID,
        temperature=0.0,
        max_tokens=tokens,
        question=question,
        length=Plain(clock(duration)),
        parts=parts,
    )
    general = _facet("question", reply.query_keywords, reply.general_query, question.text)
    if question.options:
        given = reply.options if isinstance(reply, OptionDecomposition) else []
        named = _of_options(given, question)
    else:
        groups = reply.facets if isinstance(reply, OpenDecomposition) else []
        named = _distinct(groups, general, question)[:max_facets]
    facets = (general, *named)
    by_name = {facet.name: [list(facet.keywords), list(facet.queries)] for facet in facets}
    note("facets", facets=by_name)
    asked = reply.vlm_query.strip() or question.text
    return SearchPlan(facets, asked, reply.temporal_plan.strip())


def _of_options(parts: Sequence[OptionParts], question: Question) -> list[Facet]:
    """A facet per option.

    Parts are matched by letter or text; failing that, by position if there are as many as options.
    """
    # reversed, so that the first of several parts for one option wins
    named = {read_letter(part.option, question): part for part in reversed(parts)}
    if named.keys() <= {None} and len(parts) == len(question.options):
        named = dict(zip(question.letters, parts, strict=True))
    facets = []
    for letter, option in zip(question.letters, question.options, strict=True):
        part = named.get(letter)
        entities, event = ((), "") if part is None else (part.entities, part.event_query)
        facets.append(_facet(letter, entities, event, option))
    return facets


def _distinct(parts: Sequence[Parts], general: Facet, question: Question) -> list[Facet]:
    """A facet per group of entities with an event; none repeats another, or the question."""
    distinct: dict[tuple[tuple[str, ...], tuple[str, ...]], Facet] = {}
    for number, part in enumerate(parts, start=1):
        facet = _facet(str(number), part.entities, part.event_query, question.text)
        # a model that has nothing to add often repeats the question
        if facet.queries != general.queries:
            distinct.setdefault((facet.keywords, facet.queries), facet)
    return list(distinct.values())


def _facet(name: str, entities: Sequence[str], query: str, text: str) -> Facet:
    """A facet from a reply; if the reply named nothing, from the content words of the text."""
    # an option is described by few entities, the question as a whole may need more
    max_keywords = None if name == "question" else 5
    keywords = tuple(dict.fromkeys(word.strip() for word in entities if word.strip()))[
        :max_keywords
    ]
    # without either, the facet could match no scene at all
    if not keywords and not query.strip():
        return Facet(name, tuple(content_words(text)), (text,))
    return Facet(name, keywords, (query.strip(),) if query.strip() else ())


def keyword_cosines(
    footage: Footage, nodes: NDArray[np.floating], plan: SearchPlan
) -> NDArray[np.float64]:
    """max_{w ∈ K_r} ⟨φ(w), h_i⟩, one row per facet; zero for a facet without keywords."""
    # facets share keywords: each is encoded once
    texts = list(dict.fromkeys(word for facet in plan.facets for word in facet.keywords))
    cosines = dict(zip(texts, footage.encode(texts) @ nodes.T, strict=True)) if texts else {}
    best = np.zeros((len(plan.facets), len(nodes)))
    for number, facet in enumerate(plan.facets):
        if facet.keywords:
            best[number] = np.max([cosines[word] for word in facet.keywords], axis=0)
    return best


def timeline(
    chat: Chat, footage: Footage, look: Look, *, tokens: int, released: bool = False
) -> list[Line]:
    """The events of a film that a vision model sees in a few frames; none if it is unreadable.

    In the released code, an event that ends over ten seconds after the last frame ends with it.
    """
    reply = ask(
        chat,
        "videodetective/timeline",
        TimelineReply,
        default=TimelineReply(events=[]),
        temperature=0.0,
        max_tokens=tokens,
        **shown_to(footage, look),
    )
    duration, last = footage.duration, float(footage.times[look.rows[-1]])
    events = []
    for event in reply.events:
        try:
            start, end = parse_time(event.start), parse_time(event.end)
        except ConfigError as error:
            note("event_dropped", why=str(error))
            continue
        if released and end > last + 10:
            end = last
        text = event.description.strip()
        if start > duration:
            note("event_dropped", why="it lies outside the film")
        elif not text:
            note("event_dropped", why="it says nothing")
        else:
            events.append(Line(Segment(start, max(start, min(end, duration))), text))
    return events


def described(
    events: Sequence[Line], segments: Sequence[Segment], *, nearest: bool = True
) -> list[str]:
    """e_i: the events that overlap each scene, joined; if none does, the nearest or nothing."""
    texts = []
    for scene in segments:
        inside = []
        for event in events:
            begin, end = event.segment.start, event.segment.end
            # an event of no length overlaps nothing, but it lies in a scene
            if (begin < scene.end and scene.start < end) or (begin == end and begin in scene):
                inside.append(event.text)
        if not inside and nearest and events:
            closest = min(events, key=lambda event: abs(event.segment.middle - scene.middle))
            inside = [closest.text]
        texts.append(" ".join(inside))
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
