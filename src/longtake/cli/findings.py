"""What is on this machine that longtake could use, found without using any of it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec

from longtake.cli.clipping import PLAYERS
from longtake.config import Settings
from longtake.models.catalogue import Catalogue
from longtake.models.nearby import Key, found_keys, found_servers
from longtake.presets import Preset
from longtake.session.casting import DEFAULT_MODELS

BUILT_IN = DEFAULT_MODELS["llm"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "firefox")
GPU_SECONDS = 5.0
EXTRAS = {
    "speech": "moonshine_voice",
    "serve": "uvicorn",
    "mcp": "mcp",
    "library": "lancedb",
    "plot": "matplotlib",
    "report": "jinja2",
    "gpu": "torch",
    "ray": "ray",
}
"""A package of each extra, by whose presence the extra is recognised."""
NATIVE_SERVERS = ("llamacpp/", "ollama/")
NATIVE = (
    "a llama.cpp built for its processor read prompts 1.4 times as fast as the built-in runtime"
)
"""Measured with Qwen2.5 1.5B on x86-64 with AVX-512 (docs/evaluation.md)."""


@dataclass(frozen=True)
class Findings:
    """What was found."""

    keys: list[Key]
    servers: list[Preset]
    gpu: str
    """Its name; empty: none."""
    browser: str
    player: str
    extras: list[str]
    """The extras that are installed."""
    has_weights: bool
    """Whether the built-in language model is downloaded."""
    model: str
    """The configured model; empty: the built-in ones."""


def look_around(settings: Settings) -> Findings:
    """Look for keys, servers, a GPU, a browser, a player and extras."""
    return Findings(
        keys=found_keys(),
        servers=found_servers(),
        gpu=_gpu(),
        browser=_first(BROWSERS),
        player=_first(tuple(PLAYERS)),
        extras=[extra for extra, package in EXTRAS.items() if find_spec(package) is not None],
        has_weights=Catalogue(settings).file(BUILT_IN).is_file(),
        model=settings.answers.model,
    )


def described(found: Findings) -> list[tuple[str, str]]:
    """Findings as rows of a table."""
    rows = [(f"${key.variable}", f"set; for models at {key.host}") for key in found.keys]
    rows += [
        (server.label, f"something answers on port {server.port} of this machine")
        for server in found.servers
    ]
    weights = "downloaded" if found.has_weights else "not downloaded (1.1 GB)"
    return [
        *rows,
        ("built-in", f"{BUILT_IN}: {weights}"),
        ("GPU", found.gpu or "none"),
        ("browser", found.browser or "none (the page of 'longtake serve' needs one)"),
        ("player", found.player or f"none ({' or '.join(PLAYERS)} opens films at a citation)"),
        ("extras", ", ".join(found.extras) or "none"),
    ]


def plain_findings(found: Findings) -> dict[str, object]:
    """Findings for ``--json``."""
    return {
        "keys": [key.variable for key in found.keys],
        "servers": [{"name": each.label, "port": each.port} for each in found.servers],
        "gpu": found.gpu or None,
        "browser": found.browser or None,
        "player": found.player or None,
        "extras": found.extras,
        "built_in_downloaded": found.has_weights,
        "model": found.model or None,
    }


@dataclass(frozen=True)
class Advice:
    """Something to do, and the command that does it."""

    why: str
    command: str


def advise(found: Findings) -> list[Advice]:
    """What would make longtake more useful here, most useful first."""
    advice = []
    if not found.model and (found.servers or found.keys):
        what = [
            *(each.label for each in found.servers),
            *(f"${key.variable}" for key in found.keys),
        ]
        why = f"{', '.join(what)} found, and no model is chosen: a larger model answers better"
        if any(each.begins in NATIVE_SERVERS for each in found.servers):
            why += f"; {NATIVE}"
        advice.append(Advice(why, "longtake setup"))
    elif not found.model and not found.has_weights:
        why = "no language model is ready: questions cannot be answered yet"
        advice.append(Advice(why, f"longtake models pull {BUILT_IN}"))
    if "speech" not in found.extras:
        why = "films without subtitles are not heard"
        advice.append(Advice(why, 'pip install "longtake[speech]"'))
    if "serve" not in found.extras:
        advice.append(Advice("the page is not installed", 'pip install "longtake[serve]"'))
    if found.gpu and "gpu" not in found.extras:
        why = f"{found.gpu} is not used for decoding and encoding"
        advice.append(Advice(why, 'pip install "longtake[gpu]"'))
    if not found.player:
        advice.append(
            Advice("'ask --open' finds no player", "apt install mpv  # or: brew install mpv")
        )
    return advice


def _first(programs: tuple[str, ...]) -> str:
    """The path of the first program that is installed; empty if none is."""
    for program in programs:
        if path := shutil.which(program):
            return path
    return ""


def _gpu() -> str:
    """The name of the first NVIDIA GPU; empty without one."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GPU_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""  # a driver that does not answer is no GPU that can be used
    lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
    return lines[0].strip() if lines else ""
