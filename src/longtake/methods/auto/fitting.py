"""How many frames one call can show: what the model takes, and what is left of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longtake.config import BudgetSettings
from longtake.methods.auto.stopping import Ahead, frames_of
from longtake.methods.base import name_of
from longtake.models.chat import Card, Chat
from longtake.models.manners import manner_of
from longtake.steps.run import Run
from longtake.types import Usage

WORDS = 4096
"""Tokens of a context that are left for the words of a prompt and for the reply."""
CALL = 800
"""Tokens of a budget that are left for the words of the call and of its check."""
CHECK = 1.1
"""What a call costs together with its check, as a multiple."""
LABEL = 10
"""Tokens of the time that is written before each picture, at most."""
PICTURE = 765
"""Tokens of a picture for models that do not say (four tiles of 512 pixels at 170, plus 85)."""
SMALL = 32
"""Frames that a small model is shown at once, at most."""
CONTEXT = 32_768
"""Tokens that a model is taken to hold if it does not say."""
LEAST = 4
"""Frames with which a call is worth making."""
MORE = 1.5
"""How many times the frames shown before a further look shows, at least."""
NEARLY = 1.1
"""How many times its frames a stage may be meant to show and still be rated as that stage."""
HALF = 0.5
"""Share of its frames below which a stage says nothing about itself."""


@dataclass(frozen=True)
class Room:
    """Frames that a call may show now, and those that stages of the same name showed before."""

    fits: int
    shown: int = 0
    limited: bool = False
    """Whether what one look uses is lost to the next."""


def fitted(key: str, room: Room, sizes: Sequence[int]) -> Ahead | str:
    """A stage with as many frames as fit; or why it is not worth a call.

    ``sizes`` are the frames of the stages of its name that the calibration knows.
    """
    wanted, name = frames_of(key) or LEAST, name_of(key)
    frames = min(wanted, room.fits)
    if room.limited and wanted < room.fits < (1 + MORE) * wanted:
        frames = room.fits  # what would be left is too little for a second look
    if frames < max(LEAST, MORE * room.shown):
        return f"{frames} frames fit, and {room.shown} were shown"
    if frames * NEARLY >= wanted or not sizes:
        return Ahead(key, key, frames)
    # fewer frames tell as much as the next smaller stage
    smaller = [size for size in sizes if size <= NEARLY * frames]
    if smaller:
        return Ahead(key, f"{name}@{max(smaller)}", frames)
    return Ahead(key, key, frames) if frames >= HALF * wanted else f"only {frames} frames fit"


def limits_frames(limits: BudgetSettings) -> bool:
    """Whether frames shown now leave fewer for later."""
    return any(limit is not None for limit in (limits.tokens, limits.cost, limits.frames))


def frames_that_fit(chat: Chat, run: Run) -> int:
    """The most frames that a call may show now."""
    card = chat.card
    each = (card.picture_tokens or PICTURE) + LABEL
    rooms = [((card.context or CONTEXT) - WORDS) // each]
    if card.small:
        rooms.append(SMALL)
    manner = manner_of(chat)
    if manner is not None and manner.known.images is not None:
        rooms.append(manner.known.images)
    rooms += affordable_frames(card, run.ledger.limits, run.usage, each)
    return max(0, min(rooms))


def affordable_frames(card: Card, limits: BudgetSettings, spent: Usage, each: int) -> list[int]:
    """The most frames of ``each`` many tokens, by every limit that is set."""
    rooms = []
    if limits.tokens is not None:
        left = limits.tokens - spent.tokens_in - spent.tokens_out
        rooms.append(int((left / CHECK - CALL) // each))
    if limits.cost is not None and card.price is not None and card.price.prompt > 0:
        # the reply is paid too, and dearer
        left_cost = limits.cost - (spent.cost or 0.0) - card.price.of(CALL, 0, CALL)
        rooms.append(int(left_cost / CHECK / card.price.of(each, 0, 0)))
    if limits.frames is not None:
        rooms.append(int((limits.frames - spent.frames) / CHECK))
    return rooms
