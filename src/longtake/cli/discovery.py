"""What is on this machine that longtake could use, found without using any of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from longtake._util import replacing
from longtake.cli.answers import PLAYERS
from longtake.config import Settings
from longtake.config.entries import Preset
from longtake.errors import ConfigError
from longtake.llm.catalog import (
    DOWNLOADS,
    HUB_MODELS,
    Download,
    Key,
    ModelCatalog,
    downloaded_vision,
    found_keys,
    found_servers,
    recommended,
)
from longtake.llm.chat import Chat
from longtake.llm.probe import ProbeReport
from longtake.llm.pull import Progress as ShowProgress
from longtake.llm.pull import pull_model
from longtake.runner.assignment import DEFAULT_MODELS

BUILT_IN = DEFAULT_MODELS["llm"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "firefox")
EXTRAS = {
    "speech": "moonshine_voice",
    "serve": "uvicorn",
    "mcp": "mcp",
    "report": "jinja2",
    "gpu": "torch",
    "ray": "ray",
}
"""A package of each extra, by whose presence the extra is recognised."""
NATIVE_SERVERS = ("llamacpp/", "ollama/")
NATIVE = (
    "a llama.cpp built for its processor read prompts 1.4 times as fast as the built-in runtime"
)
"""Measured with Qwen2.5 1.5B on x86-64 with AVX-512 (docs/performance.md)."""


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
    vision: str
    """A model that sees and is downloaded; empty: none."""
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
        has_weights=ModelCatalog(settings).file(BUILT_IN).is_file(),
        vision=downloaded_vision(settings),
        model=settings.answers.model,
    )


def described(findings: Findings) -> list[tuple[str, str]]:
    """Findings as rows of a table."""
    rows = [(f"${key.variable}", f"set; for models at {key.host}") for key in findings.keys]
    rows += [
        (server.label, f"something answers on port {server.port} of this machine")
        for server in findings.servers
    ]
    weights = (
        "downloaded" if findings.has_weights else f"not downloaded ({download_size(BUILT_IN)})"
    )
    return [
        *rows,
        ("built-in", f"{BUILT_IN}: {weights}"),
        ("sees", findings.vision or "none of the built-in models"),
        ("GPU", findings.gpu or "none"),
        ("browser", findings.browser or "none (needed for 'longtake serve')"),
        ("player", findings.player or f"none ({' or '.join(PLAYERS)} opens films at a citation)"),
        ("extras", ", ".join(findings.extras) or "none"),
    ]


def plain_findings(findings: Findings) -> dict[str, object]:
    """Findings for ``--json``."""
    return {
        "keys": [key.variable for key in findings.keys],
        "servers": [{"name": each.label, "port": each.port} for each in findings.servers],
        "gpu": findings.gpu or None,
        "browser": findings.browser or None,
        "player": findings.player or None,
        "extras": findings.extras,
        "built_in_downloaded": findings.has_weights,
        "vision": findings.vision or None,
        "model": findings.model or None,
    }


@dataclass(frozen=True)
class Advice:
    """Something to do, and the command that does it."""

    why: str
    command: str


def advise(findings: Findings) -> list[Advice]:
    """What would make longtake more useful here, most useful first."""
    advice = []
    if not findings.model and (findings.servers or findings.keys):
        what = [
            *(each.label for each in findings.servers),
            *(f"${key.variable}" for key in findings.keys),
        ]
        why = f"{', '.join(what)} found, and no model is chosen: a larger model answers better"
        if any(each.begins in NATIVE_SERVERS for each in findings.servers):
            why += f"; {NATIVE}"
        advice.append(Advice(why, "longtake setup"))
    elif not findings.model and not findings.has_weights:
        why = "no language model is ready: questions cannot be answered yet"
        advice.append(Advice(why, f"longtake models pull {BUILT_IN}"))
    if not findings.model and not findings.vision:
        size = download_size(recommended("vision"))
        why = f"nothing here looks at pictures: a model that does is {size}"
        advice.append(Advice(why, "longtake models pull vision"))
    if "speech" not in findings.extras:
        why = "speech of films without subtitles is not recognised"
        advice.append(Advice(why, 'pip install "longtake[speech]"'))
    if "serve" not in findings.extras:
        advice.append(Advice("the page is not installed", 'pip install "longtake[serve]"'))
    if findings.gpu and "gpu" not in findings.extras:
        why = f"{findings.gpu} is not used for decoding and encoding"
        advice.append(Advice(why, 'pip install "longtake[gpu]"'))
    if not findings.player:
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
        done = subprocess.run(command, capture_output=True, text=True, timeout=5.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""  # a driver that does not answer is no GPU that can be used
    lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
    return lines[0].strip() if lines else ""


def probed_chat(catalogue: ModelCatalog, name: str) -> Chat:
    """The model itself, without retries or cached replies, or the one that it relies on."""
    needed = catalogue.backend(name).needs(catalogue.opening(name))
    return catalogue.bare(needed[0] if needed else name)


def show_report(report: ProbeReport) -> None:
    """Print what a probe found."""
    words = {True: "yes", False: "no", None: "unknown"}
    click.echo(f"{report.model}: {'reachable' if report.reachable else 'not reachable'}")
    if report.reachable:
        click.echo(f"  JSON schema  {words[report.json_schema]}  {report.reply!r}")
        _show_form(report)
        dropped = ": pictures are accepted and left out" if report.drops_pictures else ""
        click.echo(f"  vision       {words[report.vision]}{dropped}")
        click.echo(f"  context      {report.context or 'unknown'}")
        click.echo(f"  latency      {report.seconds} s for a short reply")
        if report.reading and report.writing:
            speeds = f"reads {report.reading:g}, writes {report.writing:g} tokens/s"
            click.echo(f"  speed        {speeds}")


def _show_form(report: ProbeReport) -> None:
    """How typed replies are asked for, and what became of the other ways."""
    if not report.form:
        return
    tried = [f"{way}: {verdict}" for way, verdict in report.verdicts.items()]
    click.echo(f"  form         {report.form}  ({'; '.join(tried) or 'nothing else tried'})")
    offered = {True: "yes, one token", False: "no", None: "unknown"}
    click.echo(f"  log-probs    {offered[report.letters]}")


def pull_weights(name: str, settings: Settings, source: Path | None = None) -> Path:
    """Download the weights of a language model, or copy those of the hub from a folder."""
    with progress_bars() as begin:
        return pull_model(name, settings, source=source, begin=begin)


def download_size(name: str) -> str:
    """How much 'models pull NAME' downloads, for people; empty for other models."""
    known = DOWNLOADS.get(name) or HUB_MODELS.get(name)
    return "" if known is None else f"{known.size / 1e9:.1f} GB"


@contextmanager
def progress_bars() -> Iterator[Callable[[Download], ShowProgress]]:
    """Within the block, a bar on stderr for each download that is begun."""
    # imported late: rich is slow to import, and few commands need it
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:

        def begin(download: Download) -> ShowProgress:
            task = bar.add_task(download.file, total=download.size)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield begin


_HEADER = re.compile(r"^\s*\[")


def write_setting(path: Path, section: str, key: str, value: str) -> None:
    """Set ``key`` in ``[section]`` to a text; comments and other settings stay.

    Raises, and changes nothing, if the file is written in a way that cannot be edited line by line.
    """
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    after = with_setting(before, section, key, value)
    expected = _parsed(before, path)
    expected.setdefault(section, {})[key] = value
    if _parsed(after, path) != expected:
        line = f"[{section}] {key} = {json.dumps(value)}"
        raise ConfigError(f"{path}: cannot be edited safely; write there yourself: {line}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(after, encoding="utf-8")


def with_setting(text: str, section: str, key: str, value: str) -> str:
    """A TOML text with one more setting, or with another value for it."""
    # a JSON string is a valid TOML string as long as it holds no surrogates
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    header = re.compile(rf"^\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?$")
    start = next((place for place, each in enumerate(lines) if header.match(each)), None)
    if start is None:
        gap = [""] if lines and lines[-1].strip() else []
        return "\n".join([*lines, *gap, f"[{section}]", line, ""])
    setting = re.compile(rf"^\s*{re.escape(key)}\s*=")
    for place in range(start + 1, len(lines)):
        if _HEADER.match(lines[place]):
            break
        if setting.match(lines[place]):
            lines[place] = line
            return "\n".join([*lines, ""])
    lines.insert(start + 1, line)
    return "\n".join([*lines, ""])


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: invalid TOML ({error})") from error
