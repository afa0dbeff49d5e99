"""Encoders by name: built-in ones, cards, and those that installed packages add.

An entry of :data:`longtake.registry.encoders` is called with an :class:`EncoderSetup` and returns
an :class:`~longtake.perception.protocols.ImageEncoder`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from longtake import registry
from longtake.errors import ConfigError, unknown
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.minilm import MiniLM
from longtake.perception.protocols import ImageEncoder, ImageTextEncoder
from longtake.perception.runtime import Compute


class BuiltIns:
    """The networks that ship with longtake, each loaded at most once."""

    def __init__(self, cache: Path, compute: Compute | None = None) -> None:
        self.cache, self.compute = cache, compute or Compute()

    @cached_property
    def tagger(self) -> EfficientNetLite2:
        """Picture features and tags."""
        return EfficientNetLite2(self.cache, compute=self.compute)

    @cached_property
    def sentences(self) -> MiniLM:
        """Sentence embeddings."""
        return MiniLM(compute=self.compute)


@dataclass(frozen=True)
class EncoderSetup:
    """What an encoder is opened with."""

    name: str
    """The name under which it was asked for."""
    folder: Path
    """Where its files are, if it has any."""
    builtins: BuiltIns
    """The built-in networks, for encoders that build on them."""

    @property
    def cache(self) -> Path:
        """The cache folder, for files that an encoder prepares once."""
        return self.builtins.cache

    @property
    def compute(self) -> Compute:
        """Threads, batch size and providers."""
        return self.builtins.compute


def open_efficientnet(setup: EncoderSetup) -> EfficientNetLite2:
    """The built-in network itself, as an encoder."""
    return setup.builtins.tagger


def open_encoder(name: str, builtins: BuiltIns, *, folder: Path | str = "") -> ImageEncoder:
    """The encoder with the given name; a card's files are in ``folder`` or :func:`card_folder`.

    Only registered names are accepted, never a ``module:attribute`` address: the name may come from
    a configuration file in an untrusted working folder, which must not be able to run code.
    """
    # ``get`` would accept an address as well
    if name not in registry.encoders:
        raise unknown("encoder", name, registry.encoders.names())
    files = Path(folder) if folder else card_folder(name, builtins.cache)
    setup = EncoderSetup(name, files, builtins)
    encoder: ImageEncoder = registry.encoders.get(name)(setup)
    if not isinstance(encoder, ImageEncoder):
        raise ConfigError(
            f"{name} is not an image encoder; it needs name, key, dim, size and images()", key=name
        )
    return encoder


def open_image_text_encoder(
    name: str, builtins: BuiltIns, *, folder: Path | str = ""
) -> ImageTextEncoder:
    """The same for search, which needs pictures and texts in one space."""
    encoder = open_encoder(name, builtins, folder=folder)
    if not isinstance(encoder, ImageTextEncoder):
        raise ConfigError(
            f"{name} encodes pictures only; search needs an encoder for pictures and texts, "
            "such as conse or clip-vit-base-patch32",
            key="perception.images",
        )
    return encoder


def card_folder(name: str, cache: Path) -> Path:
    """Where ``longtake models pull`` puts an encoder's files."""
    return cache / "models" / name
