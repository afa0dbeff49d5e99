"""Settings from defaults, files and the command line.

Later sources win: dataclass defaults < ``config.toml`` in the user's config folder <
``--config FILE`` < ``--set key=value``. Unknown keys are rejected with the nearest valid one.
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

from longtake.config.entries import (
    BUILTIN_MODELS,
    ModelEntry,
    field_names,
    overlay_entry,
    preset_entry,
)
from longtake.config.overlay import Layer, as_table, number, overlay
from longtake.errors import ConfigError, check_limit, unknown


@dataclass(frozen=True)
class CacheSettings:
    """``[cache]``: where derived data lives and how much of it is kept."""

    folder: str = ""
    """The store's folder; empty: ``$LONGTAKE_CACHE``, or else the platform's cache folder."""
    limit_gb: float = number(20.0, least=0, most=math.inf)
    """Above this size the least recently used films are dropped; ``inf``: never."""


@dataclass(frozen=True)
class MediaSettings:
    """``[media]``: limits on the resources that a film may use."""

    max_pixels: int = number(8192 * 4608, least=1)
    """Pixels per frame; larger films are refused (default: 8K and a little more)."""
    max_streams: int = number(64, least=1)
    """Streams per file."""
    max_subtitle_mb: float = number(16.0, above=0)
    """Size of a subtitle file."""
    workers: int = number(0, least=0, most=256)
    """Decoding threads; 0: one per core, at most 8 (on a GPU: 8 sessions)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where films are decoded; auto: on an NVIDIA GPU if PyTorch finds one (extra ``gpu``)."""


@dataclass(frozen=True)
class IndexSettings:
    """``[index]``: what ``longtake index`` computes."""

    fps: float = number(1.0, above=0, most=1000)
    """Frames analysed per second of film."""


@dataclass(frozen=True)
class PerceptionSettings:
    """``[perception]``: which models see, read and hear."""

    images: str = "conse"
    """Encoder for search, pictures and texts in one space: ``conse`` (built in), a card such as
    ``clip-vit-base-patch32``, ``transformers`` (a model folder, run by PyTorch), or one from an
    installed package."""
    images_folder: str = ""
    """Where that encoder's files are; empty: where ``longtake models pull`` puts them."""
    scene_encoder: str = "efficientnet-lite2"
    """Encoder whose features show where a film changes: the built-in one, or a card such as
    ``dinov2-small``."""
    scene_encoder_folder: str = ""
    """Where that encoder's files are; empty: where ``longtake models pull`` puts them."""
    retriever: str = ""
    """Folder of a trained head that scores clips against texts (``longtake train-retriever``);
    empty: a clip is the mean of its frames."""
    reranker: str = "ms-marco-minilm"
    """What decides whether lines answer a question: the built-in one (``longtake models pull
    reranker``), a larger one such as ``gte-reranker-modernbert-base``, or ``none``."""
    reranker_folder: str = ""
    """Where another reranker's files are; empty: where ``longtake models pull`` puts them."""
    listener: Literal["moonshine", "whisper", "none"] = "moonshine"
    """Speech recognition: built in (extra ``speech``), faster-whisper (extra ``whisper``), none."""
    whisper_model: str = ""
    """Folder or name of the faster-whisper model; empty: that of ``models pull whisper``."""
    reader: bool = True
    """Whether to read on-screen text."""
    threads: int = number(0, least=0, most=256)
    """Threads per model; 0: one per core, at most 8."""
    batch: int = number(0, least=0, most=4096)
    """Pictures encoded at once; 0: few on a CPU, more on a GPU."""
    compile: bool = False
    """Whether PyTorch compiles an encoder first (``transformers``): half a minute, worth it for a
    library rather than a film."""


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

    def __post_init__(self) -> None:
        # a negative or infinite limit would lift the limits that it is combined with
        for name, value in vars(self).items():
            check_limit(f"budget.{name}", value)


@dataclass(frozen=True)
class AnswerSettings:
    """``[answers]``: who answers, and what is done with an answer before it is given."""

    model: str = ""
    """The model for roles that ``--model`` does not fill; empty: the built-in ones."""
    verify: bool = True
    """Check the answer against the film and cite only moments that support it (one more call)."""
    min_confidence: float = number(0.0, least=0.0, most=1.0)
    """Withhold answers whose probability is below this or not known; 0: give every answer."""
    calibration: str = ""
    """File written by ``longtake calibrate``; empty: ``calibration.json`` beside the user's
    configuration, if it exists."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be configured, after all layers are merged."""

    cache: CacheSettings = CacheSettings()
    media: MediaSettings = MediaSettings()
    index: IndexSettings = IndexSettings()
    perception: PerceptionSettings = PerceptionSettings()
    models: Mapping[str, ModelEntry] = field(default_factory=lambda: dict(BUILTIN_MODELS))
    """Models by name; the class of an entry is that of its backend."""
    budget: BudgetSettings = BudgetSettings()
    answers: AnswerSettings = AnswerSettings()
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields per method, as written; the method's own class checks them."""


def user_config_file() -> Path:
    """The user's own configuration, ``config.toml`` in the platform's config folder."""
    return platformdirs.user_config_path("longtake", appauthor=False) / "config.toml"


def load(
    *, config: Path | None = None, assignments: Sequence[str] = (), method_names: Iterable[str] = ()
) -> Settings:
    """Read all layers, merge them and check the result."""
    layers = []
    user = user_config_file()
    if user.is_file():
        layers.append(Layer(_read(user), str(user)))
    if config is not None:
        layers.append(Layer(_read(config), str(config)))
    for text in assignments:
        layers.append(Layer(parse_assignment(text), f"--set {text}"))
    return merge(layers, method_names=method_names)


def merge(layers: Iterable[Layer], *, method_names: Iterable[str] = ()) -> Settings:
    """Return the defaults with each layer laid over them in turn."""
    settings = Settings()
    names = set(method_names)
    for layer in layers:
        settings = _overlay_sections(settings, layer, names)
        settings = _overlay_models(settings, layer)
        settings = _overlay_methods(settings, layer, names)
    return settings


def _overlay_sections(settings: Settings, layer: Layer, methods: set[str]) -> Settings:
    """Every section whose fields are fixed: all but the models and the methods."""
    if "methods" in layer.values:
        # a method's section has the method's own name: [videoagent], not [methods.videoagent]
        valid = field_names(Settings) - {"methods"} | methods
        raise unknown("key", "methods", valid, where=layer.source)
    elsewhere = methods | {"models"}
    sections = {key: value for key, value in layer.values.items() if key not in elsewhere}
    return overlay(settings, dataclasses.replace(layer, values=sections), also=methods)


def _overlay_models(settings: Settings, layer: Layer) -> Settings:
    """``[models.NAME]``: the fields of an entry depend on its backend."""
    entries = dict(settings.models)
    for name, value in as_table(layer.values.get("models", {}), "models", layer.source).items():
        values = as_table(value, f"models.{name}", layer.source)
        base = entries.get(name) or preset_entry(name)
        entries[name] = overlay_entry(base, name, dataclasses.replace(layer, values=values))
    return dataclasses.replace(settings, models=entries)


def _overlay_methods(settings: Settings, layer: Layer, names: set[str]) -> Settings:
    """``[METHOD]``: kept as written, for the method's own class to check."""
    methods = dict(settings.methods)
    for name in names & layer.values.keys():
        values = as_table(layer.values[name], name, layer.source)
        methods[name] = {**methods.get(name, {}), **values}
    return dataclasses.replace(settings, methods=methods)


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
    except (ValueError, RecursionError):
        value = raw.strip()
    for part in reversed(parts):
        value = {part: value}
    return typing.cast("dict[str, Any]", value)


def _key_parts(key: str) -> list[str]:
    """The parts of ``a.b``, empty for an invalid key; a part with dots is quoted, as in TOML."""
    try:
        node: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
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
    except (ValueError, RecursionError) as error:  # nesting and long numbers have limits, too
        raise ConfigError(f"{path}: invalid TOML ({error})") from error
