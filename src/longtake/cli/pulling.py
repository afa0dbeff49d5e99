"""Downloads the weights of a built-in model, with a progress bar."""

from __future__ import annotations

import sys
from pathlib import Path

from longtake import config
from longtake.config import Settings
from longtake.models.pull import pull as fetch
from longtake.models.weights import download_of


def pull_weights(name: str, settings: Settings) -> Path:
    """Download the weights of a language model and return their file."""
    # imported late: rich is slow to import, and few commands need it
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
