"""Which stages can run, and how many frames a stage can show, by models, film and budget."""

from __future__ import annotations

from longtake.agents.run import Run
from longtake.footage.protocol import Footage
from longtake.llm.capabilities import capabilities_of
from longtake.llm.chat import Card
from longtake.methods.base import Method, needs_index

LEAST = 4
"""Frames with which a call is worth making."""
MORE = 1.5
"""How many times the frames shown before a further look shows, at least."""
WORDS = 4096
"""Tokens of the context for the words of the prompt and for the reply."""
CALL, CHECK = 800, 1.1
"""Tokens for the words of a call, and what it costs with its check, as a multiple."""


def obstacle(method: Method, footage: Footage, run: Run) -> str:
    """Why a stage cannot run; empty if it can."""
    for role in method.roles:
        if role == "team" and not run.team:
            return "no team was given"
        if role != "team" and role not in run:
            return f"no model in the role {role}"
    if not footage.has and "captioner" in method.roles:
        return "there is nothing to look at"
    if "vlm" in method.roles and "pictures" not in footage.has:
        return "there are no pictures"
    if "vlm" in method.roles and run["vlm"].card.vision is False:
        return "the model cannot be shown pictures"
    # asked in this order: whether a film is indexed takes a look into its store
    if needs_index(method) and run.ledger.limits.seconds is not None and not footage.indexed:
        return "the film is not indexed yet, and the time is limited"
    return ""


def frames_of(key: str) -> int | None:
    """The frames that a key asks for: 480 of ``uniform@480``."""
    number = key.partition("@")[2]
    return int(number) if number.isdecimal() else None


def frames_to_show(wanted: int, shown: int, footage: Footage, run: Run) -> int:
    """The frames of a stage, 0 if a call is not worth making; ``shown`` is the most so far."""
    fit, limits = min(frames_that_fit(run), len(footage.times)), run.ledger.limits
    frames = min(wanted, fit)
    # what one look uses is lost to the next
    limited = any(limit is not None for limit in (limits.tokens, limits.cost, limits.frames))
    if limited and wanted < fit < (1 + MORE) * wanted:
        frames = fit  # what would be left is too little for a second look
    return frames if frames >= max(LEAST, MORE * shown) else 0


def frames_that_fit(run: Run) -> int:
    """The most frames that a call may show now."""
    card = run["vlm"].card
    # models that do not say are taken to use four tiles of 512 pixels at 170 tokens, plus 85, in a
    # context of 32,768; 10 tokens tell each picture's time
    each = (card.picture_tokens or 765) + 10
    rooms = [((card.context or 32_768) - WORDS) // each, *affordable_frames(card, run, each)]
    if card.small:
        # small models lose track of more pictures
        rooms.append(32)
    capabilities = capabilities_of(run["vlm"])
    if capabilities is not None and capabilities.known.images is not None:
        rooms.append(capabilities.known.images)
    return max(0, min(rooms))


def affordable_frames(card: Card, run: Run, each: int) -> list[int]:
    """The most frames of ``each`` many tokens, by every limit that is set."""
    limits, spent, rooms = run.ledger.limits, run.usage, []
    if limits.tokens is not None:
        left = limits.tokens - spent.tokens_in - spent.tokens_out
        rooms.append(int((left / CHECK - CALL) // each))
    if limits.cost is not None and card.price is not None and card.price.prompt > 0:
        # the reply is paid too, at a higher price
        left_cost = limits.cost - (spent.cost or 0.0) - card.price.of(CALL, 0, CALL)
        rooms.append(int(left_cost / CHECK / card.price.of(each, 0, 0)))
    if limits.frames is not None:
        rooms.append(int((limits.frames - spent.frames) / CHECK))
    return rooms
