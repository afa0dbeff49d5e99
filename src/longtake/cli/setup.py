"""``longtake setup`` and ``longtake doctor``."""

from __future__ import annotations

import dataclasses
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from longtake import __version__, config
from longtake._util import visible
from longtake.cli.discovery import (
    BUILT_IN,
    Advice,
    Findings,
    advise,
    described,
    download_size,
    look_around,
    plain_findings,
    probed_chat,
    pull_weights,
    show_report,
    write_setting,
)
from longtake.cli.options import common
from longtake.cli.output import emit_json, human_bytes, on_terminal, progress, rows, say
from longtake.config import Settings, user_config_file
from longtake.config.entries import Preset
from longtake.errors import ConfigError, ModelError
from longtake.index.store import Store
from longtake.llm.catalog import ModelCatalog, offered_models, recommended
from longtake.llm.probe import ProbeReport, probe
from longtake.runner.films import open_store

MOST_LISTED = 20
"""Models of one server that are shown to choose from."""
HEAR_FROM = "is asked a few short questions now, two of them with a plain picture"


@dataclass(frozen=True)
class ModelChoice:
    """A source of models: a server, a vendor, or the built-in one."""

    preset: Preset | None
    line: str
    """What it is, and where pictures and words would go."""
    model: str = BUILT_IN
    """The model, where there is no preset."""


def _complete(ctx: click.Context, _option: Any, shell: str | None) -> None:
    """Print a shell's script and end."""
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
    help="Print a script that completes commands in this shell, and stop.",
)
@click.option("--model", "name", metavar="NAME", help="Use this model; see 'longtake models list'.")
@click.option(
    "--yes",
    is_flag=True,
    help="Ask nothing: use --model, else a server on this machine, else the built-in model.",
)
@common
def setup(name: str | None, yes: bool, settings: Settings, as_json: bool) -> int:
    """Find what is there, choose a model, try it, and write your configuration.

    Looks for API keys in the environment, for Ollama, LM Studio, vLLM, llama.cpp and SGLang on
    their usual ports of this machine, a GPU, a browser and a player. No key and no server is used
    before you say so; with --yes, a key is used only if --model names one of its models. Without a
    terminal and without --yes, nothing is used and nothing is written.

    \b
    Example:
      longtake setup
      longtake setup --model ollama/qwen2.5vl:7b --yes
      eval "$(longtake setup --completion bash)"    # put this line into ~/.bashrc
    """
    findings = look_around(settings)
    if not as_json:
        rows(described(findings))
        click.echo()
    # --json is for programs, which answer no questions
    if not yes and (as_json or not (sys.stdin.isatty() and on_terminal())):
        raise ConfigError("no terminal to ask on: pass --yes, with --model NAME to use that model")
    try:
        chosen = name or _choose(findings, yes=yes)
        report = _try_out(chosen, settings, yes=yes, named=name is not None)
        file = _write(chosen, yes=yes)
    except (click.Abort, KeyboardInterrupt):
        say("\nnothing was written")
        return 130
    _end(findings, chosen, report, file, as_json=as_json)
    return 0


def _end(findings: Findings, name: str, report: ProbeReport, file: Path, *, as_json: bool) -> None:
    if as_json:
        outcome: dict[str, Any] = {"model": name, "report": dataclasses.asdict(report)}
        emit_json({"found": plain_findings(findings), **outcome, "config": str(file)})
        return
    show_report(report)
    click.echo(visible(f"\n{file} now names {name} as the model. Try it:"))
    click.echo('    longtake ask film.mp4 "What is this film about?"')


def choices(findings: Findings) -> list[ModelChoice]:
    """The sources of models here, those on this machine first."""
    offered = []
    for server in findings.servers:
        offered.append(ModelChoice(server, f"{server.label}, on this machine (port {server.port})"))
    for key in findings.keys:
        if key.preset is not None:
            line = f"{key.preset.label}: sends pictures and words to {key.host}, paid by your key"
            offered.append(ModelChoice(key.preset, f"{line} in ${key.variable}"))
    seeing = findings.vision or recommended("vision")
    for name, is_here, what in (
        (BUILT_IN, findings.has_weights, "reads"),
        (seeing, bool(findings.vision), "sees pictures"),
    ):
        weights = "" if is_here else f", downloads {download_size(name)}"
        offered.append(ModelChoice(None, f"{name}, on this machine: {what}{weights}", name))
    return offered


def _choose(findings: Findings, *, yes: bool) -> str:
    """The name of a model; asks which, unless ``yes``."""
    offered = choices(findings)
    if yes:
        # a key costs money, so it takes more than a general yes
        free = [each for each in offered if each.preset is None or each.preset.is_server]
        return _model_of(free[0], yes=True)
    click.echo("Which model should answer?")
    for number, each in enumerate(offered, start=1):
        click.echo(f"  {number}  {each.line}")
    number = click.prompt("Number", type=click.IntRange(1, len(offered)), default=1)
    return _model_of(offered[number - 1], yes=False)


def _model_of(choice: ModelChoice, *, yes: bool) -> str:
    """One of the models that a choice offers; choosing it is the yes to ask which there are."""
    if choice.preset is None:
        return choice.model
    names = offered_models(choice.preset)
    if not names:
        where = choice.preset.base_url
        raise ModelError(choice.preset.label, "unavailable", f"{where} offers no model that chats")
    if yes or len(names) == 1:
        return names[0]
    for each in names[:MOST_LISTED]:
        click.echo(visible(f"  {each}"))
    if len(names) > MOST_LISTED:
        click.echo(f"  … and {len(names) - MOST_LISTED} more")
    known = click.Choice(names)
    return str(click.prompt("Model", type=known, default=names[0], show_choices=False))


def _try_out(name: str, settings: Settings, *, yes: bool, named: bool) -> ProbeReport:
    """Probe a model, after a yes; one that does not answer is not worth writing down."""
    catalogue = ModelCatalog(settings)
    if download_size(name) and not catalogue.file(name).is_file():
        if not yes:
            click.confirm(f"{name}: download {download_size(name)}?", abort=True, default=True)
        pull_weights(name, settings)
    catalogue.check([name])
    host = catalogue.host(name)
    # whoever was chosen from the list was chosen knowing where it is
    if not yes and (host or named):
        click.confirm(f"{name} at {host or 'this machine'} {HEAR_FROM}; go on?", abort=True)
    elif host:
        say(f"asking {host}")
    with progress(f"trying {name}"):
        report = probe(probed_chat(catalogue, name))
    if not report.reachable:
        raise ModelError(name, "unavailable", report.problem.removeprefix(f"{name}: "))
    return report


def _write(name: str, *, yes: bool) -> Path:
    file = config.user_config_file()
    if not yes:
        click.confirm(f"Write {name} to {file} as the model?", abort=True, default=True)
    write_setting(file, "answers", "model", name)
    return file


PACKAGES = ("av", "numpy", "pillow", "pydantic", "pysubs2")
"""Packages that longtake cannot work without."""


@click.command()
@common
def doctor(settings: Settings, as_json: bool) -> None:
    """Show what is installed, configured and available, and what to do next.

    \b
    Example:
      longtake doctor
    """
    store = open_store(settings)
    # the folder is created on first use, so it may not exist yet
    free = shutil.disk_usage(_existing(store.root)).free
    used, problem = _used(store)
    candidates = (user_config_file(), Path("longtake.toml").absolute())
    configs = [str(path) for path in candidates if path.is_file()]
    packages = {name: _version(name) for name in PACKAGES}
    findings = look_around(settings)
    advice = [*_on_storage(used, free, store.limit_bytes), *advise(findings)]
    if as_json:
        cache = {
            "folder": str(store.root),
            "bytes": used,
            "limit_bytes": store.limit_bytes,
            "free_bytes": free,
            "problem": problem,
        }
        emit_json(
            {
                "longtake": __version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "packages": packages,
                "config_files": configs,
                "cache": cache,
                "found": plain_findings(findings),
                "advice": [asdict(each) for each in advice],
            }
        )
        return
    size = f"{human_bytes(used)} of {human_bytes(store.limit_bytes)}"
    space = f"{store.root}: {size}, {human_bytes(free)} free on its disk"
    rows(
        [
            ("longtake", __version__),
            ("python", f"{platform.python_version()} ({sys.executable})"),
            ("platform", platform.platform()),
            *((name, number or "MISSING") for name, number in packages.items()),
            ("config", ", ".join(configs) or f"none (yours would be {user_config_file()})"),
            ("cache", problem or space),
            ("model", findings.model or "the built-in ones"),
            *described(findings),
        ]
    )
    show_advice(advice)


def _on_storage(used: int, free: int, limit: float) -> list[Advice]:
    """What to do about a cache or disk that is nearly full."""
    advice = []
    # with less, indexing a long film or downloading a model may fail
    if free < 2e9:
        why = f"only {human_bytes(free)} are free where the cache is"
        advice.append(Advice(why, "longtake cache list"))
    if used > limit:
        advice.append(Advice("the cache is over its limit", "longtake cache clear --all"))
    return advice


def show_advice(advice: Sequence[Advice]) -> None:
    """Print what to do, each with its command."""
    click.echo()
    if not advice:
        click.echo('everything is ready: longtake ask FILM "a question"')
    for each in advice:
        click.echo(visible(f"{each.why}:\n    {each.command}"))


def _used(store: Store) -> tuple[int, str]:
    """Bytes in the store, and what is wrong with its folder, if anything."""
    try:
        return sum(film.bytes for film in store.films()), ""
    # a broken cache is what this command is for: show it instead of failing
    except ConfigError as error:
        return 0, str(error)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
