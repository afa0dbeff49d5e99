"""Backends: ways to reach models, and what they are given to open one.

Text models see pictures through a :class:`FrameDescriber`, which says what perception recognises.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from longtake._util.cancellation import check_stop
from longtake.config.entries import ModelEntry
from longtake.errors import unknown
from longtake.llm.chat import Card, Chat, Options, Unavailable, price_of
from longtake.types import Frame

CHANNELS = ("tags", "onscreen", "speech")
"""Things in the picture, text in the picture, words spoken around it."""
LIMITS = {"tags": 80, "onscreen": 160, "speech": 160}
"""Characters per channel, so that 32 described pictures fit into a context of 8192 tokens."""


@dataclass(frozen=True, slots=True)
class Description:
    """What perception recognises at one moment."""

    tags: tuple[str, ...] = ()
    onscreen: tuple[str, ...] = ()
    speech: tuple[str, ...] = ()

    def lines(self, channels: Sequence[str]) -> dict[str, str]:
        """Each of these channels as one line within its limit."""
        texts = {
            "tags": ", ".join(self.tags),
            "onscreen": " | ".join(self.onscreen),
            "speech": " ".join(self.speech),
        }
        return {name: shorten(texts[name], LIMITS[name]) for name in CHANNELS if name in channels}


class FrameDescriber(Protocol):
    """Perceives moments of a film. The film's store keeps results, so asking twice is cheap."""

    @property
    def revision(self) -> str:
        """Changes whenever a picture would be described differently; part of the cache key."""

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """Return what these channels hold at the frame's time."""


class TimeLeft:
    """The rest of a call's time, checked before each picture because describing one is slow."""

    def __init__(self, model: str, deadline: float | None) -> None:
        self._model = model
        self._end = None if deadline is None else time.monotonic() + deadline

    def check(self) -> float | None:
        """Return the seconds left, or ``None`` without a deadline; raise when the time is up."""
        check_stop()
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise Unavailable(
                self._model, "the time was up while pictures were being described", out_of_time=True
            )
        return left


def check_channels(channels: Sequence[str]) -> tuple[str, ...]:
    """Return the channels to perceive, all of them by default; unknown names are rejected."""
    for channel in channels:
        if channel not in CHANNELS:
            raise unknown("channel", channel, CHANNELS)
    # no channels named means that nothing was restricted
    return tuple(channels) or CHANNELS


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a text longer than ``limit`` characters; line breaks become spaces."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    # the beginning and the end of a text say more than its middle
    half = (limit - 3) // 2
    return f"{flat[:half]} … {flat[-half:]}"


S = TypeVar("S", bound=ModelEntry)


class Models(Protocol):
    """The catalogue as a backend sees it, for backends that build on other models."""

    @property
    def entries(self) -> Mapping[str, ModelEntry]:
        """Every configured entry, as written."""

    def entry(self, name: str) -> ModelEntry:
        """The checked entry that a name stands for."""

    def host(self, name: str) -> str:
        """The host that a model's messages go to; empty: this machine."""

    def open(self, name: str) -> Chat:
        """Another model, with retries and limits but without cached replies."""


@dataclass(frozen=True)
class ModelRequest(Generic[S]):
    """Everything a backend needs to open one model."""

    name: str
    """The model's name in the catalogue."""
    entry: S
    """Its settings, checked against the backend's class."""
    folder: Path
    """Where downloaded weights are kept."""
    models: Models
    """The other models."""
    describer: FrameDescriber | None = None
    """Perceives the film in question; ``None`` if there is no film."""
    channels: tuple[str, ...] = ()
    """What a member of a team perceives, overriding the entry; empty: not overridden."""

    @property
    def options(self) -> Options:
        """How the model answers unless a step says otherwise."""
        return Options(temperature=self.entry.temperature, max_tokens=self.entry.max_tokens)

    def card(self, **facts: Any) -> Card:
        """The model's card, from its entry and the facts that the backend adds."""
        entry = self.entry
        card = Card(
            self.name,
            context=entry.context or None,
            max_pixels=entry.max_pixels,
            picture_tokens=entry.picture_tokens or None,
            show=entry.show,
            clip_frames=entry.clip_frames,
            price=price_of(self.name, entry),
            options=self.options,
        )
        return replace(card, **facts)


class Backend(ABC, Generic[S]):
    """A way to reach models. Subclasses have a constructor without arguments."""

    name: str
    settings: type[S]
    """The dataclass of the fields that its entries take."""
    tries: int = 5
    """How often a call is tried while it fails with :class:`~longtake.llm.chat.Unavailable`."""
    at_once: int = 8
    """Calls at once, unless the entry sets ``concurrency``; 0: no limit."""
    keeps_replies: bool = True
    """Whether replies may be kept in the reply cache."""
    perceives: bool = False
    """Whether it looks at the film (``ModelRequest.describer``); it is then opened per film."""

    @abstractmethod
    def host(self, model: ModelRequest[S]) -> str:
        """The host that messages are sent to; empty: they stay on this machine.

        Called before the model is opened, and without connecting anywhere.
        """

    @abstractmethod
    def open(self, model: ModelRequest[S]) -> Chat:
        """The model itself. It connects when it is first asked, not here."""

    def from_name(self, rest: str) -> S | None:  # noqa: ARG002 - for subclasses
        """The entry of the model named ``BACKEND/rest``; ``None``: there are no such models."""
        return None

    def needs(self, model: ModelRequest[S]) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """The names of other models that this one asks."""
        return ()

    def check(self, model: ModelRequest[S]) -> None:
        """Raise an error if something is missing that the user has to provide, such as a key.

        Called before the film is looked through, which can take long.
        """

    def endpoint(self, model: ModelRequest[S]) -> str:
        """Models with the same endpoint share one limit on calls at once."""
        return model.name

    def state(self, model: ModelRequest[S]) -> str:  # noqa: ARG002 - for subclasses
        """A few words for ``longtake models list``: what is ready, or what to do next."""
        return ""


class HereBackend(Backend[S]):
    """Models inside this process: nothing leaves it, and a call that fails would fail again."""

    tries = 1
    at_once = 0

    def host(self, model: ModelRequest[S]) -> str:  # noqa: ARG002 - for subclasses
        """Messages stay on this machine."""
        return ""


AnyBackend = Backend[Any]
