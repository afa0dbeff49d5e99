"""``longtake models``: list models, probe what they can do, download the built-in ones."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from longtake import config
from longtake.cli.options import common
from longtake.cli.output import Output, prints_json, progress, say
from longtake.cli.probes import (
    download_size,
    probed_chat,
    progress_bars,
    pull_weights,
    report_lines,
)
from longtake.config import Settings
from longtake.config.entries import PRESETS, LocalEntry, Preset, check_name
from longtake.errors import ConfigError, LongtakeError, ModelError, unknown
from longtake.llm.catalog import RECOMMENDED, WEIGHTS, ModelCatalog, is_listening, recommended
from longtake.llm.probe import probe as ask
from longtake.llm.pull import pull_files
from longtake.perception.cards import CARDS, WHISPER, EncoderCard, HubFiles
from longtake.perception.encoders import card_folder
from longtake.perception.reranker import RERANKERS
from longtake.runner.assignment import ModelAssignment


@click.group()
def models() -> None:
    """List, probe and download language models.

    \b
    Example:
      longtake models list
      longtake models pull local/qwen2.5-coder-1.5b
      longtake models probe local/qwen2.5-coder-1.5b
    """


@models.command("list")
@common
def list_models(settings: Settings) -> Output:
    """List the models that --model accepts, usable ones first.

    Names that end in … stand for all models of a vendor or server: 'gpt-…' is any model of OpenAI,
    'ollama/…' any that Ollama serves. No request is sent to find out.

    \b
    Example:
      longtake models list
    """
    catalogue = ModelCatalog(settings)
    rows = [_row(catalogue, name) for name in catalogue.names()]
    rows += [_preset_row(preset) for preset in PRESETS]
    chosen = ", ".join(ModelAssignment().by_default(settings).models)
    say(f"used without --model: {chosen or 'the built-in models'}")
    return Output({"models": rows}, _lines(rows))


def _lines(models: Sequence[ListedModel]) -> Iterator[str]:
    name_width = max(len(model.name) for model in models)
    where_width = max(len(model.where) for model in models)
    for heading, usable in (("can be used now", True), ("need something first", False)):
        listed = [model for model in models if model.usable is usable]
        if listed:
            yield f"{heading}:"
        for model in listed:
            line = f"  {model.name:{name_width}}  {model.where:{where_width}}  {model.state}"
            yield line.rstrip()
    yield "any compatible server:\n  http://HOST/v1#MODEL"


@dataclass(frozen=True)
class ListedModel:
    """A model, or all models of a vendor or server, and whether it can be used now."""

    name: str
    backend: str
    where: str
    state: str
    usable: bool


@models.command()
@click.argument("name")
@click.option("--offline", is_flag=True, help="Refuse a model that is not on this machine.")
@common
def probe(name: str, offline: bool, settings: Settings) -> None:
    """Ask a model a few short questions and report what it can do.

    The kind of request that works best is remembered.

    \b
    Example:
      longtake models probe http://127.0.0.1:8000/v1#my-model
    """
    catalogue = ModelCatalog(settings, offline=offline)
    chat = probed_chat(catalogue, name)
    # before any picture leaves this machine
    if host := catalogue.host(name):
        click.echo(f"asking {host}", err=True)
    with progress(f"asking {name}"):
        report = ask(chat)
    Output(report, report_lines(report)).show(as_json=prints_json())
    # after the report, for the exit code
    if not report.reachable:
        raise ModelError(name, "unavailable", report.problem.removeprefix(f"{name}: "))


@models.command()
@click.argument("name")
@click.option("--model", "file", metavar="FILE", help="With hub:…: the GGUF file to download.")
@click.option("--mmproj", metavar="FILE", help="With hub:…: the projector of a model that sees.")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Copy the files from this folder instead of the hub.",
)
@common
def pull(
    name: str, file: str | None, mmproj: str | None, source: Path | None, settings: Settings
) -> Output:
    """Download a model: 'vision', 'text', a name of 'models list', an encoder, a reranker, Whisper.

    With a language model comes 'reranker' (34 MB), which decides whether lines answer a question.

    'vision' is a model that sees and 'text' one that reads, chosen by this machine's memory.
    'hub:OWNER/REPO[@REVISION]' with --model and --mmproj is any other pair of GGUF files. Files
    come from the model hub or the mirror in $HF_ENDPOINT, and their hashes are checked. After an
    interruption, what is complete is not downloaded again.

    \b
    Example:
      longtake models pull vision
      longtake models pull local/qwen2.5-coder-1.5b
      longtake models pull whisper
      longtake models pull hub:OWNER/REPO --model model.gguf --mmproj mmproj.gguf
    """
    if name.startswith(HUB):
        path = _pull(_pair(name, file, mmproj), settings, source)
        place = config.user_config_file()
        say(f'to use it, add to {place}:\n[models.mine]\nbackend = "local"')
        for key, each in (("file", file), ("mmproj", mmproj)):
            if each:
                say(f"{key} = {json.dumps(str(path / each))}")
    elif file or mmproj:
        raise ConfigError(f"--model and --mmproj go with {HUB}OWNER/REPO")
    else:
        path = _pull_named(recommended(name) if name in RECOMMENDED else name, settings, source)
    return Output({"model": name, "file": path}, [str(path)])


HUB = "hub:"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def _pull_named(name: str, settings: Settings, source: Path | None) -> Path:
    on_hub: dict[str, EncoderCard | HubFiles] = {**CARDS, **RERANKERS, WHISPER.name: WHISPER}
    if name in on_hub:
        return _pull(on_hub[name], settings, source)
    check_name(name)
    if name not in WEIGHTS:
        raise unknown("model to pull", name, [*RECOMMENDED, *WEIGHTS, *on_hub])
    if not WEIGHTS[name].parts:
        say(f"{name}: {download_size(name)}, licence: {WEIGHTS[name].licence}")
    return pull_weights(name, settings, source)


def _pair(name: str, file: str | None, mmproj: str | None) -> HubFiles:
    """The files that ``hub:OWNER/REPO[@REVISION]`` and its options name."""
    repo, _, revision = name.removeprefix(HUB).partition("@")
    if not _REPOSITORY.fullmatch(repo) or not file:
        raise ConfigError(f"{name}: write {HUB}OWNER/REPO[@REVISION] --model FILE [--mmproj FILE]")
    files = tuple(filter(None, (mmproj, file)))
    # they become paths below the cache folder
    if any(each.startswith("/") or ".." in each.split("/") for each in files):
        raise ConfigError(f"{name}: --model and --mmproj must be files of the repository")
    return HubFiles(repo.replace("/", "--"), repo, revision or "main", files)


def _pull(card: EncoderCard | HubFiles, settings: Settings, source: Path | None) -> Path:
    """Download a model's files from the hub and return their folder."""
    folder = card_folder(card.name, config.cache_folder(settings))
    with progress_bars() as begin:
        return pull_files(
            card.name, card.repo, card.revision, card.files, folder, source=source, begin=begin
        )


def _row(catalogue: ModelCatalog, name: str) -> ListedModel:
    backend, opening = catalogue.backend(name), catalogue.opening(name)
    where = ", ".join(backend.needs(opening)) or catalogue.host(name) or "this machine"
    missing = _missing(catalogue, name)
    state = missing or backend.state(opening)
    return ListedModel(name, backend.name, where, state, usable=not missing)


def _missing(catalogue: ModelCatalog, name: str) -> str:
    """What has to be done before a model can be used; empty if nothing."""
    needed = [name, *catalogue.backend(name).needs(catalogue.opening(name))]
    for each in needed:
        if isinstance(catalogue.entry(each), LocalEntry) and not catalogue.file(each).is_file():
            size = ""
            if each in WEIGHTS and not WEIGHTS[each].parts:
                purpose = "sees pictures" if WEIGHTS[each].mmproj else "reads"
                size = f"  # {download_size(each)}, {purpose}"
            return f"run: longtake models pull {each}{size}"
    try:
        catalogue.check([name])
    except LongtakeError as error:
        return str(error).removeprefix(f"{name}: ")
    return ""


def _preset_row(preset: Preset) -> ListedModel:
    """A row for all models of a vendor or server; listing them would require a request."""
    if preset.is_server:
        usable = is_listening(preset.port)
        where = f"this machine, port {preset.port}"
        state = f"{preset.label} is running" if usable else f"{preset.label} is not running"
    else:
        usable = bool(os.environ.get(preset.key_env))
        where = urlsplit(preset.base_url).hostname or ""
        state = f"key from ${preset.key_env}" if usable else f"set ${preset.key_env}"
    return ListedModel(preset.pattern, "openai", where, state, usable)
