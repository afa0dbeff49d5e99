"""``longtake models``: list models, probe what they can do, download the built-in ones."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import click

from longtake import config
from longtake.cli.options import common
from longtake.cli.output import emit_json, human_bytes, say
from longtake.config import Settings
from longtake.errors import ModelError, unknown
from longtake.models import destinations
from longtake.models.bias import measure_bias
from longtake.models.catalogue import Catalogue, suggestions
from longtake.models.chat import Chat
from longtake.models.manners import BIASED
from longtake.models.probe import Report
from longtake.models.probe import probe as ask
from longtake.models.pull import hub_hosts
from longtake.models.pull import pull as fetch
from longtake.models.weights import DOWNLOADS, download_of
from longtake.perception.cards import CARDS
from longtake.perception.catalogue import card_folder
from longtake.perception.fetch import fetch as fetch_card


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
    """List every model that --model accepts, and what else was found on this machine.

    \b
    Example:
      longtake models list --json
    """
    catalogue = Catalogue(settings)
    rows = [_row(catalogue, name) for name in catalogue.names()]
    if as_json:
        emit_json({"models": rows, "suggestions": suggestions()})
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        click.echo(f"{row['name']:{width}}  {row['backend']:8}  {row['where']:22}  {row['state']}")
    click.echo(f"{'http://HOST/v1#MODEL':{width}}  openai    any compatible server")
    for line in suggestions():
        click.echo(f"not used: {line}", err=True)


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
    catalogue = Catalogue(settings, offline=offline)
    chat = _bare(catalogue, name)
    # pictures leave this machine only after the host is named
    if host := catalogue.host(name):
        click.echo(f"asking {host}", err=True)
    report = ask(chat)
    if bias and report.reachable:
        report = dataclasses.replace(report, bias=measure_bias(chat))
    if as_json:
        emit_json(dataclasses.asdict(report))
    else:
        _show(report)
    # the report is printed first; the error only sets the exit code
    if not report.reachable:
        raise ModelError(name, "unavailable", report.problem.removeprefix(f"{name}: "))


@models.command()
@click.argument("name")
@common
def pull(name: str, settings: Settings, as_json: bool) -> None:
    """Download the weights of a built-in model or the files of an encoder.

    An interrupted download resumes. Files are kept only if their hash is right.

    \b
    Example:
      longtake models pull local/qwen2.5-1.5b
    """
    if name not in CARDS and name not in DOWNLOADS:
        raise unknown("model to pull", name, [*DOWNLOADS, *CARDS])
    path = _pull_encoder(name, settings) if name in CARDS else _pull_weights(name, settings)
    if as_json:
        emit_json({"model": name, "file": str(path)})
    else:
        click.echo(str(path))


def _pull_encoder(name: str, settings: Settings) -> Path:
    """Download the files of an encoder and return their folder."""
    folder = card_folder(name, config.cache_folder(settings))

    def announce(file: str, size: int) -> None:
        say(f"{file}: {human_bytes(size)}")

    with destinations.downloading(*hub_hosts()):
        fetch_card(CARDS[name], folder, progress=announce)
    return folder


def _pull_weights(name: str, settings: Settings) -> Path:
    """Download the weights of a language model and return their file."""
    # imported late: rich is slow to import, and only this command needs it
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    download = download_of(name)
    folder = config.cache_folder(settings) / "models"
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(download.file, total=download.size)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return fetch(name, download, folder, progress=advance)


def _bare(catalogue: Catalogue, name: str) -> Chat:
    """The model itself, without retries or cached replies, or the one that it relies on."""
    needed = catalogue.backend(name).needs(catalogue.opening(name))
    return catalogue.bare(needed[0] if needed else name)


def _row(catalogue: Catalogue, name: str) -> dict[str, str]:
    backend, opening = catalogue.backend(name), catalogue.opening(name)
    where = ", ".join(backend.needs(opening)) or catalogue.host(name) or "this machine"
    return {"name": name, "backend": backend.name, "where": where, "state": backend.state(opening)}


def _show(report: Report) -> None:
    words = {True: "yes", False: "no", None: "unknown"}
    click.echo(f"{report.model}: {'reachable' if report.reachable else 'not reachable'}")
    if report.reachable:
        click.echo(f"  JSON schema  {words[report.json_schema]}  {report.reply!r}")
        _show_form(report)
        click.echo(f"  vision       {words[report.vision]}")
        click.echo(f"  context      {report.context or 'unknown'}")
        click.echo(f"  latency      {report.seconds} s for a short reply")
        if report.reading and report.writing:
            speeds = f"reads {report.reading:g}, writes {report.writing:g} tokens/s"
            click.echo(f"  speed        {speeds}")
        if report.bias:
            shares = ", ".join(f"{letter} {share:.0%}" for letter, share in report.bias.items())
            biased = max(report.bias.values()) > BIASED
            told = "; options are rotated from now on" if biased else ""
            click.echo(f"  bias         {shares}{told}")


def _show_form(report: Report) -> None:
    """How typed replies are asked for, and what became of the other ways."""
    if not report.form:
        return
    tried = [f"{way}: {verdict}" for way, verdict in report.verdicts.items()]
    click.echo(f"  form         {report.form}  ({'; '.join(tried) or 'nothing else tried'})")
    offered = {True: "yes, one token", False: "no", None: "unknown"}
    click.echo(f"  log-probs    {offered[report.letters]}")
