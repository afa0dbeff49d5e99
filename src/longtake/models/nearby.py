"""What this machine offers: API keys in the environment, model servers on their usual ports.

Finding something is not using it. Keys are looked up by name only, and a port is only tried for
whether anyone listens there; nothing is sent. What a server offers is listed once the user says so.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from longtake.errors import ModelError
from longtake.models.http import Endpoint
from longtake.models.keys import KEYS
from longtake.presets import PRESETS, Preset

CONNECT_SECONDS = 0.2
MOST_MODELS = 200
"""Models of one server that are listed."""
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
        attempt.settimeout(CONNECT_SECONDS)
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
    for entry in entries[:MOST_MODELS]:
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
