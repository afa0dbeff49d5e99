"""Models by name.

A name is an entry of the configuration, one that is built in, a member of a family such as
``lab/acuity=0.8``, or an endpoint given outright: ``http://127.0.0.1:8000/v1#model-name``. Nothing here is
used unless it is named: keys and servers that happen to exist are suggested and no more.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from longtake import registry
from longtake.config import ModelEntry, Settings, cache_folder
from longtake.errors import ConfigError, unknown
from longtake.models.backends.local import LocalChat, Weights
from longtake.models.backends.openai import OpenAIChat
from longtake.models.backends.socratic import SensesChat, SocraticChat
from longtake.models.cache import Cached, ReplyStore
from longtake.models.chat import Card, Chat, Options
from longtake.models.http import Endpoint, check_url, is_loopback
from longtake.models.layers import Gate, Limited, Retrying
from longtake.models.prices import HERE, price_of
from longtake.models.weights import DOWNLOADS
from longtake.models.witness import Witness

KEYS: Mapping[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "api.together.xyz": "TOGETHER_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""The key that belongs to a host and goes nowhere else."""
SERVERS: Mapping[int, str] = {
    11434: "Ollama",
    1234: "LM Studio",
    8000: "vLLM",
    8080: "llama.cpp",
    30000: "SGLang",
}
"""Ports of this machine where servers usually listen."""


class Catalogue:
    """Every model that can be named, opened when asked for."""

    def __init__(self, settings: Settings, *, offline: bool = False) -> None:
        self._entries = settings.models
        self._folder = cache_folder(settings) / "models"
        self._offline = offline
        self._backends: dict[str, Chat] = {}
        self._gates: dict[str, Gate] = {}

    def names(self) -> list[str]:
        """The names of all entries."""
        return sorted(self._entries)

    def entry(self, name: str) -> ModelEntry:
        """The entry a name stands for."""
        if name in self._entries:
            return self._entries[name]
        if name.startswith(("http://", "https://")):
            url, _, model = name.partition("#")
            if not model:
                raise ConfigError(
                    f"{name}: write the model after a #, as in {url}#model-name", key=name
                )
            return ModelEntry(model=model, base_url=url)
        raise unknown("model", name, [*self.names(), *(f"{family}/…" for family in registry.chats)])

    def file(self, name: str) -> Path:
        """Where the weights of a local model are, or will be."""
        entry = self.entry(name)
        if entry.file:
            return Path(entry.file).expanduser()
        if name not in DOWNLOADS:
            raise ConfigError(f"models.{name}: file is not set", key=f"models.{name}.file")
        return self._folder / DOWNLOADS[name].file

    def host(self, name: str) -> str:
        """Where a model's messages go beyond this machine; empty: they stay here."""
        if self._family(name):
            return ""
        entry = self.entry(name)
        if entry.backend == "socratic":
            return self.host(self._llm(name, entry))
        if entry.backend in ("local", "senses"):
            return ""
        url = check_url(name, entry.base_url, keyed=False)
        return "" if is_loopback(url.host) else url.host

    def open(
        self,
        name: str,
        *,
        witness: Witness | None = None,
        replies: ReplyStore | None = None,
        channels: Sequence[str] = (),
    ) -> Chat:
        """The model, ready to be asked: retried, held back, its replies kept where a store is given."""
        if family := self._family(name):
            made: Chat = registry.chats.get(family)(name.partition("/")[2])
            return Cached(made, replies) if replies else made
        entry = self.entry(name)
        if entry.backend == "socratic":
            if witness is None:
                raise ConfigError(
                    f"{name} sees through a film's perception; none is given here", key=name
                )
            card = Card(name, options=_options(entry), max_pixels=entry.max_pixels)
            llm = self.open(self._llm(name, entry))
            chat: Chat = SocraticChat(card, llm, witness, channels or entry.channels)
            return Cached(chat, replies) if replies else chat
        if (
            entry.backend == "senses"
        ):  # not cached: the film's store already keeps what was recognised
            if witness is None:
                raise ConfigError(f"{name} is a film's perception; no film is given here", key=name)
            return SensesChat(
                Card(name, options=_options(entry)), witness, channels or entry.channels
            )
        # what takes a local model too long once will do so again
        tries = 2 if entry.backend == "local" else 5
        chat = Retrying(Limited(self.backend(name), self._gate(name, entry)), tries=tries)
        return Cached(chat, replies) if replies else chat

    def backend(self, name: str) -> Chat:
        """The bare model behind a name, shared by all who open it."""
        host = self.host(name)
        if self._offline and host:
            raise ConfigError(
                f"{name} is at {host}, and --offline forbids to send anything there", key=name
            )
        if name not in self._backends:
            entry = self.entry(name)
            made = (
                self._local(name, entry)
                if entry.backend == "local"
                else self._endpoint(name, entry)
            )
            self._backends[name] = made
        return self._backends[name]

    def hosts(self, names: Sequence[str]) -> list[str]:
        """The hosts beyond this machine that messages go to; a run names them before it begins."""
        return sorted({host for name in names if (host := self.host(name))})

    def _family(self, name: str) -> str:
        family = name.partition("/")[0]
        return (
            family if name not in self._entries and "/" in name and family in registry.chats else ""
        )

    def _llm(self, name: str, entry: ModelEntry) -> str:
        if not entry.llm:
            raise ConfigError(
                f"models.{name}: llm is not set; name the text model", key=f"models.{name}.llm"
            )
        if self.entry(entry.llm).backend == "socratic":
            raise ConfigError(
                f"models.{name}: llm must name a text model", key=f"models.{name}.llm"
            )
        return entry.llm

    def _gate(self, name: str, entry: ModelEntry) -> Gate:
        where = entry.base_url or name
        limit = entry.concurrency or (1 if entry.backend == "local" else 8)
        return self._gates.setdefault(where, Gate(limit))

    def _local(self, name: str, entry: ModelEntry) -> Chat:
        file = self.file(name)
        mmproj = Path(entry.mmproj).expanduser() if entry.mmproj else None
        size = file.stat().st_size if file.is_file() else 0
        card = Card(
            name,
            model=file.name,
            context=entry.context or 4096,
            max_pixels=entry.max_pixels,
            vision=mmproj is not None,
            price=price_of(name, entry) or HERE,
            options=_options(entry),
            revision=f"{size}|{mmproj.name if mmproj else ''}",
        )
        weights = Weights(
            file,
            mmproj,
            context=entry.context or 4096,
            slots=max(1, entry.concurrency),
            threads=entry.threads,
            gpu_layers=entry.gpu_layers,
        )
        return LocalChat(card, weights, timeout=entry.timeout)

    def _endpoint(self, name: str, entry: ModelEntry) -> Chat:
        if not entry.base_url:
            raise ConfigError(f"models.{name}: base_url is not set", key=f"models.{name}.base_url")
        key_env = entry.api_key_env or self._bound_key(entry.base_url)
        if entry.api_key_env and not os.environ.get(key_env):
            raise ConfigError(
                f"{name}: the environment variable {key_env} holds no key", key=key_env
            )
        endpoint = Endpoint(
            name,
            entry.base_url,
            key_env=key_env,
            timeout=entry.timeout,
            connections=entry.concurrency or 8,
        )
        card = Card(
            name,
            model=entry.model or name,
            host=endpoint.host,
            context=entry.context or None,
            max_pixels=entry.max_pixels,
            price=price_of(name, entry),
            options=_options(entry),
        )
        return OpenAIChat(card, endpoint)

    def _bound_key(self, base_url: str) -> str:
        """The variable with the key of this very host, by the user's own entries first, then built in."""
        url = check_url(base_url, base_url, keyed=False)
        for entry in self._entries.values():
            if entry.api_key_env and entry.base_url:
                own = check_url(entry.base_url, entry.base_url, keyed=False)
                if (own.scheme, own.host, own.port) == (url.scheme, url.host, url.port):
                    return entry.api_key_env
        return KEYS.get(url.host, "") if url.scheme == "https" and url.port in (None, 443) else ""


def suggestions() -> list[str]:
    """Keys and servers found on this machine, as entries one could write; none of them is used."""
    found = [
        f"${variable} is set: a model at https://{host} could use it (base_url, api_key_env)"
        for host, variable in KEYS.items()
        if os.environ.get(variable)
    ]
    for port, server in SERVERS.items():
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                found.append(
                    f"something answers on port {port} ({server}?): http://127.0.0.1:{port}/v1#MODEL"
                )
    return found


def _options(entry: ModelEntry) -> Options:
    return replace(Options(), temperature=entry.temperature, max_tokens=entry.max_tokens)
