"""What was observed, in words for the final call, and as citations (eq. 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.methods.videodetective.scenes import SceneText
from longtake.methods.videodetective.search import SceneSearch
from longtake.prompts import Plain, phrase
from longtake.retrieval.question_kinds import negated
from longtake.types import Answer, Evidence, Segment

CITED = 3
"""Scenes cited for an answer."""

SOURCES = {"caption": "seen", "onscreen": "read_on_screen", "speech": "heard"}
"""The phrase that names the source of a text."""


@dataclass(frozen=True)
class Package:
    """An observed scene, as described in the final call."""

    segment: Segment
    text: SceneText
    """The best of its texts."""
    others: tuple[SceneText, ...] = ()


def packed(state: SceneSearch, nodes: Sequence[int]) -> list[Package]:
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


def notes_by_option(state: SceneSearch, nodes: Sequence[int]) -> list[str]:
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


def leading(state: SceneSearch) -> Answer | None:
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
