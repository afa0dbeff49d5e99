"""Estimates of how many tokens a text has.

Estimates err on the high side: trimming a few lines too many is a small loss, but a prompt that the
endpoint refuses or silently cuts is a large one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from longtake.models.chat import Chat, Image, Message, Text

CHARACTERS_PER_TOKEN = 3.0
"""For ASCII; English prose has about four, digits and code about three."""
BYTES_PER_TOKEN = 2.0
"""For other scripts, in UTF-8; measured tokenizers use two to four for Chinese or Russian."""
PATCH = 28
"""Side in pixels of the square that costs one token in the most expensive vision models."""
PER_MESSAGE = 8
"""Tokens that a chat template adds to each turn."""


@runtime_checkable
class Counts(Protocol):
    """A chat whose endpoint offers its own tokenizer."""

    def count(self, text: str) -> int | None:
        """Tokens of a text; ``None`` if the endpoint turns out not to offer this."""


def estimate(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few."""
    if text.isascii():  # by far the most common case, and much quicker
        return math.ceil(len(text) / CHARACTERS_PER_TOKEN)
    ascii_count = sum(map(str.isascii, text))
    other = len(text.encode("utf-8", "surrogatepass")) - ascii_count
    return math.ceil(ascii_count / CHARACTERS_PER_TOKEN + other / BYTES_PER_TOKEN)


def estimate_image(image: Image) -> int:
    """Tokens of a picture: as its model declares, else one per patch after scaling."""
    if image.tokens is not None:
        return image.tokens
    # from the frame's own size: encoding the picture would be slow
    height, width = (int(side) for side in image.frame.pixels.shape[:2])
    scale = min(1.0, math.sqrt(image.max_pixels / (height * width)))
    return math.ceil(height * scale / PATCH) * math.ceil(width * scale / PATCH) + 2


def estimate_messages(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a conversation."""
    total = 0
    for message in messages:
        total += PER_MESSAGE
        total += sum(estimate(call.name + call.arguments) for call in message.tool_calls)
        for part in message.parts:
            total += estimate(part.text) if isinstance(part, Text) else estimate_image(part)
    return total


def count(chat: Chat, text: str) -> int:
    """Count with the endpoint's own tokenizer if it offers one, else estimate."""
    counted = chat.count(text) if isinstance(chat, Counts) else None
    return counted if isinstance(counted, int) else estimate(text)
