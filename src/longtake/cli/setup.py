"""``longtake setup`` and ``longtake doctor``."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from longtake import __version__
from longtake._util import replacing, visible
from longtake.cli.clips import PLAYERS
from longtake.cli.options import common
from longtake.cli.output import (
    Output,
    human_bytes,
    in_columns,
    on_terminal,
    prints_json,
    progress,
    say,
)
from longtake.cli.probes import download_size, probed_chat, pull_weights, report_lines
from longtake.config import Settings, user_config_file
from longtake.config.entries import Preset
from longtake.errors import ConfigError, ModelError
from longtake.index.store import Store
from longtake.llm.catalog import (
    Key,
    ModelCatalog,
    downloaded_vision,
    found_keys,
    found_servers,
    offered_models,
    recommended,
)
from longtake.llm.probe import ProbeReport, probe
from longtake.runner.assignment import DEFAULT_MODELS
from longtake.runner.films import open_store

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
"""A package by which each extra is recognised."""
NATIVE_SERVERS = ("llamacpp/", "ollama/")
NATIVE = (
    "a llama.cpp built for its processor read prompts 1.4 times as fast as the built-in runtime"
)
"""Measured with Qwen2.5 1.5B on x86-64 with AVX-512 (docs/performance.md)."""


@dataclass(frozen=True)
class Findings:
    """What was found on this machine; texts are empty if there is none."""

    keys: list[Key]
    servers: list[Preset]
    gpu: str
    browser: str
    player: str
    extras: list[str]
    """The installed extras."""
    has_weights: bool
    """Whether the built-in language model is downloaded."""
    vision: str
    """A downloaded model that sees."""
    model: str
    """The configured model."""


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
    listed = [(f"${key.variable}", f"set; for models at {key.host}") for key in findings.keys]
    for server in findings.servers:
        listed.append((server.label, f"running on port {server.port} of this machine"))
    weights = f"not downloaded ({download_size(BUILT_IN)})"
    if findings.has_weights:
        weights = "downloaded"
    return [
        *listed,
        ("built-in", f"{BUILT_IN}: {weights}"),
        ("vision", findings.vision or "no downloaded model"),
        ("GPU", findings.gpu or "none"),
        ("browser", findings.browser or "none (needed for 'longtake serve')"),
        ("player", findings.player or f"none ({' or '.join(PLAYERS)} opens films at a citation)"),
        ("extras", ", ".join(findings.extras) or "none"),
    ]


def findings_data(findings: Findings) -> dict[str, object]:
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
    """What to install or configure, most useful first."""
    usable = [each.label for each in findings.servers]
    usable += [f"${key.variable}" for key in findings.keys]
    larger = f"{', '.join(usable)} found, and no model is chosen: a larger model answers better"
    if any(each.begins in NATIVE_SERVERS for each in findings.servers):
        larger += f"; {NATIVE}"
    size = download_size(recommended("vision"))
    chosen, extras = bool(findings.model), findings.extras
    possible = [
        (not chosen and usable, larger, "longtake setup"),
        (
            not chosen and not usable and not findings.has_weights,
            "no language model is ready: questions cannot be answered yet",
            f"longtake models pull {BUILT_IN}",
        ),
        (
            not chosen and not findings.vision,
            f"no model here sees pictures: one that does is {size}",
            "longtake models pull vision",
        ),
        (
            "speech" not in extras,
            "speech of films without subtitles is not recognised",
            'pip install "longtake[speech]"',
        ),
        ("serve" not in extras, "the page is not installed", 'pip install "longtake[serve]"'),
        (
            findings.gpu and "gpu" not in extras,
            f"{findings.gpu} is not used for decoding and encoding",
            'pip install "longtake[gpu]"',
        ),
        (
            not findings.player,
            "no player for 'ask --open'",
            "apt install mpv  # or: brew install mpv",
        ),
    ]
    return [Advice(why, command) for applies, why, command in possible if applies]


def _first(programs: tuple[str, ...]) -> str:
    """The path of the first program that is installed, if any."""
    return next(filter(None, map(shutil.which, programs)), "")


def _gpu() -> str:
    """The name of the first NVIDIA GPU, if any."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""  # the driver does not work
    lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
    return lines[0].strip() if lines else ""


def write_setting(path: Path, section: str, key: str, value: str) -> None:
    """Set ``key`` in ``[section]`` to a text; comments and other settings stay.

    Raises, and changes nothing, if the file cannot be edited line by line.
    """
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    after = with_setting(before, section, key, value)
    expected = _parsed(before, path)
    expected.setdefault(section, {})[key] = value
    if _parsed(after, path) != expected:
        line = f"[{section}] {key} = {json.dumps(value)}"
        raise ConfigError(f"{path}: cannot be edited automatically; add this yourself: {line}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(after, encoding="utf-8")


def with_setting(text: str, section: str, key: str, value: str) -> str:
    """A TOML text with one more setting, or with another value for it."""
    # JSON strings without surrogates are valid TOML strings
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    header = re.search(rf"^[ \t]*\[\s*{section}\s*\][ \t]*(#.*)?$", text, re.M)
    if header is None:
        before = text.rstrip("\n")
        return f"{before}\n\n[{section}]\n{line}\n" if before else f"[{section}]\n{line}\n"
    # the section ends where the next one begins
    parts = re.split(r"^(?=[ \t]*\[)", text[header.end() :], maxsplit=1, flags=re.M)
    body, changed = re.subn(
        rf"^[ \t]*{key}[ \t]*=.*$", lambda _: line, parts[0], count=1, flags=re.M
    )
    parts[0] = body if changed else f"\n{line}{body or chr(10)}"
    return text[: header.end()] + "".join(parts)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: invalid TOML ({error})") from error


MOST_LISTED = 20
"""Maximum number of models of a server that are listed."""


@dataclass(frozen=True)
class ModelChoice:
    """A source of models: a server, a vendor, or the built-in one."""

    preset: Preset | None
    line: str
    """How it is listed, with where data would go."""
    model: str = BUILT_IN
    """The model, if there is no preset."""


def _complete(ctx: click.Context, _option: Any, shell: str | None) -> None:
    """Print a shell's completion script and exit."""
    if shell is None:
        return
    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(ctx.find_root().command, {}, "longtake", "_LONGTAKE_COMPLETE").source())
    ctx.exit()


@click.command()
@click.option(
    "--completion",
    type=click.Choice(("bash", "zsh", "fish")),
    is_eager=True,
    expose_value=False,
    callback=_complete,
    help="Print a completion script for this shell, and stop.",
)
@click.option("--model", "name", metavar="NAME", help="Use this model; see 'longtake models list'.")
@click.option(
    "--yes",
    is_flag=True,
    help="Ask nothing: use --model, else a server on this machine, else the built-in model.",
)
@common
def setup(name: str | None, yes: bool, settings: Settings) -> Output:
    """Find what is there, choose a model, try it, and write your configuration.

    Looks for API keys in the environment, for Ollama, LM Studio, vLLM, llama.cpp and SGLang on
    their usual ports of this machine, and for a GPU, a browser and a player. Keys and servers are
    only used after you confirm; with --yes, a key is only used if --model names one of its models.
    Without a terminal and without --yes, nothing is used and nothing is written.

    \b
    Example:
      longtake setup
      longtake setup --model ollama/qwen2.5vl:7b --yes
      eval "$(longtake setup --completion bash)"    # put this line into ~/.bashrc
    """
    findings = look_around(settings)
    if not prints_json():
        click.echo("\n".join([*in_columns(described(findings)), ""]))
    # programs that use --json cannot answer questions
    if not yes and (prints_json() or not (sys.stdin.isatty() and on_terminal())):
        raise ConfigError("there is no terminal to ask on: pass --yes, or --yes --model NAME")
    file = user_config_file()
    try:
        chosen = name or _choose(findings, yes=yes)
        report = _try_out(chosen, settings, yes=yes, named=name is not None)
        if not yes:
            click.confirm(f"Write {chosen} to {file} as the model?", abort=True, default=True)
        write_setting(file, "answers", "model", chosen)
    except (click.Abort, KeyboardInterrupt):
        say("\nnothing was written")
        raise
    found = findings_data(findings)
    use = visible(f"\n{file} now sets {chosen} as the model. Try it:")
    how = '    longtake ask film.mp4 "What is this film about?"'
    data = {"found": found, "model": chosen, "report": report, "config": file}
    return Output(data, [*report_lines(report), use, how])


def choices(findings: Findings) -> list[ModelChoice]:
    """The sources of models, those on this machine first."""
    offered = [
        ModelChoice(server, f"{server.label}, on this machine (port {server.port})")
        for server in findings.servers
    ]
    for key in findings.keys:
        if key.preset is not None:
            line = f"{key.preset.label}: sends pictures and words to {key.host}, paid by your key"
            offered.append(ModelChoice(key.preset, f"{line} in ${key.variable}"))
    seeing = findings.vision or recommended("vision")
    for name, downloaded, what in (
        (BUILT_IN, findings.has_weights, "reads"),
        (seeing, bool(findings.vision), "sees pictures"),
    ):
        weights = "" if downloaded else f", downloads {download_size(name)}"
        offered.append(ModelChoice(None, f"{name}, on this machine: {what}{weights}", name))
    return offered


def _choose(findings: Findings, *, yes: bool) -> str:
    """The name of a model; asks for it unless ``yes``."""
    offered = choices(findings)
    if yes:
        # keys cost money, so --yes does not choose them
        free = [each for each in offered if each.preset is None or each.preset.is_server]
        return _model_of(free[0], yes=True)
    click.echo("Which model should answer?")
    for number, each in enumerate(offered, start=1):
        click.echo(f"  {number}  {each.line}")
    number = click.prompt("Number", type=click.IntRange(1, len(offered)), default=1)
    return _model_of(offered[number - 1], yes=False)


def _model_of(choice: ModelChoice, *, yes: bool) -> str:
    """One of the models of a choice; a server is asked for its models, since it was chosen."""
    if choice.preset is None:
        return choice.model
    preset = choice.preset
    names = offered_models(preset)
    if not names:
        why = f"{preset.base_url} has no chat model"
        raise ModelError(preset.label, "unavailable", why)
    if yes or len(names) == 1:
        return names[0]
    for each in names[:MOST_LISTED]:
        click.echo(visible(f"  {each}"))
    if len(names) > MOST_LISTED:
        click.echo(f"  … and {len(names) - MOST_LISTED} more")
    known = click.Choice(names)
    return str(click.prompt("Model", type=known, default=names[0], show_choices=False))


def _try_out(name: str, settings: Settings, *, yes: bool, named: bool) -> ProbeReport:
    """Probe a model after confirmation; raises if it does not answer."""
    catalogue = ModelCatalog(settings)
    if download_size(name) and not catalogue.file(name).is_file():
        if not yes:
            click.confirm(f"{name}: download {download_size(name)}?", abort=True, default=True)
        pull_weights(name, settings)
    catalogue.check([name])
    host = catalogue.host(name)
    # the list of choices already says where the model is
    if not yes and (host or named):
        questions = "a few short questions, two of them with a plain picture"
        click.confirm(f"Ask {name} at {host or 'this machine'} {questions}?", abort=True)
    elif host:
        say(f"asking {host}")
    with progress(f"trying {name}"):
        report = probe(probed_chat(catalogue, name))
    if not report.reachable:
        raise ModelError(name, "unavailable", report.problem.removeprefix(f"{name}: "))
    return report


PACKAGES = ("av", "numpy", "pillow", "pydantic", "pysubs2")
"""Packages whose versions matter most for a report of a problem."""


@click.command()
@common
def doctor(settings: Settings) -> Output:
    """Show what is installed, configured and available, and what to do next.

    \b
    Example:
      longtake doctor
    """
    findings = look_around(settings)
    advice = advise(findings)
    cache = _cache_state(open_store(settings))
    used, limit, free = (cache[name] for name in ("bytes", "limit_bytes", "free_bytes"))
    if used > limit:
        advice.insert(0, Advice("the cache is over its limit", "longtake cache clear --all"))
    # with less, indexing a long film or downloading a model may fail
    if free < 2e9:
        why = f"only {human_bytes(free)} are free where the cache is"
        advice.insert(0, Advice(why, "longtake cache list"))
    packages = {name: version(name) for name in PACKAGES}
    space = f"{human_bytes(used)} of {human_bytes(limit)}, {human_bytes(free)} free on its disk"
    python, system = platform.python_version(), platform.platform()
    configs = [path for path in (user_config_file(),) if path.is_file()]
    data = {
        "longtake": __version__,
        "python": python,
        "platform": system,
        "packages": packages,
        "config_files": configs,
        "cache": cache,
        "found": findings_data(findings),
        "advice": advice,
    }
    rows = [
        ("longtake", __version__),
        ("python", f"{python} ({sys.executable})"),
        ("platform", system),
        *packages.items(),
        ("config", ", ".join(map(str, configs)) or f"none (yours would be {user_config_file()})"),
        ("cache", cache["problem"] or f"{cache['folder']}: {space}"),
        ("model", findings.model or "the built-in ones"),
        *described(findings),
    ]
    to_do = [visible(f"{each.why}:\n    {each.command}") for each in advice]
    ready = 'everything is ready: longtake ask FILM "QUESTION"'
    return Output(data, [*in_columns(rows), "", *(to_do or [ready])])


def _cache_state(store: Store) -> dict[str, Any]:
    """The cache's size, its limit, and the room on its disk."""
    # the folder is created on first use
    parents = (store.root, *store.root.parents)
    free = shutil.disk_usage(next(folder for folder in parents if folder.exists())).free
    used, problem = 0, ""
    try:
        used = sum(film.bytes for film in store.films())
    # shown rather than raised, since doctor is for finding such problems
    except ConfigError as error:
        problem = str(error)
    limit = store.limit_bytes
    sizes = {"bytes": used, "limit_bytes": limit, "free_bytes": free}
    return {"folder": store.root, **sizes, "problem": problem}
