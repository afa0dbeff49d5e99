"""``longtake models``: list models, probe what they can do, download the built-in ones."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from longtake import config
from longtake.cli.discovery import probed_chat, pull_weights, show_report
from longtake.cli.options import common
from longtake.cli.output import emit_json, human_bytes, progress, say
from longtake.config import Settings
from longtake.config.entries import PRESETS, LocalEntry, Preset
from longtake.errors import LongtakeError, ModelError, unknown
from longtake.llm.catalog import DOWNLOADS, ModelCatalog, is_listening, suggestions
from longtake.llm.probe import measure_bias
from longtake.llm.probe import probe as ask
from longtake.perception.cards import CARDS, WHISPER, EncoderCard, HubFiles
from longtake.perception.cards import fetch as fetch_card
from longtake.perception.encoders import card_folder


@click.group()
def models() -> None:
    """List, probe and download language models.

    \b
    Example:
      longtake models list
      longtake models pull local/qwen2.5-1.5b
      longtake models probe local/qwen2.5-1.5b
    """


@models.command("list")
@common
def list_models(settings: Settings, as_json: bool) -> None:
    """List the models that --model accepts, those that can be used now first.

    Names that end in … stand for all models of a vendor or server: 'gpt-…' is any model of OpenAI,
    'ollama/…' any that Ollama serves. Nothing is sent to find out.

    \b
    Example:
      longtake models list
    """
    catalogue = ModelCatalog(settings)
    rows = [_row(catalogue, name) for name in catalogue.names()]
    rows += [_preset_row(preset) for preset in PRESETS]
    if as_json:
        emit_json({"models": rows, "suggestions": suggestions()})
        return
    for heading, usable in (("can be used now", True), ("need something first", False)):
        listed = [row for row in rows if row["usable"] is usable]
        if listed:
            click.echo(f"{heading}:")
            _show_rows(listed)
    click.echo("any compatible server:\n  http://HOST/v1#MODEL")
    chosen = settings.answers.model
    say(f"used unless --model names another: {chosen or 'the built-in models'}")


@models.command()
@click.argument("name")
@click.option("--offline", is_flag=True, help="Refuse a model that is not on this machine.")
@click.option(
    "--bias", is_flag=True, help="Also measure whether the model prefers a letter (24 questions)."
)
@common
def probe(name: str, offline: bool, bias: bool, settings: Settings, as_json: bool) -> None:
    """Ask a model a few short questions and report what it can do.

    How the server is best asked is remembered. A model that prefers a letter is asked with its
    options in every order from then on.

    \b
    Example:
      longtake models probe http://127.0.0.1:8000/v1#my-model
    """
    catalogue = ModelCatalog(settings, offline=offline)
    chat = probed_chat(catalogue, name)
    # pictures leave this machine only after the host is named
    if host := catalogue.host(name):
        click.echo(f"asking {host}", err=True)
    with progress(f"asking {name}"):
        report = ask(chat)
    if bias and report.reachable:
        report = dataclasses.replace(report, bias=measure_bias(chat))
    if as_json:
        emit_json(dataclasses.asdict(report))
    else:
        show_report(report)
    # the report is printed first; the error only sets the exit code
    if not report.reachable:
        raise ModelError(name, "unavailable", report.problem.removeprefix(f"{name}: "))


@models.command()
@click.argument("name")
@common
def pull(name: str, settings: Settings, as_json: bool) -> None:
    """Download the weights of a built-in model, the files of an encoder, or Whisper.

    An interrupted download resumes. Files are kept only if their hash is right.

    \b
    Example:
      longtake models pull local/qwen2.5-1.5b
      longtake models pull whisper
    """
    on_hub: dict[str, EncoderCard | HubFiles] = {**CARDS, WHISPER.name: WHISPER}
    if name not in on_hub and name not in DOWNLOADS:
        raise unknown("model to pull", name, [*DOWNLOADS, *on_hub])
    path = _pull(on_hub[name], settings) if name in on_hub else pull_weights(name, settings)
    if as_json:
        emit_json({"model": name, "file": str(path)})
    else:
        click.echo(str(path))


def _pull(card: EncoderCard | HubFiles, settings: Settings) -> Path:
    """Download a model's files from the hub and return their folder."""
    folder = card_folder(card.name, config.cache_folder(settings))

    def announce(file: str, size: int) -> None:
        say(f"{file}: {human_bytes(size)}")

    fetch_card(card, folder, progress=announce)
    return folder


def _row(catalogue: ModelCatalog, name: str) -> dict[str, Any]:
    backend, opening = catalogue.backend(name), catalogue.opening(name)
    where = ", ".join(backend.needs(opening)) or catalogue.host(name) or "this machine"
    missing = _missing(catalogue, name)
    return {
        "name": name,
        "backend": backend.name,
        "where": where,
        "state": missing or backend.state(opening),
        "usable": not missing,
    }


def _missing(catalogue: ModelCatalog, name: str) -> str:
    """What a model lacks before it can be asked; empty: nothing."""
    needed = [name, *catalogue.backend(name).needs(catalogue.opening(name))]
    for each in needed:
        if isinstance(catalogue.entry(each), LocalEntry) and not catalogue.file(each).is_file():
            return f"run: longtake models pull {each}"
    try:
        catalogue.check([name])
    except LongtakeError as error:
        return str(error).removeprefix(f"{name}: ")
    return ""


def _preset_row(preset: Preset) -> dict[str, Any]:
    """The models of a vendor or server, which are not listed one by one without asking it."""
    if preset.is_server:
        usable = is_listening(preset.port)
        where = f"this machine, port {preset.port}"
        state = f"{preset.label} answers" if usable else f"{preset.label}: nothing answers"
    else:
        usable = bool(os.environ.get(preset.key_env))
        where = urlsplit(preset.base_url).hostname or ""
        state = f"key from ${preset.key_env}" if usable else f"set ${preset.key_env}"
    return {
        "name": preset.pattern,
        "backend": "openai",
        "where": where,
        "state": state,
        "usable": usable,
    }


def _show_rows(rows: list[dict[str, Any]]) -> None:
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        click.echo(f"  {row['name']:{width}}  {row['where']:26}  {row['state']}".rstrip())
