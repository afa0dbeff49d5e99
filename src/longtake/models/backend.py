"""What a backend is: a way to reach models, registered by name.

A backend says which settings its entries take, where its messages go, and how to open a model. It
does not retry, limit, cache or check destinations: the catalogue does that around every backend,
built in or not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from longtake.entries import ModelEntry
from longtake.models.chat import Chat, Options

if TYPE_CHECKING:
    from longtake.models.witness import Witness

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
class Opening(Generic[S]):
    """Everything a backend needs to open one model."""

    name: str
    """The model's name in the catalogue."""
    entry: S
    """Its settings, checked against the backend's class."""
    folder: Path
    """Where downloaded weights are kept."""
    models: Models
    """The other models."""
    witness: Witness | None = None
    """Perceives the film in question; ``None`` if there is no film."""
    channels: tuple[str, ...] = ()
    """What a member of a team perceives, overriding the entry; empty: not overridden."""

    @property
    def options(self) -> Options:
        """How the model answers unless a step says otherwise."""
        return Options(temperature=self.entry.temperature, max_tokens=self.entry.max_tokens)


class Backend(ABC, Generic[S]):
    """A way to reach models. Subclasses have a constructor without arguments."""

    name: str
    settings: type[S]
    """The dataclass of the fields that its entries take."""
    tries: int = 5
    """How often a call is tried while it fails with :class:`~longtake.models.chat.Unavailable`."""
    at_once: int = 8
    """Calls at once, unless the entry sets ``concurrency``; 0: no limit."""
    keeps_replies: bool = True
    """Whether replies may be kept in the reply cache."""
    perceives: bool = False
    """Whether it looks at the film, through ``Opening.witness``; it is then opened per film."""

    @abstractmethod
    def host(self, model: Opening[S]) -> str:
        """The host that messages are sent to; empty: they stay on this machine.

        Called before the model is opened, and without connecting anywhere.
        """

    @abstractmethod
    def open(self, model: Opening[S]) -> Chat:
        """The model itself. It connects when it is first asked, not here."""

    def from_name(self, rest: str) -> S | None:  # noqa: ARG002 - for subclasses
        """The entry of the model named ``BACKEND/rest``; ``None``: there are no such models."""
        return None

    def needs(self, model: Opening[S]) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """The names of other models that this one asks."""
        return ()

    def check(self, model: Opening[S]) -> None:
        """Raise an error if something is missing that the user has to provide, such as a key.

        Called before the film is looked through, which can take long.
        """

    def endpoint(self, model: Opening[S]) -> str:
        """Models with the same endpoint share one limit on calls at once."""
        return model.name

    def state(self, model: Opening[S]) -> str:  # noqa: ARG002 - for subclasses
        """A few words for ``longtake models list``: what is ready, or what to do next."""
        return ""


AnyBackend = Backend[Any]
