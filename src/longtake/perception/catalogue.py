"""Encoders by name: the built-in ones and the cards."""

from __future__ import annotations

from pathlib import Path

from longtake.errors import ConfigError, unknown
from longtake.perception.cardencoder import CardImageTextEncoder, open_card
from longtake.perception.cards import CARDS
from longtake.perception.conse import ConSE
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.minilm import MiniLM
from longtake.perception.protocols import ImageEncoder, ImageTextEncoder
from longtake.perception.runtime import Compute

BUILT_IN = ("conse", "efficientnet-lite2")


def names() -> list[str]:
    """Every image encoder, built-in ones first."""
    return [*BUILT_IN, *CARDS]


def image_encoder(
    name: str, cache: Path, *, folder: Path | None = None, compute: Compute | None = None
) -> ImageEncoder:
    """The encoder of that name; a card's files lie in ``folder``, else in :func:`card_folder`."""
    if name == "efficientnet-lite2":
        return EfficientNetLite2(cache, compute=compute)
    if name == "conse":
        images = EfficientNetLite2(cache, compute=compute)
        return ConSE(cache, images=images, texts=MiniLM(compute=compute))
    if name not in CARDS:
        raise unknown("encoder", name, names())
    return open_card(CARDS[name], folder or card_folder(name, cache), compute=compute)


def image_text_encoder(
    name: str, cache: Path, *, folder: Path | None = None, compute: Compute | None = None
) -> ImageTextEncoder:
    """The same, where pictures and texts are wanted in one space."""
    encoder = image_encoder(name, cache, folder=folder, compute=compute)
    if not isinstance(encoder, (ConSE, CardImageTextEncoder)):
        pairs = ["conse", *(card.name for card in CARDS.values() if card.text)]
        raise ConfigError(
            f"{name} sees pictures only; for search use one of: {', '.join(pairs)}", key=name
        )
    return encoder


def card_folder(name: str, cache: Path) -> Path:
    """Where a card's files are kept."""
    return cache / "models" / name
