"""Settings from defaults, files and the command line.

Later sources win: dataclass defaults < ``config.toml`` in the user's config folder <
``longtake.toml`` in the working folder < ``--config FILE`` < ``--set key=value``. Unknown keys are
rejected with the nearest valid one.

A ``longtake.toml`` that comes with a folder of films is somebody else's file. It may tune a run,
but fields marked ``trusted`` (where frames are sent, and with which key) are refused there unless
the user passes ``--trust-config``.
"""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import platformdirs

from longtake.errors import ConfigError, unknown
from longtake.overlay import as_table, number, overlay, trusted


@dataclass(frozen=True)
class CacheSettings:
    """``[cache]``: where derived data lives and how much of it is kept."""

    folder: str = trusted("")
    """The store's folder; empty: ``$LONGTAKE_CACHE``, or else the platform's cache folder."""
    limit_gb: float = number(20.0, least=0, most=math.inf)
    """Above this size the least recently used films are dropped; ``inf``: never."""


@dataclass(frozen=True)
class MediaSettings:
    """``[media]``: limits on what a film may demand of this machine."""

    max_pixels: int = number(8192 * 4608, least=1)
    """Pixels per frame; larger films are refused (default: 8K and a little more)."""
    max_streams: int = number(64, least=1)
    """Streams per file."""
    max_subtitle_mb: float = number(16.0, above=0)
    """Size of a subtitle file."""
    workers: int = number(0, least=0)
    """Decoding threads; 0: one per core, at most 8."""


@dataclass(frozen=True)
class IndexSettings:
    """``[index]``: what ``longtake index`` computes."""

    fps: float = number(1.0, above=0, most=1000)
    """Frames analysed per second of film."""


@dataclass(frozen=True)
class PerceptionSettings:
    """``[perception]``: which models see, read and hear."""

    encoder: str = "conse"
    """Pictures and texts in one space: ``conse`` (built in), or a card such as ``clip-vit-base-patch32``."""
    encoder_folder: str = trusted("")
    """Where a card's files lie; empty: where ``longtake models pull`` puts them."""
    retriever: str = trusted("")
    """Folder of a head that scores clips against texts, as ``longtake train-retriever`` writes it; empty: the
    mean of a clip's pictures is compared."""
    listener: Literal["moonshine", "whisper", "none"] = "moonshine"
    """Who hears speech: built in (extra ``speech``), faster-whisper (extra ``whisper``), or nobody."""
    whisper_model: str = trusted("")
    """Folder or name of the faster-whisper model."""
    reader: bool = True
    """Whether on-screen text is read."""
    threads: int = number(0, least=0)
    """Threads of one model; 0: one per core, at most 8."""
    batch: int = number(0, least=0)
    """Pictures encoded at once; 0: few on a CPU, more on a GPU."""


@dataclass(frozen=True)
class ModelEntry:
    """``[models.NAME]``: a model one can ask, and where it runs.

    What decides where pictures go, with which key, and at which price, is ``trusted``.
    """

    backend: Literal["openai", "local", "socratic", "senses"] = trusted("openai")
    """An OpenAI-compatible server, a GGUF file run here, a text model that sees through perception, or
    perception alone, which can describe a picture and do nothing else."""
    model: str = ""
    """The model's name at the endpoint; empty: the entry's own name."""
    base_url: str = trusted("")
    """Where the server is, up to and with ``/v1``."""
    api_key_env: str = trusted("")
    """The environment variable that holds the key; it is sent to ``base_url`` and nowhere else."""
    file: str = trusted("")
    """``local``: the GGUF file."""
    mmproj: str = trusted("")
    """``local``: the projector that lets it see pictures."""
    llm: str = trusted("")
    """``socratic``: the entry of the text model that does the talking."""
    channels: tuple[str, ...] = ()
    """``socratic``: what it perceives, of ``tags``, ``onscreen``, ``speech``; empty: all."""
    context: int = number(0, least=0)
    """Tokens of prompt and reply together; 0: what the model or the endpoint says, else unknown."""
    max_tokens: int = number(1024, least=1)
    """Most tokens of one reply."""
    temperature: float = number(0.0, least=0)
    max_pixels: int = number(768 * 768, least=1)
    """Pictures are scaled down to this many pixels before they are sent."""
    concurrency: int = number(0, least=0)
    """Most calls at once; fewer after an endpoint says it is overloaded. 0: eight, and one for ``local``."""
    timeout: float = number(120.0, above=0)
    """Seconds that one try may take."""
    threads: int = number(0, least=0)
    """``local``: threads; 0: one per core."""
    gpu_layers: int = number(-1, least=-1)
    """``local``: layers put on the GPU, where the installed runtime can use one; -1: as many as fit."""
    price_in: float | None = number(None, trusted=True, least=0)
    """US dollars per million prompt tokens; unset: unknown."""
    price_cached: float | None = number(None, trusted=True, least=0)
    """The same for prompt tokens that a prefix cache served; unset: as ``price_in``."""
    price_out: float | None = number(None, trusted=True, least=0)
    """US dollars per million tokens of the reply."""
    price_source: str = ""
    """Where the price was read, and when."""


BUILTIN_MODELS: Mapping[str, ModelEntry] = {
    "local/qwen2.5-1.5b": ModelEntry(backend="local", context=8192, max_tokens=512, timeout=900.0),
    "local/smollm2-135m": ModelEntry(backend="local", context=4096, max_tokens=256, timeout=300.0),
    "socratic/qwen2.5-1.5b": ModelEntry(backend="socratic", llm="local/qwen2.5-1.5b"),
    "senses": ModelEntry(backend="senses"),
    "senses/words": ModelEntry(backend="senses", channels=("onscreen", "speech")),
    "socratic/reader": ModelEntry(
        backend="socratic", llm="local/qwen2.5-1.5b", channels=("onscreen",)
    ),
    "socratic/listener": ModelEntry(
        backend="socratic", llm="local/qwen2.5-1.5b", channels=("speech",)
    ),
    "socratic/looker": ModelEntry(backend="socratic", llm="local/qwen2.5-1.5b", channels=("tags",)),
}
"""What can be used with nothing configured; everything here runs on this machine."""


@dataclass(frozen=True)
class BudgetSettings:
    """``[budget]``: limits per question; unset: no limit."""

    cost: float | None = number(None, above=0)
    """US dollars."""
    tokens: int | None = number(None, above=0)
    """Prompt and reply together."""
    frames: int | None = number(None, above=0)
    """Pictures shown to models."""
    seconds: float | None = number(None, above=0)
    calls: int | None = number(None, above=0)


@dataclass(frozen=True)
class Settings:
    """Everything that can be configured, after all layers are merged."""

    cache: CacheSettings = CacheSettings()
    media: MediaSettings = MediaSettings()
    index: IndexSettings = IndexSettings()
    perception: PerceptionSettings = PerceptionSettings()
    models: Mapping[str, ModelEntry] = field(default_factory=lambda: dict(BUILTIN_MODELS))
    budget: BudgetSettings = BudgetSettings()
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields per method, as written; the method's own class checks them."""


@dataclass(frozen=True)
class Layer:
    """One source of settings."""

    values: Mapping[str, Any]
    source: str
    """What error messages call it."""
    trusted: bool = True
    """Whether it is the user's own."""


def user_config_file() -> Path:
    """The user's own configuration, ``config.toml`` in the platform's config folder."""
    return platformdirs.user_config_path("longtake", appauthor=False) / "config.toml"


def load(
    *,
    config: Path | None = None,
    assignments: Sequence[str] = (),
    trust_working_folder: bool = False,
    method_names: Iterable[str] = (),
) -> Settings:
    """Read all layers, merge them and check the result."""
    layers = []
    user = user_config_file()
    if user.is_file():
        layers.append(Layer(_read(user), str(user)))
    working = Path("longtake.toml")
    if working.is_file():
        layers.append(Layer(_read(working), str(working), trusted=trust_working_folder))
    if config is not None:
        layers.append(Layer(_read(config), str(config)))
    for text in assignments:
        layers.append(Layer(parse_assignment(text), f"--set {text}"))
    return merge(layers, method_names=method_names)


def merge(layers: Iterable[Layer], *, method_names: Iterable[str] = ()) -> Settings:
    """Lay each layer over the defaults in turn."""
    settings = Settings()
    names = set(method_names)
    for layer in layers:
        sections = dict(layer.values)
        methods = {name: sections.pop(name) for name in names & sections.keys()}
        if "methods" in sections:
            # a method's section is its own name: [videoagent], not [methods.videoagent]
            known = {each.name for each in dataclasses.fields(Settings)} - {"methods"} | names
            raise unknown("key", "methods", known, where=layer.source)
        settings = overlay(
            settings, sections, source=layer.source, trusted=layer.trusted, also=names
        )
        merged = dict(settings.methods)
        for name, value in methods.items():
            fields = as_table(value, name, layer.source)
            merged[name] = {**merged.get(name, {}), **fields}
        settings = dataclasses.replace(settings, methods=merged)
    return settings


def parse_assignment(text: str) -> dict[str, Any]:
    """Parse ``a.b=3`` into ``{"a": {"b": 3}}``.

    The value is read as TOML, or taken as plain text if it is not valid TOML.
    """
    key, equals, raw = text.partition("=")
    parts = _key_parts(key)
    if not equals or not parts:
        raise ConfigError(f"--set {text}: write key=value, as in cache.limit_gb=5", key=text)
    try:
        value: Any = tomllib.loads(f"v = {raw.strip()}")["v"]
    except tomllib.TOMLDecodeError:
        value = raw.strip()
    for part in reversed(parts):
        value = {part: value}
    return typing.cast("dict[str, Any]", value)


def _key_parts(key: str) -> list[str]:
    """The parts of ``a.b``, empty for an invalid key; a part with dots is quoted, as in TOML."""
    try:
        node: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return []
    parts = []
    while isinstance(node, dict):
        ((part, node),) = node.items()
        parts.append(part)
    return parts


def cache_folder(settings: Settings) -> Path:
    """Where derived data lives."""
    chosen = settings.cache.folder or os.environ.get("LONGTAKE_CACHE", "")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("longtake", appauthor=False)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: invalid TOML ({error})") from error
