"""The most LVAgent can use on a question: nobody ever agrees, and nothing is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtake.methods.base import Bounds, words
from longtake.steps.showing import most_spoken
from longtake.types import Question

if TYPE_CHECKING:
    from longtake.methods.lvagent.method import LVAgent


def most(settings: LVAgent, duration: float, question: Question) -> Bounds:
    """The bounds of LVAgent with these settings."""
    seats = seats_by_round(settings)
    turns, per_turn = sum(seats), 2 if settings.reasons else 1
    view = settings.blank_frames
    if settings.perception:
        view = max(settings.chunks * settings.frames_per_chunk, settings.global_frames)
    several = sum(n > 1 for n in seats)  # rounds with more than one agent
    grouping = several * (not question.options)
    judging = sum(n for n in seats if n > 1) if settings.reflection else 0
    decides = settings.reflection and settings.discussion == "decide_by_agent" and seats[-1] > 1
    deciding = per_turn * decides
    keys = turns + seats[0] if settings.perception else 0  # the gate is asked in round 1 only
    previews = 2 * seats[0] * settings.preview_frames if settings.perception else 0
    calls = keys + turns * per_turn + judging + grouping + deciding
    reply = round((settings.max_new_tokens or 1024) / 1.4)  # words
    asked = words([question.text, *question.options]) + 170
    told = asked + most_spoken(duration, settings.subtitle_words)
    remembered = (judging + keys + deciding) * turns * (reply + 12)
    waiting = len(seats) * (per_turn + settings.perception) + settings.perception
    return Bounds(
        calls=calls,
        frames=previews + (turns * per_turn + deciding) * view,
        prompt_words=calls * told + remembered,
        reply_words=calls * reply,
        steps=waiting + several * settings.reflection + grouping + deciding,
    )


def seats_by_round(settings: LVAgent) -> list[int]:
    """The most agents in each round; the discussion ends when one is left."""
    rounds = settings.max_rounds if settings.reflection else 1
    if settings.discussion != "dynamic":
        left = [settings.team_size] * rounds
    else:
        left = [max(1, settings.team_size - number) for number in range(rounds)]
    return left[: left.index(1) + 1] if 1 in left else left
