"""The usual models by their usual names: ``gpt-…``, ``gemini-…``, ``claude-…``, ``ollama/…``.

A preset turns a name into a model entry: the vendor's address, the variable that holds its key, and
what its documentation says about context and pictures. Naming such a model is the choice to use it;
a preset is never chosen by itself. An entry of the same name in the configuration is laid over it.

No prices: they change, and an outdated one would put wrong figures into every report. Set
``price_in``, ``price_out`` and ``price_source`` under ``[models."NAME"]``.
"""

from __future__ import annotations

from dataclasses import dataclass

from longtake.config.entries import Form, OpenAIEntry


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
    """Tokens that its current models hold at least; 0: the server tells."""
    images: int = 0
    """Most pictures in a request; 0: unlimited, or learned from the server's complaint."""
    form: Form = ""
    """The strictest way of asking for a typed reply that the vendor documents as kept."""
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
        # a vendor's prefix is part of the model's name, a server's only says where the model is
        model = name.removeprefix(self.begins) if self.is_server else name
        return OpenAIEntry(
            model=model,
            base_url=self.base_url,
            api_key_env=self.key_env,
            context=self.context,
            images=self.images,
            form=self.form,
        )


def _server(label: str, prefix: str, port: int, source: str = "") -> Preset:
    return Preset(label, prefix, f"http://127.0.0.1:{port}/v1", source=source, port=port)


# Sources were looked up on 2026-11-16, through a search of stored documentation; vendors without a
# page of their own there are named by the page that quotes them. No vendor was called.
PRESETS: tuple[Preset, ...] = (
    Preset(
        "OpenAI",
        "gpt-",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        context=128_000,  # gpt-4o; later models hold more
        source="https://vercel.com/ai-gateway/models/gpt-4o.md",
    ),
    Preset(
        "Google",
        "gemini-",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        images=900,  # Gemini 3 Pro; others take 3,000
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
        form="tool",  # response_format is ignored
        source="https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk and "
        "https://platform.claude.com/docs/en/build-with-claude/vision.md",
    ),
    _server("Ollama", "ollama/", 11434, "https://docs.ollama.com/api/openai-compatibility.md"),
    # the usual ports of the others, not looked up
    _server("LM Studio", "lmstudio/", 1234),
    _server("vLLM", "vllm/", 8000),
    _server("llama.cpp", "llamacpp/", 8080),
    _server("SGLang", "sglang/", 30000),
)
NOT_HOSTED = ("gpt-oss",)
"""Names of open weights, which the vendor whose name they bear does not serve."""


def preset_of(name: str) -> Preset | None:
    """The preset that a model's name belongs to."""
    if name.startswith(NOT_HOSTED):
        return None
    for preset in PRESETS:
        if name.startswith(preset.begins) and len(name) > len(preset.begins):
            return preset
    return None


def preset_entry(name: str) -> OpenAIEntry | None:
    """The entry that a preset makes of a name."""
    preset = preset_of(name)
    return None if preset is None else preset.entry(name)
