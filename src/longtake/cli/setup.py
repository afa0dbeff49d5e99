"""``longtake setup``."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from longtake import config
from longtake._util import visible
from longtake.cli.discovery import (
    BUILT_IN,
    Findings,
    described,
    look_around,
    plain_findings,
    probed_chat,
    pull_weights,
    show_report,
    write_setting,
)
from longtake.cli.options import common, debug
from longtake.cli.output import emit_json, on_terminal, progress, rows, say
from longtake.config import Settings
from longtake.config.entries import Preset
from longtake.errors import ConfigError, ModelError
from longtake.llm.catalog import ModelCatalog, offered_models
from longtake.llm.probe import ProbeReport, probe

MOST_LISTED = 20
"""Models of one server that are shown to choose from."""
HEAR_FROM = "is asked a few short questions now, two of them with a plain picture"


@dataclass(frozen=True)
class ModelChoice:
    """A source of models: a server, a vendor, or the built-in one."""

    preset: Preset | None
    line: str
    """What it is, and where pictures and words would go."""


@click.command()
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
    """
    found = look_around(settings)
    if not as_json:
        rows(described(found))
        click.echo()
    # --json is for programs, which answer no questions
    if not yes and (as_json or not (sys.stdin.isatty() and on_terminal())):
        raise ConfigError("no terminal to ask on: pass --yes, with --model NAME to use that model")
    try:
        chosen = name or _choose(found, yes=yes)
        report = _try_out(chosen, settings, yes=yes, named=name is not None)
        file = _write(chosen, yes=yes)
    except (click.Abort, KeyboardInterrupt):
        say("\nnothing was written")
        return 130
    _end(found, chosen, report, file, as_json=as_json)
    return 0


def _end(found: Findings, name: str, report: ProbeReport, file: Path, *, as_json: bool) -> None:
    if as_json:
        outcome: dict[str, Any] = {"model": name, "report": dataclasses.asdict(report)}
        emit_json({"found": plain_findings(found), **outcome, "config": str(file)})
        return
    show_report(report)
    click.echo(visible(f"\n{file} now names {name} as the model. Try it:"))
    click.echo('    longtake ask film.mp4 "What is this film about?"')


def choices(found: Findings) -> list[ModelChoice]:
    """The sources of models here, those on this machine first."""
    offered = []
    for server in found.servers:
        offered.append(ModelChoice(server, f"{server.label}, on this machine (port {server.port})"))
    for key in found.keys:
        if key.preset is not None:
            line = f"{key.preset.label}: sends pictures and words to {key.host}, paid by your key"
            offered.append(ModelChoice(key.preset, f"{line} in ${key.variable}"))
    weights = "" if found.has_weights else ", downloads 1.1 GB"
    return [*offered, ModelChoice(None, f"the built-in {BUILT_IN}, on this machine{weights}")]


def _choose(found: Findings, *, yes: bool) -> str:
    """The name of a model; asks which, unless ``yes`` or there is only one."""
    offered = choices(found)
    if yes:
        # a key costs money, so it takes more than a general yes
        free = [each for each in offered if each.preset is None or each.preset.is_server]
        return _model_of(free[0], yes=True)
    if len(offered) == 1:
        return _model_of(offered[0], yes=False)
    click.echo("Which model should answer?")
    for number, each in enumerate(offered, start=1):
        click.echo(f"  {number}  {each.line}")
    number = click.prompt("Number", type=click.IntRange(1, len(offered)), default=1)
    return _model_of(offered[number - 1], yes=False)


def _model_of(choice: ModelChoice, *, yes: bool) -> str:
    """One of the models that a choice offers; choosing it is the yes to ask which there are."""
    if choice.preset is None:
        return BUILT_IN
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
    if name == BUILT_IN and not catalogue.file(name).is_file():
        if not yes:
            click.confirm(f"{name}: download 1.1 GB?", abort=True, default=True)
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


SHELLS = {
    "bash": 'eval "$(longtake completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(longtake completion zsh)"    in ~/.zshrc',
    "fish": "longtake completion fish > ~/.config/fish/completions/longtake.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
@debug
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands in your shell.

    \b
    Example:
      eval "$(longtake completion bash)"    # put this line into ~/.bashrc
      longtake completion fish > ~/.config/fish/completions/longtake.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    root = ctx.find_root().command
    click.echo(kind(root, {}, "longtake", "_LONGTAKE_COMPLETE").source())
