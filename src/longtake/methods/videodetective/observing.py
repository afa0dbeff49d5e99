"""Looking closely at one scene: what it shows, what can be read and heard there, how relevant that is (3.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake.algorithms import clues, lexical, sampling
from longtake.footage.look import look_at
from longtake.footage.protocol import Footage
from longtake.methods.videodetective.facets import Plan
from longtake.models.chat import Chat
from longtake.prompts import Plain
from longtake.steps.ask import ask
from longtake.timecode import clock
from longtake.types import Line, Question, Segment

Sources: TypeAlias = dict[str, str]


class Report(BaseModel):
    """What whoever looked at a scene has to say."""

    reasoning: str = Field(default="", description="one or two sentences")
    caption: str
    needs_more_info: bool
    missing_keyword: str = Field(default="", description="empty where nothing is missing")


@dataclass(frozen=True)
class Clue:
    """A text from a scene, with its relevance to each facet."""

    source: str
    """``caption``, ``onscreen`` or ``speech``."""
    text: str
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """Its relevance to the facet that it fits best."""
        return max(self.scores)


@dataclass(frozen=True)
class Observation:
    """What a look at a scene gave."""

    node: int
    clues: tuple[Clue, ...]
    needs_more: bool = True
    missing: str = ""

    @property
    def score(self) -> float:
        """Eq. 11: s_i, the maximum over sources and facets."""
        return max((clue.score for clue in self.clues), default=0.0)

    @property
    def best(self) -> Clue | None:
        """Eq. 14: the text with the highest relevance."""
        return max(self.clues, key=lambda clue: clue.score, default=None)

    def best_for(self, facet: int) -> Clue | None:
        """The text that fits one facet best."""
        return max(self.clues, key=lambda clue: clue.scores[facet], default=None)


@dataclass(frozen=True)
class Weights:
    """λ by source (table 7): how much words in common count, the rest being meaning."""

    onscreen: float = 0.7
    speech: float = 0.5
    caption: float = 0.3


@dataclass(frozen=True)
class Looking:
    """How scenes are looked at."""

    window: int = 9
    """Frames shown of a scene."""
    onscreen: bool = True
    """Whether text is read in the picture."""
    speech: bool = True
    """Whether what is said counts."""
    shortest_text: int = 4
    """Letters that text on screen must have."""
    weights: Weights = Weights()
    z_lex: float = lexical.Z_LEX
    """Sum of word weights at which keywords are fully met (Z_lex)."""
    piece_words: int = 50
    """Words of a long text that are compared at once."""


@dataclass(frozen=True)
class Observer:
    """Looks at scenes of one film with one question in mind; safe to use from several threads."""

    footage: Footage
    question: Question
    plan: Plan
    chat: Chat
    how: Looking
    tokens: int

    def observe(
        self, node: int, rows: NDArray[np.int64], segment: Segment, facet: int
    ) -> Observation:
        """OBSERVE(i, q, K_r, P_r): the scene in words, how relevant they are, and whether something is missing."""
        look = look_at(self.footage, rows[sampling.uniform(len(rows), self.how.window)].tolist())
        focus = self.plan.facets[facet]
        said = ask(
            self.chat,
            "videodetective/observe",
            Report,
            default=Report(caption="", needs_more_info=True),
            temperature=0.0,
            max_tokens=self.tokens,
            frames=look.frames,
            seen=list(look.captions) or Plain(""),
            question=self.question,
            asked=self.plan.asked,
            keywords=list(focus.keywords),
            events=list(focus.queries),
            stretch=segment,
        )
        missing = said.missing_keyword.strip() if said.needs_more_info else ""
        sources: Sources = {"caption": said.caption.strip()}
        if self.how.onscreen:
            sources["onscreen"] = _told(self._read(rows))
        if self.how.speech:
            sources["speech"] = _told(self.footage.speech(segment))
        return Observation(node, self.rated(sources), said.needs_more_info, missing)

    def rated(self, sources: Sources) -> tuple[Clue, ...]:
        """Eq. 8 to 10 for every source that says something, against every facet."""
        found = []
        for source, text in sources.items():
            if not text:
                continue
            words = lexical.lemmas([text])
            rows = self.footage.encode(clues.pieces(lexical.untimed(text), self.how.piece_words))
            weight = getattr(self.how.weights, source)
            scores = tuple(
                clues.source_aware(
                    lexical.overlap(words, keywords, z=self.how.z_lex),
                    clues.semantic(rows, queries),
                    weight,
                )
                for keywords, queries in self._facets
            )
            found.append(Clue(source, text, scores))
        return tuple(found)

    @cached_property
    def _facets(self) -> list[tuple[frozenset[str], NDArray[np.float32]]]:
        """Keywords as lemmas and queries as vectors, made once."""
        return [
            (lexical.lemmas(facet.keywords), self.footage.encode(facet.queries))
            for facet in self.plan.facets
        ]

    def _read(self, rows: NDArray[np.int64]) -> list[Line]:
        """What can be read in the first, the middle and the last frame, each text once, when it was read."""
        found: dict[str, Line] = {}
        for row in sorted({int(rows[0]), int(rows[len(rows) // 2]), int(rows[-1])}):
            time = float(self.footage.times[row])
            for line in self.footage.onscreen(Segment(time, time + 1e-3)):
                if len(line.text.strip()) >= self.how.shortest_text:
                    found.setdefault(
                        line.text.strip(), Line(Segment(time, time), line.text.strip())
                    )
        return list(found.values())


def _told(lines: Sequence[Line]) -> str:
    return " ".join(f"[{clock(line.segment.start)}] {line.text}" for line in lines)
