"""How many frames one call can show: what the model takes, and what is left of the budget."""

from __future__ import annotations

from longtake.config import BudgetSettings
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
