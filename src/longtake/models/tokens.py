"""How many tokens a text is, before anyone has counted them.

The guess is meant to be too high: a prompt wrongly trimmed by a few lines is a small loss, one that the
endpoint refuses or silently cuts is a large one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from longtake.models.chat import Chat, Image, Message, Text

CHARACTERS_PER_TOKEN = 3.0
"""ASCII; English prose runs at about four, digits and code at about three."""
BYTES_PER_TOKEN = 2.0
"""Other scripts, in UTF-8; measured tokenizers spend two to four bytes on a token of Chinese or Russian."""
PATCH = 28
"""Side of the square of pixels that costs one token in the vision models that cost most."""
PER_MESSAGE = 8
"""What a chat template adds to each turn."""


@runtime_checkable
class Counts(Protocol):
    """A chat whose endpoint offers its tokenizer."""

    def count(self, text: str) -> int | None:
        """Tokens of a text; ``None`` where the endpoint turned out not to offer it."""


def estimate(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    ascii_count = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    other = (
        0 if ascii_count == len(text) else len(text.encode("utf-8", "surrogatepass")) - ascii_count
    )
    return math.ceil(ascii_count / CHARACTERS_PER_TOKEN + other / BYTES_PER_TOKEN)


def estimate_image(image: Image) -> int:
    """Tokens of a picture: as its model says, else one for each patch of it after scaling."""
    if image.tokens is not None:
        return image.tokens
    height, width = (int(side) for side in image.frame.pixels.shape[:2])
    scale = min(1.0, math.sqrt(image.max_pixels / (height * width)))
    return math.ceil(height * scale / PATCH) * math.ceil(width * scale / PATCH) + 2


def estimate_messages(messages: Sequence[Message]) -> int:
    """Tokens of a conversation."""
    total = 0
    for message in messages:
        total += PER_MESSAGE
        total += sum(estimate(call.name + call.arguments) for call in message.tool_calls)
        for part in message.parts:
            total += estimate(part.text) if isinstance(part, Text) else estimate_image(part)
    return total


def count(chat: Chat, text: str) -> int:
    """Tokens of a text by the endpoint's own tokenizer where it offers one, else the estimate."""
    counted = chat.count(text) if isinstance(chat, Counts) else None
    return counted if isinstance(counted, int) else estimate(text)
