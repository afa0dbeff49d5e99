"""What the stages say, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longtake.algorithms import phrases
from longtake.algorithms.asking import kind
from longtake.algorithms.calibration import log_odds, pooled, probability
from longtake.models.replies.letters import plain
from longtake.steps.signals import LENGTH, ODDS, SUPPORTED, weighed
from longtake.steps.verify import Checked
from longtake.types import Answer, Question

SAME = 0.8
"""Share of an answer in words that another must hold to count as the same."""
OPEN_ANSWERS = 12
"""Answers among which a wrong one is drawn, for questions without options."""


@dataclass(frozen=True)
class Voice:
    """The answer of one stage."""

    stage: str
    checked: Checked
    probability: float
    """That it is right, judged by itself."""
    signals: Mapping[str, float]

    @property
    def answer(self) -> Answer:
        """The answer after its check."""
        return self.checked.answer


@dataclass(frozen=True)
class Standing:
    """The leading answer, and the probability that it is right."""

    voice: Voice
    probability: float
    signals: Mapping[str, float]
    agreeing: int
    """Stages that say the same."""


def votes(voices: Sequence[Voice]) -> list[str]:
    """What each voice counts for: a letter, or the first answer in words that is the same."""
    names: list[str] = []
    for voice in voices:
        name = voice.answer.choice or plain(voice.answer.text)
        if voice.answer.choice is None:
            alike = [known for known in names if same(name, known)]
            name = alike[0] if alike else name
        names.append(name)
    return names


def same_vote(one: Answer, other: Answer) -> bool:
    """Whether two answers are the same: one letter, or words of which one holds the other."""
    if one.choice or other.choice:
        return one.choice == other.choice
    return same(plain(one.text), plain(other.text))


def same(one: str, other: str) -> bool:
    """Whether one answer in words holds the other."""
    return max(phrases.match(one, other), phrases.match(other, one)) >= SAME


def standing(voices: Sequence[Voice], question: Question, weights: Mapping[str, float]) -> Standing:
    """The answer that leads, by the voices' probabilities; ``weights`` correct for voices that err
    together.

    Of the voices for it, the one with support speaks, else the likeliest; of a tie, the latest.
    """
    names = votes(voices)
    options = len(question.options) or OPEN_ANSWERS
    chances = pooled(
        [(name, voice.probability) for name, voice in zip(names, voices, strict=True)], options
    )
    leader = max(chances, key=chances.__getitem__)
    behind = [voice for name, voice in zip(names, voices, strict=True) if name == leader]
    best = max(behind, key=lambda voice: (voice.checked.supports > 0, voice.probability))
    found = {
        ODDS: log_odds(chances[leader]),
        "stages": float(len(voices)),
        "agreeing": float(len(behind) - 1),
        "against": float(len(voices) - len(behind)),
        SUPPORTED: float(best.checked.supports > 0),
        "open": float(not question.options),
        LENGTH: best.signals.get(LENGTH, 0.0),
        kind(question.text): 1.0,
    }
    found = {name: round(value, 4) for name, value in found.items() if value}
    chance = probability(weights or {ODDS: 1.0}, weighed(found))
    return Standing(best, round(chance, 4), found, len(behind))
