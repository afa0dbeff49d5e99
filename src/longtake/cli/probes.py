"""Downloading and probing models, for ``setup`` and ``models``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longtake.cli.output import on_terminal
from longtake.config import Settings
from longtake.llm.catalog import WEIGHTS, ModelCatalog
from longtake.llm.chat import Chat
from longtake.llm.probe import ProbeReport
from longtake.llm.pull import Begin, pull_model
from longtake.llm.pull import Progress as ShowProgress


def probed_chat(catalogue: ModelCatalog, name: str) -> Chat:
    """The model without retries or cached replies, or the model that it relies on."""
    needed = catalogue.backend(name).needs(catalogue.opening(name))
    return catalogue.bare(needed[0] if needed else name)


def report_lines(report: ProbeReport) -> Iterator[str]:
    """What a probe found, a line per property."""
    yield f"{report.model}: {'reachable' if report.reachable else 'not reachable'}"
    if not report.reachable:
        return
    words = {True: "yes", False: "no", None: "unknown"}
    dropped = ": pictures are accepted and left out" if report.drops_pictures else ""
    found = {
        "JSON schema": f"{words[report.json_schema]}  {report.reply!r}",
        "log-probs": "yes, one token" if report.letters else words[report.letters],
        "vision": f"{words[report.vision]}{dropped}",
        "context": str(report.context or "unknown"),
        "latency": f"{report.seconds} s for a short reply",
    }
    if report.reading and report.writing:
        found["speed"] = f"reads {report.reading:g}, writes {report.writing:g} tokens/s"
    for name, value in found.items():
        yield f"  {name:<13}{value}"


def pull_weights(name: str, settings: Settings, source: Path | None = None) -> Path:
    """Download the weights of a language model, or copy them from a folder."""
    with progress_bars() as begin:
        return pull_model(name, settings, source=source, begin=begin)


def download_size(name: str) -> str:
    """The size of the download of 'models pull NAME'; empty for other models."""
    known = WEIGHTS.get(name)
    return "" if known is None else f"{known.size / 1e9:.1f} GB"


@contextmanager
def progress_bars() -> Iterator[Begin]:
    """Inside the block, show a progress bar for each download."""
    # late: slow to import, and few commands need it
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, TransferSpeedColumn(), console=console, disable=not on_terminal()
    ) as bar:

        def begin(file: str) -> ShowProgress:
            task = bar.add_task(file, total=None)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield begin
