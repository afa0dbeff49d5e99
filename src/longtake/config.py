"""Settings from defaults, files and the command line.

Later wins: dataclass defaults < ``config.toml`` in the user's config folder < ``longtake.toml`` in the
working folder < ``--config FILE`` < ``--set key=value``. An unknown key is an error that names the nearest
valid one.

A ``longtake.toml`` that came along with a folder of films is somebody else's file: it may tune a run, but
fields marked ``trusted`` (where frames are sent, and with which key) are refused there unless the user says
``--trust-config``.
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
from typing import Any, Literal, TypeVar

import platformdirs

from longtake.errors import ConfigError, unknown

T = TypeVar("T")


def trusted(default: Any) -> Any:
    """A field that only the user's own configuration may set."""
    return field(default=default, metadata={"trusted": True})


def number(default: float | None, *, trusted: bool = False, **bounds: float) -> Any:
    """A field with bounds, of ``least``, ``above`` and ``most``; infinite only where ``most`` is."""
    return field(default=default, metadata={"trusted": trusted, **bounds})


@dataclass(frozen=True)
class CacheSettings:
    """``[cache]``: where derived data lives and how much of it is kept."""

    folder: str = trusted("")
    """The store's folder; empty: ``$LONGTAKE_CACHE``, else the platform's cache folder."""
    limit_gb: float = number(20.0, least=0, most=math.inf)
    """Films that were not used for longest are dropped above this size; ``inf``: never."""


@dataclass(frozen=True)
class MediaSettings:
    """``[media]``: limits on what a film may ask of this machine."""

    max_pixels: int = number(8192 * 4608, least=1)
    """Pixels of one frame; a larger film is refused (default: 8K and a little more)."""
    max_streams: int = number(64, least=1)
    """Streams in one file."""
    max_subtitle_mb: float = number(16.0, above=0)
    """Size of one subtitle file."""
    workers: int = number(0, least=0)
    """Decoding threads; 0: one per core, at most 8."""


@dataclass(frozen=True)
class IndexSettings:
    """``[index]``: what ``longtake index`` computes."""

    fps: float = number(1.0, above=0, most=1000)
    """Frames looked at per second of film."""


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
    """``[budget]``: the most that one question may use; unset: no limit."""

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
    """Everything that can be configured, as it stands after all layers."""

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
    """One source of settings: a nested mapping, where it came from, and whether it is the user's own."""

    values: Mapping[str, Any]
    source: str
    trusted: bool = True


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
    """All layers, merged and checked."""
    layers = []
    user = user_config_file()
    if user.is_file():
        layers.append(Layer(_read(user), str(user)))
    working = Path("longtake.toml")
    if working.is_file():
        layers.append(Layer(_read(working), str(working), trusted=trust_working_folder))
    if config is not None:
        layers.append(Layer(_read(config), str(config)))
    layers.extend(Layer(parse_assignment(text), f"--set {text}") for text in assignments)
    return merge(layers, method_names=method_names)


def merge(layers: Iterable[Layer], *, method_names: Iterable[str] = ()) -> Settings:
    """Defaults with each layer laid over them in turn."""
    settings = Settings()
    names = set(method_names)
    for layer in layers:
        sections = {key: value for key, value in layer.values.items() if key not in names}
        if (
            "methods" in sections
        ):  # methods are written by their own names: [videoagent], not [methods.videoagent]
            raise unknown(
                "key", "methods", _keys(Settings) - {"methods"} | names, where=layer.source
            )
        settings = overlay(
            settings, sections, source=layer.source, trusted=layer.trusted, also=names
        )
        fields = {
            key: _mapping(layer.values[key], key, layer.source)
            for key in names & layer.values.keys()
        }
        merged = {
            name: {**settings.methods.get(name, {}), **values} for name, values in fields.items()
        }
        settings = dataclasses.replace(settings, methods={**settings.methods, **merged})
    return settings


def overlay(
    base: T,
    values: Mapping[str, Any],
    *,
    source: str,
    trusted: bool = True,
    path: str = "",
    also: Iterable[str] = (),
) -> T:
    """A copy of a dataclass with ``values`` laid over it; keys and types are checked."""
    hints = typing.get_type_hints(type(base))
    fields = {f.name: f for f in dataclasses.fields(base)}  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{path}{key}"
        if key not in fields:
            raise unknown("key", name, {f"{path}{k}" for k in fields} | set(also), where=source)
        if fields[key].metadata.get("trusted") and not trusted:
            raise ConfigError(
                f"{name} in {source} is not taken from a working folder; "
                "put it in your own configuration, or pass --trust-config",
                key=name,
            )
        old = getattr(base, key)
        entry = _entry_type(hints[key])
        if dataclasses.is_dataclass(old):
            changes[key] = overlay(
                old, _mapping(value, name, source), source=source, trusted=trusted, path=f"{name}."
            )
        elif entry is not None:
            table = dict(old)
            for item, fields_of_item in _mapping(value, name, source).items():
                table[item] = overlay(
                    table.get(item) or entry(),
                    _mapping(fields_of_item, f"{name}.{item}", source),
                    source=source,
                    trusted=trusted,
                    path=f"{name}.{item}.",
                )
            changes[key] = table
        else:
            changes[key] = coerce(hints[key], value, name=name, source=source)
            _check_number(name, changes[key], fields[key].metadata, source)
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


def coerce(hint: Any, value: Any, *, name: str, source: str) -> Any:
    """``value`` as the type a field declares, or an error that names the field."""
    from pydantic import (
        TypeAdapter,
        ValidationError,
    )  # late: half of the start-up time of a small command

    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise ConfigError(f"{name} = {value!r} in {source}: {problem}", key=name) from error


def _check_number(name: str, value: Any, bounds: Mapping[str, Any], source: str) -> None:
    """Refuse what lies outside a field's bounds, and what is no number at all."""
    if not isinstance(value, int | float):
        return
    problem = ""
    if isinstance(value, float) and not math.isfinite(value) and value != bounds.get("most"):
        problem = "must be a finite number"
    elif "least" in bounds and value < bounds["least"]:
        problem = f"must be {bounds['least']:g} or more"
    elif "above" in bounds and value <= bounds["above"]:
        problem = f"must be more than {bounds['above']:g}"
    elif "most" in bounds and value > bounds["most"]:
        problem = f"must be {bounds['most']:g} or less"
    if problem:
        raise ConfigError(f"{name} = {value} in {source}: {problem}", key=name)


def parse_assignment(text: str) -> dict[str, Any]:
    """``a.b=3`` as ``{"a": {"b": 3}}``; the value is read as TOML, and as plain text where it is none."""
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
    """``a.b`` as its parts; a part with dots of its own is quoted, as in TOML. Empty: not a key."""
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
        raise ConfigError(f"{path}: not valid TOML ({error})") from error


def _keys(kind: Any) -> set[str]:
    return {f.name for f in dataclasses.fields(kind)}


def _mapping(value: Any, name: str, source: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} in {source} is a table; write {name}.KEY = value", key=name)
    return value


def _entry_type(hint: Any) -> Any:
    """The dataclass of the entries of a ``Mapping[str, Entry]`` field, if it is one."""
    if typing.get_origin(hint) is not Mapping:
        return None
    kind = typing.get_args(hint)[1]
    return kind if dataclasses.is_dataclass(kind) else None
