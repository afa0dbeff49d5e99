"""Models of backends from other packages, held to the same rules as the built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from longtake.entries import ModelEntry
from longtake.errors import LongtakeError, ModelError
from longtake.models import destinations
from longtake.models.backend import AnyBackend, Backend, Opening
from longtake.models.chat import Chat, Message, Options, Reply, Unavailable
from longtake.models.destinations import DestinationRefused, Speaker
from longtake.models.layers import Layer


def open_foreign(backend: AnyBackend, model: Opening[Any], host: str) -> Foreign:
    """Open a model of another package's backend."""
    with destinations.speaking(Speaker(model.name, backend.name, host)):
        try:
            chat = backend.open(model)
        except LongtakeError:
            raise
        except Exception as error:
            detail = f"backend {backend.name!r} cannot open it: {type(error).__name__}: {error}"
            raise ModelError(model.name, "unavailable", detail) from error
    return Foreign(chat, name=model.name, backend=backend.name, host=host)


class Foreign(Layer):
    """A model of another package: it reaches its declared host only, and fails in known ways."""

    def __init__(self, inner: Chat, *, name: str, backend: str, host: str) -> None:
        super().__init__(inner)
        self._name, self._backend, self._host = name, backend, host

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask; broken connections become :class:`Unavailable`, which is retried."""
        with destinations.speaking(Speaker(self._name, self._backend, self._host)) as speaker:
            try:
                return self.inner.complete(messages, options)
            except Exception as error:
                refused = speaker.refused
                if refused is not None and error is not refused:
                    # libraries wrap the errors of their sockets: say what really happened
                    detail = refused.detail
                    raise DestinationRefused(self._name, refused.host, detail) from error
                # it raised one of our own errors on purpose
                if isinstance(error, LongtakeError):
                    raise
                detail = f"backend {self._backend!r} failed: {type(error).__name__}: {error}"
                if isinstance(error, OSError):  # ConnectionError and TimeoutError among them
                    raise Unavailable(self._name, detail) from error
                raise ModelError(self._name, "unavailable", detail) from error


class MakerBackend(Backend[ModelEntry]):
    """Deprecated: a function in the entry-point group ``longtake.models`` that makes models.

    It gets the rest of a model's name. It cannot declare a host, so its models may not leave this
    machine.
    """

    settings = ModelEntry

    def __init__(self, name: str, make: Callable[[str], Chat]) -> None:
        self.name = name
        self._make = make

    def host(self, model: Opening[ModelEntry]) -> str:  # noqa: ARG002 - it cannot say
        """None can be declared."""
        return ""

    def open(self, model: Opening[ModelEntry]) -> Chat:
        """What the function makes of the rest of the name."""
        return self._make(model.name.partition("/")[2])

    def from_name(self, rest: str) -> ModelEntry:  # noqa: ARG002 - it is read from the name
        """The name says everything."""
        return ModelEntry(backend=self.name)
