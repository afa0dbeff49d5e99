"""What every command prints alike."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from longtake.display import visible

SCHEMA = 1
"""Version of the ``--json`` output."""


def emit_json(data: Mapping[str, Any]) -> None:
    """One JSON object on standard output, in UTF-8 wherever it goes."""
    text = json.dumps(
        _valid({"schema": SCHEMA, **data}), ensure_ascii=False, indent=2, allow_nan=False
    )
    click.echo(text.encode())


def _valid(value: Any) -> Any:
    """What JSON can hold: null for what is no finite number, and U+FFFD for bytes of file names that are no UTF-8."""
    if isinstance(value, Mapping):
        return {_valid(key): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value


def rows(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {visible(value)}")


def say(text: str) -> None:
    """A word to the person at the terminal; stays out of pipes and files."""
    click.echo(visible(text), err=True)


def on_terminal() -> bool:
    """Whether somebody is watching."""
    return sys.stderr.isatty()


@contextmanager
def telling() -> Iterator[None]:
    """Say what is noted while no question is asked: a damaged file, another process at work on the film."""
    from longtake.events import Stream
    from longtake.sinks.notes import NoteSink

    with Stream(NoteSink(say)).active():
        yield


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, nothing elsewhere; gives a function that takes the share done."""
    if not on_terminal():
        yield lambda share: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(visible(what), total=1.0)
        yield lambda share: bars.update(task, completed=share)


def human_bytes(count: float) -> str:
    """``1234567`` as ``1.2 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def human_seconds(seconds: float) -> str:
    """A rough duration: ``under 1 s``, ``about 40 s``, ``about 3 min``, ``about 1.5 h``."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
