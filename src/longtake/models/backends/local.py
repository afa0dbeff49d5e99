"""GGUF models run in this process.

``xllamacpp`` is llama.cpp's server inside the process. It is spoken to as any other server is, over
loopback, with a key made for this process alone: closing a connection is the one way to make it stop
working on a reply, and so a deadline holds here too. One server is shared by all that use the same file
with the same settings; all are closed when the process ends.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longtake.errors import ModelError
from longtake.models.backends.openai import OpenAIChat
from longtake.models.chat import Card, Message, Options, Reply
from longtake.models.http import Endpoint
from longtake.models.replies.reading import closing

MAGIC = b"GGUF"
PROMPT_CACHE_MB = 1024
"""Memory for prompts that other prompts have displaced, so that agents who take turns keep their prefixes."""


@dataclass(frozen=True)
class Weights:
    """A model on disk and how to run it."""

    file: Path
    mmproj: Path | None = None
    """The projector that lets it see pictures."""
    context: int = 4096
    slots: int = 1
    """Replies written at once, each with a context of its own."""
    threads: int = 0
    """0: one per core."""
    gpu_layers: int = -1
    """-1: as many as fit, where the installed runtime can use a GPU."""


class LocalChat:
    """A GGUF model; it is loaded when first asked."""

    def __init__(self, card: Card, weights: Weights, *, timeout: float = 900.0) -> None:
        self._card = card
        self._weights = weights
        self._timeout = timeout
        self._chat: OpenAIChat | None = None
        self._lock = threading.Lock()

    @property
    def card(self) -> Card:
        """What is known of it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask, loading the model first if need be; a reply under a schema is made to end in time."""
        if options.schema is not None:
            options = replace(options, schema=closing(options.schema, options.max_tokens))
        return self._open().complete(messages, options)

    def count(self, text: str) -> int | None:
        """Tokens by the model's own tokenizer."""
        return self._open().count(text)

    def offers(self, feature: str) -> bool:
        """Whether a feature was not yet seen to be refused."""
        return self._open().offers(feature)

    def context(self) -> int | None:
        """The context the model was loaded with."""
        return self._open().context()

    def _open(self) -> OpenAIChat:
        with self._lock:
            if self._chat is None:
                url, key = _serve(self._card.name, self._weights)
                self._chat = OpenAIChat(
                    self._card, Endpoint(self._card.name, url, key=key, timeout=self._timeout)
                )
            return self._chat


_servers: dict[Weights, tuple[Any, str]] = {}
_lock = threading.Lock()


def _serve(name: str, weights: Weights) -> tuple[str, str]:
    """Address and key of the server for these weights, started if none runs."""
    with _lock:
        if weights not in _servers:
            _servers[weights] = _start(name, weights)
        server, key = _servers[weights]
        return f"{server.listening_address}/v1", key


def close_all() -> None:
    """Close every server; using a model again loads it again."""
    with _lock:
        _servers.clear()  # the runtime shuts a server down when nothing refers to it


atexit.register(close_all)


def _start(name: str, weights: Weights) -> tuple[Any, str]:
    for file in filter(None, (weights.file, weights.mmproj)):
        _check(name, file)
    xllamacpp = _runtime()
    params = xllamacpp.CommonParams()
    params.model.path = str(weights.file)
    if weights.mmproj is not None:
        params.mmproj.path = str(weights.mmproj)
    params.n_parallel = weights.slots
    params.n_ctx = weights.context * weights.slots
    params.n_gpu_layers = weights.gpu_layers
    if weights.threads:
        params.cpuparams.n_threads = weights.threads
    params.cache_ram_mib = PROMPT_CACHE_MB
    params.verbosity = -1  # its log would run into the progress display
    params.ui = False
    params.offline = True
    # other users of this machine can reach its loopback too: without the key they get nothing
    key = secrets.token_urlsafe(24)
    params.api_keys = [key]
    params.cors_origins = "http://127.0.0.1"
    try:
        return xllamacpp.Server(params), key
    except Exception as error:
        raise ModelError(
            name, "unavailable", f"{weights.file.name} cannot be loaded ({error})"
        ) from error


def _runtime() -> Any:
    """The runtime, imported late: a hundred megabytes that only this needs.

    Its threads wait for one another by spinning. Where anything else wants the cores that is ruinous: on two
    shared cores a 135M model was measured at 1 token/s, and at 28 with waiting that sleeps.
    """
    chosen = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    finally:
        if chosen is None:
            del os.environ["OMP_WAIT_POLICY"]
    return xllamacpp


def _check(name: str, file: Path) -> None:
    """A file that is no GGUF could crash the runtime, and with it this process."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(MAGIC))
    except OSError as error:
        raise ModelError(
            name,
            "unavailable",
            f"{file} cannot be read ({error.strerror}); longtake models pull {name}",
        ) from error
    if magic != MAGIC:
        raise ModelError(name, "unavailable", f"{file} is not a GGUF file")
