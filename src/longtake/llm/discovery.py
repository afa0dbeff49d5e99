"""Keys and model servers on this machine: which there are, and which key belongs to which host."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from longtake.config.entries import ModelEntry, OpenAIEntry
from longtake.config.vendors import PRESETS, Preset
from longtake.errors import ModelError
from longtake.llm.http import Endpoint, check_url

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
            if (other.scheme, other.host, other.port) == (url.scheme, url.host, url.port):
                return entry.api_key_env
    # on another port, or without encryption, it is not the vendor's own server
    is_vendor = url.scheme == "https" and url.port in (None, 443)
    return KEYS.get(url.host, "") if is_vendor else ""


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
    try:
        listed = endpoint.get("models")
    finally:
        endpoint.close()
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        raise ModelError(preset.label, "unreadable", f"{endpoint.host} lists no models")
    names = []
    # a list that is longer helps nobody to choose
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


def suggestions() -> list[str]:
    """Keys and servers on this machine, as names one could give; none of them is used."""
    lines = []
    for key in found_keys():
        use = f"a model at https://{key.host} could use it (base_url, api_key_env)"
        if key.preset is not None:
            use = f"--model {key.preset.pattern} would use it"
        lines.append(f"${key.variable} is set: {use}")
    for server in found_servers():
        lines.append(
            f"a server answers on port {server.port} ({server.label}?): --model {server.pattern}"
        )
    return lines
