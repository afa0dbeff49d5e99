"""What a question is made of, and what roughly happens in the film: VideoDetective's two looks before the search.

A facet is one thing to find: the question as a whole, then each option, or for an open-ended question each group of
entities with an event. Keywords are compared with pictures, queries with the timeline and with what is observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from longtake.algorithms.clues import pieces, semantic
from longtake.algorithms.lexical import content_words
from longtake.errors import ConfigError
from longtake.events import note
from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.models.chat import Chat
from longtake.models.replies.letters import read_letter
from longtake.prompts import Plain
from longtake.steps.ask import ask
from longtake.timecode import clock, parse_time
from longtake.types import Line, Question, Segment

KEYWORDS = 5
"""Most entities of an option."""


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


NOTHING_SAID = Decomposition(query_keywords=[], general_query="")
"""Stands for a reply that cannot be read."""
BY_OPTION = "for each option 2 to 5 entities and the event that would show it to be right"
BY_THING = "for each different thing that must be found, at most {most}, its entities and its event"


@dataclass(frozen=True)
class Facet:
    """f_r = (K_r, P_r): something to find."""

    name: str
    """``question``, the letter of an option, or a number."""
    keywords: tuple[str, ...]
    queries: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """How the question is searched for; the first facet is the question as a whole."""

    facets: tuple[Facet, ...]
    asked: str
    """The question as it is put to whoever looks at a scene."""
    timing: str = ""


def whole(question: Question) -> Plan:
    """The question as its only facet."""
    return Plan((_facet("question", (), "", question.text),), question.text)


def decompose(chat: Chat, question: Question, duration: float, *, most: int, tokens: int) -> Plan:
    """Eq. 4: facets as a language model sees them; content words of question and options where it says nothing."""
    kind = OptionDecomposition if question.options else OpenDecomposition
    parts = BY_OPTION if question.options else BY_THING.format(most=most)
    said = ask(
        chat,
        "videodetective/decompose",
        kind,
        default=NOTHING_SAID,
        temperature=0.0,
        max_tokens=tokens,
        question=question,
        length=Plain(clock(duration)),
        parts=Plain(parts),
    )
    general = _facet("question", said.query_keywords, said.general_query, question.text)
    if question.options:
        named = _of_options(said.options if isinstance(said, OptionDecomposition) else [], question)
    else:
        named = _distinct(
            said.facets if isinstance(said, OpenDecomposition) else [], general, question
        )[:most]
    facets = (general, *named)
    note(
        "facets",
        facets={facet.name: [list(facet.keywords), list(facet.queries)] for facet in facets},
    )
    return Plan(facets, said.vlm_query.strip() or question.text, said.temporal_plan.strip())


def _of_options(parts: Sequence[OptionParts], question: Question) -> list[Facet]:
    """A facet per option: parts belong by letter or text, else by place where there are as many as options."""
    named = {read_letter(part.option, question): part for part in reversed(parts)}
    if named.keys() <= {None} and len(parts) == len(question.options):
        named = dict(zip(question.letters, parts, strict=True))
    return [
        _facet(letter, named[letter].entities, named[letter].event_query, option)
        if letter in named
        else _facet(letter, (), "", option)
        for letter, option in zip(question.letters, question.options, strict=True)
    ]


def _distinct(parts: Sequence[Parts], general: Facet, question: Question) -> list[Facet]:
    """A facet per group of entities with an event, each once, and none that says what the question says."""
    made = [
        _facet(str(n), part.entities, part.event_query, question.text)
        for n, part in enumerate(parts, start=1)
    ]
    return list(
        {
            (f.keywords, f.queries): f for f in reversed(made) if f.queries != general.queries
        }.values()
    )[::-1]


def _facet(name: str, entities: Sequence[str], query: str, text: str) -> Facet:
    """A facet with something in it: where a model named nothing, the words of the text itself."""
    most = None if name == "question" else KEYWORDS
    keywords = tuple(dict.fromkeys(word.strip() for word in entities if word.strip()))[:most]
    if not keywords and not query.strip():
        return Facet(name, tuple(content_words(text)), (text,))
    return Facet(name, keywords, (query.strip(),) if query.strip() else ())


class Happening(BaseModel):
    """An event of the timeline."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    start: str = Field(description="when it begins, as 00:12:31")
    end: str = Field(description="when it ends, as 00:12:31")
    description: str


class Timeline(BaseModel):
    """A film in events."""

    events: list[Happening]


def timeline(chat: Chat, look: Look, duration: float, *, tokens: int) -> list[Line]:
    """The events of a film as a vision model tells them from a few frames; none where its reply cannot be read."""
    told = ask(
        chat,
        "videodetective/timeline",
        Timeline,
        default=Timeline(events=[]),
        temperature=0.0,
        max_tokens=tokens,
        frames=look.frames,
        length=Plain(clock(duration)),
        seen=list(look.captions) or Plain(""),
    )
    events = []
    for event in told.events:
        try:
            start, end = parse_time(event.start), parse_time(event.end)
        except ConfigError as error:
            note("event_dropped", why=str(error))
            continue
        if start > duration or not event.description.strip():
            note(
                "event_dropped",
                why="it lies outside the film" if start > duration else "it says nothing",
            )
            continue
        events.append(
            Line(Segment(start, max(start, min(end, duration))), event.description.strip())
        )
    return events


def described(events: Sequence[Line], segments: Sequence[Segment]) -> list[str]:
    """e_i: the events that overlap each scene, joined; where none does, the one whose middle is nearest."""
    if not events:
        return [""] * len(segments)
    texts = []
    for scene in segments:
        inside = [
            e.text for e in events if e.segment.overlap(scene) > 0 or e.segment.start in scene
        ]
        nearest = min(events, key=lambda event: abs(event.segment.middle - scene.middle))
        texts.append(" ".join(inside) or nearest.text)
    return texts


def keyword_cosines(
    footage: Footage, nodes: NDArray[np.floating], plan: Plan
) -> NDArray[np.float64]:
    """max_{w ∈ K_r} ⟨φ(w), h_i⟩, a row per facet; zero for a facet without keywords."""
    texts = list(dict.fromkeys(word for facet in plan.facets for word in facet.keywords))
    cosines = dict(zip(texts, footage.encode(texts) @ nodes.T, strict=True)) if texts else {}
    nothing = np.zeros(len(nodes))
    return np.array(
        [np.max([cosines[w] for w in f.keywords] or [nothing], axis=0) for f in plan.facets],
        np.float64,
    )


def event_cosines(
    footage: Footage, descriptions: Sequence[str], plan: Plan, words: int
) -> NDArray[np.float64]:
    """max_{p ∈ P_r} ⟨ψ(p), ψ(e_i)⟩, a row per facet; long descriptions in stretches of ``words`` words."""
    rows = {
        text: footage.encode(pieces(text, words)) for text in dict.fromkeys(descriptions) if text
    }
    queries = [footage.encode(facet.queries) for facet in plan.facets]
    return np.array(
        [
            [semantic(rows[text], query) if text else 0.0 for text in descriptions]
            for query in queries
        ],
        np.float64,
    )
