"""Model entries: ``[models.NAME]`` in the configuration.

Each backend takes its own fields, declared by a dataclass that extends :class:`ModelEntry`. The
classes of the built-in backends are here, so that a configuration can be checked without importing
any model code. The class of a backend from another package belongs to that package: its entries are
kept as written (:class:`PluginEntry`) and checked when the model is opened.

A :class:`Preset` turns a usual name (``gpt-…``, ``gemini-…``, ``ollama/…``) into an entry: the
vendor's address, the variable that holds its key, and what its documentation says about context and
pictures. Naming such a model is the choice to use it; a preset is never chosen by itself. An entry
of the same name in the configuration is laid over it. Presets have no prices, because an outdated
one would put wrong figures into every report: set ``price_in``, ``price_out`` and ``price_source``
under ``[models."NAME"]``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from longtake import registry
from longtake.config.overlay import Layer, number, overlay
from longtake.errors import ConfigError, unknown

E = TypeVar("E", bound="ModelEntry")

DEFAULT_BACKEND = "openai"
Form: TypeAlias = Literal["", "json_schema", "plain"]
"""Whether typed replies are asked for with a schema; empty: as long as it is not refused."""
Show: TypeAlias = Literal["pictures", "sheets", "video"]
"""What several frames of one step are sent as: each alone, nine to a contact sheet, or a video."""
VideoPart: TypeAlias = Literal["", "video_url", "input_video", "file"]
"""The part of a message that holds a video; empty: ``video_url``."""


@dataclass(frozen=True)
class ModelEntry:
    """The fields that entries of all backends share."""

    backend: str = DEFAULT_BACKEND
    """A built-in backend, one of an installed package, or the address ``module:Class`` of one."""
    context: int = number(0, least=0)
    """Tokens of prompt and reply together; 0: as the model or endpoint reports, else unknown."""
    max_tokens: int = number(1024, least=1)
    """Maximum tokens of one reply."""
    temperature: float = number(0.0, least=0)
    max_pixels: int = number(768 * 768, least=1)
    """Pictures are scaled down to this many pixels before they are sent."""
    picture_tokens: int = number(0, least=0)
    """Most tokens of one picture; 0: as many as its size suggests."""
    show: Show = "pictures"
    """What several frames of one step are sent as: ``pictures``, ``sheets`` (nine frames on each)
    or a ``video``."""
    clip_frames: int = number(0, least=0, most=10_000)
    """With ``show = "video"``: where the film has at most this many frames between the first and
    the last that a step shows, all of them are sent, at the film's own rate."""
    concurrency: int = number(0, least=0, most=1024)
    """Maximum calls at once, lowered while the endpoint is overloaded; 0: the backend's default."""
    timeout: float = number(120.0, above=0)
    """Seconds that one try may take."""
    price_in: float | None = number(None, least=0)
    """US dollars per million prompt tokens; unset: unknown."""
    price_cached: float | None = number(None, least=0)
    """The same for prompt tokens served from a prefix cache; unset: as ``price_in``."""
    price_out: float | None = number(None, least=0)
    """US dollars per million reply tokens."""
    price_source: str = ""
    """Where the price was published, and when."""


@dataclass(frozen=True)
class OpenAIEntry(ModelEntry):
    """A model on a server that speaks the OpenAI chat-completions protocol."""

    backend: str = "openai"
    model: str = ""
    """The model's name on the server; empty: the name of the entry."""
    base_url: str = ""
    """The server's address, up to and including ``/v1``."""
    api_key_env: str = ""
    """The environment variable that holds the key; the key is sent to ``base_url`` only."""
    images: int = number(0, least=0)
    """Most pictures in a request; 0: as many as a step shows."""
    form: Form = ""
    """``plain``: typed replies are asked for in words only, without a schema."""
    video: VideoPart = ""
    """The part that holds a video, for ``show = "video"``; empty: ``video_url``."""


@dataclass(frozen=True)
class LocalEntry(ModelEntry):
    """A GGUF file that runs in this process."""

    backend: str = "local"
    file: str = ""
    """The GGUF file; empty: the one that ``longtake models pull`` fetches."""
    mmproj: str = ""
    """The projector file that lets the model see pictures."""
    threads: int = number(0, least=0, most=256)
    """CPU threads; 0: one per core."""
    gpu_layers: int = number(-1, least=-1)
    """Layers on the GPU, if the installed runtime supports one; -1: as many as fit."""


@dataclass(frozen=True)
class SocraticEntry(ModelEntry):
    """A text model that reads what perception recognises in the pictures."""

    backend: str = "socratic"
    llm: str = ""
    """The name of the text model."""
    channels: tuple[str, ...] = ()
    """What it perceives, of ``tags``, ``onscreen``, ``speech``; empty: all of them."""


@dataclass(frozen=True)
class SensesEntry(ModelEntry):
    """Perception alone: it describes pictures and does nothing else."""

    backend: str = "senses"
    channels: tuple[str, ...] = ()
    """What it perceives, of ``tags``, ``onscreen``, ``speech``; empty: all of them."""


@dataclass(frozen=True)
class ScriptedEntry(ModelEntry):
    """A model that gives fixed replies, for tests and examples."""

    backend: str = "scripted"
    replies: tuple[str, ...] = ()
    """Its replies, in order; asking for more than these is an error."""


@dataclass(frozen=True)
class LabEntry(ModelEntry):
    """A simulated model of the laboratory."""

    backend: str = "lab"
    model: str = ""
    """Its parameters, as in ``lab/acuity=0.8,seed=3`` without ``lab/``."""


@dataclass(frozen=True)
class PluginEntry(ModelEntry):
    """An entry of a backend from another package, kept as written until :func:`checked`."""

    given: tuple[Layer, ...] = ()
    """The values of the entry, layer by layer."""


ENTRIES: Mapping[str, type[ModelEntry]] = {
    "openai": OpenAIEntry,
    "local": LocalEntry,
    "socratic": SocraticEntry,
    "senses": SensesEntry,
    "scripted": ScriptedEntry,
    "lab": LabEntry,
}
"""The entry class of each built-in backend."""

FRAME_PIXELS: Mapping[str, int] = {
    # at most 768 tokens, each 32 or 28 pixels wide (QwenLM/Qwen3-VL, qwen-vl-utils)
    "qwen3vl": 768 * 32 * 32,
    "qwen25vl": 768 * 28 * 28,
    # its tiles; frames of videos are not to be enlarged (transformers, model_doc/smolvlm.md)
    "smolvlm": 512 * 512,
    # https://ai.google.dev/gemma/docs/capabilities/vision
    "gemma3n": 768 * 768,
    "gemma3": 896 * 896,
    # two slices of 448 × 448, as its README does with videos (OpenBMB/MiniCPM-V)
    "minicpmv": 2 * 448 * 448,
}
"""Pixels of a frame of a film, by the letters and digits in a model's name, as its makers say."""
GEMMA_TOKENS = 256
"""Of any picture, for Gemma 3 (the same page)."""


def _sees(max_pixels: int, picture_tokens: int = 0) -> LocalEntry:
    return LocalEntry(
        context=8192,
        max_tokens=512,
        timeout=900.0,
        max_pixels=max_pixels,
        picture_tokens=picture_tokens,
    )


# A laptop reads some tens of tokens a second (docs/models.md), and pictures are most of them. So
# Qwen's have 256 tokens, the fewest that its card recommends, and MiniCPM's one slice.
BUILTIN_MODELS: Mapping[str, ModelEntry] = {
    "local/qwen2.5-coder-1.5b": LocalEntry(context=8192, max_tokens=512, timeout=900.0),
    "local/smollm2-135m": LocalEntry(context=4096, max_tokens=256, timeout=300.0),
    "local/qwen3-1.7b": LocalEntry(context=8192, max_tokens=512, timeout=900.0),
    "local/qwen3-4b": LocalEntry(context=8192, max_tokens=512, timeout=900.0),
    "local/smolvlm2-500m": _sees(FRAME_PIXELS["smolvlm"]),
    "local/smolvlm2-2.2b": _sees(FRAME_PIXELS["smolvlm"]),
    "local/qwen3-vl-2b": _sees(256 * 32 * 32),
    "local/qwen3-vl-4b": _sees(256 * 32 * 32),
    "local/qwen2.5-vl-3b": _sees(256 * 28 * 28),
    "local/gemma-3-4b": _sees(FRAME_PIXELS["gemma3"], GEMMA_TOKENS),
    "local/minicpm-v-4": _sees(448 * 448),
    "socratic/qwen2.5-coder-1.5b": SocraticEntry(llm="local/qwen2.5-coder-1.5b"),
    "senses": SensesEntry(),
    "senses/words": SensesEntry(channels=("onscreen", "speech")),
    "socratic/reader": SocraticEntry(llm="local/qwen2.5-coder-1.5b", channels=("onscreen",)),
    "socratic/listener": SocraticEntry(llm="local/qwen2.5-coder-1.5b", channels=("speech",)),
    "socratic/looker": SocraticEntry(llm="local/qwen2.5-coder-1.5b", channels=("tags",)),
}
"""The models that are available without configuration; all of them run on this machine."""
RENAMED_MODELS: Mapping[str, str] = {
    "local/qwen2.5-1.5b": "local/qwen2.5-coder-1.5b",
    "socratic/qwen2.5-1.5b": "socratic/qwen2.5-coder-1.5b",
}
"""Models of version 0.2 and their present names."""


def check_name(name: str) -> None:
    """Reject the former name of a model."""
    if name in RENAMED_MODELS:
        raise ConfigError(f"the model {name} is now {RENAMED_MODELS[name]}", key=name)


def overlay_entry(old: ModelEntry | None, name: str, layer: Layer) -> ModelEntry:
    """Return the entry ``name`` with one layer's values laid over it.

    An entry whose backend changes starts afresh: the old backend's fields mean nothing to the new
    one.
    """
    check_name(name)
    path = f"models.{name}."
    before = old or OpenAIEntry()
    # the backend decides which other fields are valid, so it is read first
    chosen = {key: value for key, value in layer.values.items() if key == "backend"}
    marked = ModelEntry(backend=before.backend)
    backend = overlay(marked, dataclasses.replace(layer, values=chosen), path=path).backend
    kind = _kind(backend, layer.source)
    base = before if type(before) is kind and before.backend == backend else kind(backend=backend)
    if isinstance(base, PluginEntry):
        # shared fields are checked now, the others when the model is opened
        shared = field_names(ModelEntry)
        values = {key: value for key, value in layer.values.items() if key in shared}
        entry = overlay(base, dataclasses.replace(layer, values=values), path=path)
        return dataclasses.replace(entry, given=(*base.given, layer))
    _check_backend_of_keys(kind, backend, layer, path)
    return overlay(base, layer, path=path)


def checked(entry: ModelEntry, kind: type[E], name: str) -> E:
    """Return an entry as the class of its backend, with all values checked."""
    if isinstance(entry, kind):
        return entry
    if not isinstance(entry, PluginEntry):
        raise ConfigError(
            f"models.{name}: backend {entry.backend!r} takes {kind.__name__}, "
            f"not {type(entry).__name__}",
            key=f"models.{name}",
        )
    result = kind(backend=entry.backend)
    for layer in entry.given:
        result = overlay(result, layer, path=f"models.{name}.")
    return result


def field_names(kind: type[Any]) -> set[str]:
    """The names of a dataclass's fields."""
    return {f.name for f in dataclasses.fields(kind)}


def _kind(backend: str, source: str) -> type[ModelEntry]:
    # decided without the registry, which would read the metadata of every installed package
    if backend in ENTRIES:
        return ENTRIES[backend]
    if not registry.backends.finds(backend):
        raise unknown("backend", backend, registry.backends, where=source)
    return PluginEntry


def _check_backend_of_keys(kind: type[ModelEntry], backend: str, layer: Layer, path: str) -> None:
    """Say which backend a field belongs to if it is not one of this backend's."""
    for key in layer.values.keys() - field_names(kind):
        for other, other_kind in ENTRIES.items():
            if key in field_names(other_kind):
                raise ConfigError(
                    f"{path}{key} in {layer.source} is a field of backend {other!r}, "
                    f"and this entry's backend is {backend!r}; set {path}backend first",
                    key=f"{path}{key}",
                )


@dataclass(frozen=True)
class Preset:
    """A vendor, or a server that people run on their own machine."""

    label: str
    begins: str
    """How the names of its models begin."""
    base_url: str
    key_env: str = ""
    """The variable that holds the key; empty: a server on this machine, which needs none."""
    context: int = 0
    """Minimum context of its current models in tokens; 0: the server reports it."""
    images: int = 0
    """Most pictures in a request; 0: not limited."""
    form: Form = ""
    """``plain`` where the vendor documents that schemas are ignored."""
    video: VideoPart = ""
    """The part that holds a video."""
    max_pixels: int = ModelEntry.max_pixels
    """Pixels of a picture that the vendor does not scale down, unless :data:`FRAME_PIXELS` knows
    the model."""
    source: str = ""
    """Where these facts are documented; empty: not looked up."""
    port: int = 0
    """The usual port of a server on this machine."""

    @property
    def pattern(self) -> str:
        """The names of its models, for people: ``gpt-…``."""
        return f"{self.begins}…"

    @property
    def is_server(self) -> bool:
        """Whether it is a server on this machine."""
        return self.port > 0

    def entry(self, name: str) -> OpenAIEntry:
        """The entry of one of its models."""
        # a vendor's prefix is part of the model's name, a server's prefix is not
        model = name.removeprefix(self.begins) if self.is_server else name
        plain = "".join(filter(str.isalnum, model.lower()))
        family = next((part for part in FRAME_PIXELS if part in plain), "")
        return OpenAIEntry(
            model=model,
            base_url=self.base_url,
            api_key_env=self.key_env,
            context=self.context,
            images=self.images,
            form=self.form,
            video=self.video,
            max_pixels=FRAME_PIXELS.get(family, self.max_pixels),
            picture_tokens=GEMMA_TOKENS if family == "gemma3" else 0,
        )


def _server(
    label: str, prefix: str, port: int, source: str = "", *, video: VideoPart = ""
) -> Preset:
    url = f"http://127.0.0.1:{port}/v1"
    return Preset(label, prefix, url, source=source, port=port, video=video)


# Sources were looked up on 2026-11-16, through a search of stored documentation; vendors without a
# page of their own there are named by the page that quotes them. No vendor was called.
PRESETS: tuple[Preset, ...] = (
    Preset(
        "OpenAI",
        "gpt-",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        context=128_000,  # gpt-4o; later models hold more
        max_pixels=768 * 1365,  # the shorter side is scaled to 768; the other one for 16:9
        source="https://vercel.com/ai-gateway/models/gpt-4o.md and "
        "https://docs.rs/crate/vision-squeezer/0.1.6",
    ),
    Preset(
        "Google",
        "gemini-",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        images=900,  # Gemini 3 Pro; others take 3,000
        video="file",  # as LiteLLM's page on video documents it for Gemini and vLLM alike
        source="https://docs.rs/aptu-core/0.2.4/aptu_core/ai/constant.GEMINI_API_URL.html and "
        "https://docs.cloud.google.com/vertex-ai/docs/generative-ai/image/image-captioning",
    ),
    Preset(
        "Anthropic",
        "claude-",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        context=200_000,  # the shorter of the two that the page on vision names
        images=100,  # of models with a context of 200,000; others take 600
        form="plain",  # response_format is ignored
        max_pixels=1_150_000,
        source="https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk and "
        "https://platform.claude.com/docs/en/build-with-claude/vision.md",
    ),
    _server("Ollama", "ollama/", 11434, "https://docs.ollama.com/api/openai-compatibility.md"),
    # the usual ports of the others, not looked up
    _server("LM Studio", "lmstudio/", 1234),
    # videos: vLLM's and SGLang's request classes, llama.cpp's tools/server/server-common.cpp
    _server("vLLM", "vllm/", 8000, video="video_url"),
    _server("llama.cpp", "llamacpp/", 8080, video="input_video"),
    _server("SGLang", "sglang/", 30000, video="video_url"),
)
NOT_HOSTED = ("gpt-oss",)
"""Names of open weights, which the vendor whose name they bear does not serve."""


def preset_entry(name: str) -> OpenAIEntry | None:
    """The entry of a model from the preset that its name belongs to, if there is one."""
    if name.startswith(NOT_HOSTED):
        return None
    for preset in PRESETS:
        if name.startswith(preset.begins) and len(name) > len(preset.begins):
            return preset.entry(name)
    return None
