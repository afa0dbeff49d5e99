"""A close look at one scene: its texts, seen, read and heard, and their relevance (3.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import clues, lexical, sampling
from longtake.footage.look import look_at
from longtake.footage.protocol import Footage
from longtake.methods.videodetective.facets import SearchPlan
from longtake.methods.videodetective.replies import ReportReply
from longtake.models.chat import Chat
from longtake.prompts import words
from longtake.steps.ask import ask
from longtake.steps.showing import captions_of
from longtake.types import Line, Question, Segment

Sources: TypeAlias = dict[str, str]
"""Text by source: ``caption``, ``onscreen`` or ``speech``."""


@dataclass(frozen=True)
class SceneText:
    """A text from a scene, with its relevance to each facet."""

    source: str
    """``caption``, ``onscreen`` or ``speech``."""
    text: str
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """Its relevance to the facet it fits best."""
        return max(self.scores)


@dataclass(frozen=True)
class Observation:
    """The result of a look at a scene."""

    node: int
    texts: tuple[SceneText, ...]
    needs_more: bool = True
    missing: str = ""

    @property
    def score(self) -> float:
        """Eq. 11: s_i, the maximum over sources and facets."""
        return max((text.score for text in self.texts), default=0.0)

    @property
    def best(self) -> SceneText | None:
        """Eq. 14: the text with the highest relevance."""
        return max(self.texts, key=lambda text: text.score, default=None)

    def best_for(self, facet: int) -> SceneText | None:
        """The text that fits one facet best."""
        return max(self.texts, key=lambda text: text.scores[facet], default=None)


@dataclass(frozen=True)
class Weights:
    """λ by source (table 7): the weight of shared words, against similarity of meaning."""

    onscreen: float = 0.7
    speech: float = 0.5
    caption: float = 0.3


@dataclass(frozen=True)
class ObserveRule:
    """How scenes are observed, and their texts scored."""

    window: int = 9
    """Frames shown of a scene."""
    onscreen: bool = True
    """Read text in the picture."""
    speech: bool = True
    """Use what is said."""
    shortest_text: int = 4
    """Fewest characters of on-screen text."""
    weights: Weights = Weights()
    z_lex: float = lexical.Z_LEX
    """Sum of word weights at which keywords are fully matched (Z_lex)."""
    piece_words: int = 50
    """Long texts are compared in pieces of this many words."""


@dataclass(frozen=True)
class Observer:
    """Observes scenes of one film for one question; safe to use from several threads."""

    footage: Footage
    question: Question
    plan: SearchPlan
    chat: Chat
    rule: ObserveRule
    tokens: int
    """Most tokens in a reply."""

    def observe(
        self, node: int, rows: NDArray[np.int64], segment: Segment, facet: int
    ) -> Observation:
        """OBSERVE(i, q, K_r, P_r): the texts of a scene, their relevance, and what is missing."""
        chosen = rows[sampling.uniform(len(rows), self.rule.window)]
        look = look_at(self.footage, chosen.tolist())
        focus = self.plan.facets[facet]
        report = ask(
            self.chat,
            "videodetective/observe",
            ReportReply,
            default=ReportReply(caption="", needs_more_info=True),
            temperature=0.0,
            max_tokens=self.tokens,
            frames=look.frames,
            seen=captions_of(look),
            question=self.question,
            asked=self.plan.asked,
            keywords=list(focus.keywords),
            events=list(focus.queries),
            stretch=segment,
        )
        # a model that needs nothing more may still name a keyword
        missing = report.missing_keyword.strip() if report.needs_more_info else ""
        sources: Sources = {"caption": report.caption.strip()}
        if self.rule.onscreen:
            sources["onscreen"] = _joined(self._read(rows))
        if self.rule.speech:
            sources["speech"] = _joined(self.footage.speech(segment))
        return Observation(node, self.rated(sources), report.needs_more_info, missing)

    def rated(self, sources: Sources) -> tuple[SceneText, ...]:
        """Eq. 8 to 10: every text scored against every facet."""
        rated = []
        for source, text in sources.items():
            if not text:
                continue
            lemmas = lexical.lemmas([text])
            pieces = clues.pieces(lexical.untimed(text), self.rule.piece_words)
            rows = self.footage.encode(pieces)
            weight = getattr(self.rule.weights, source)
            scores = []
            for keywords, queries in self._facets:
                shared = lexical.overlap(lemmas, keywords, z=self.rule.z_lex)  # (8)
                alike = clues.semantic(rows, queries)  # (9)
                scores.append(clues.source_aware(shared, alike, weight))  # (10)
            rated.append(SceneText(source, text, tuple(scores)))
        return tuple(rated)

    @cached_property
    def _facets(self) -> list[tuple[frozenset[str], NDArray[np.float32]]]:
        """Keywords as lemmas and queries as vectors, computed once."""
        return [
            (lexical.lemmas(facet.keywords), self.footage.encode(facet.queries))
            for facet in self.plan.facets
        ]

    def _read(self, rows: NDArray[np.int64]) -> list[Line]:
        """The text in the first, the middle and the last frame, each once, with its first time."""
        lines: dict[str, Line] = {}
        for row in sorted({int(rows[0]), int(rows[len(rows) // 2]), int(rows[-1])}):
            time = float(self.footage.times[row])
            for line in self.footage.onscreen(Segment(time, time + 1e-3)):
                text = line.text.strip()
                if len(text) >= self.rule.shortest_text:
                    lines.setdefault(text, Line(Segment(time, time), text))
        return list(lines.values())


def _joined(lines: Sequence[Line]) -> str:
    return " ".join(words(line) for line in lines)
