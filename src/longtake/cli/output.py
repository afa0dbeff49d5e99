"""How commands print: JSON, tables, messages, progress bars and rough figures."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from longtake.display import visible

SCHEMA = 1
"""Version of the ``--json`` output."""
RARELY = 25
"""Without a terminal, one result in so many is announced."""


def emit_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object, always in UTF-8."""
    valid = _valid({"schema": SCHEMA, **data})
    text = json.dumps(valid, ensure_ascii=False, indent=2, allow_nan=False)
    click.echo(_escaped(text).encode())


def emit_line(data: Mapping[str, Any]) -> None:
    """Print one JSON object in one line, for JSON Lines."""
    valid = _valid({"schema": SCHEMA, **data})
    text = json.dumps(valid, ensure_ascii=False, allow_nan=False)
    click.echo(_escaped(text).encode())
    # whoever reads the other end of a pipe wants each answer as soon as it is there
    sys.stdout.flush()


def _escaped(text: str) -> str:
    """Escape characters that a terminal obeys instead of showing, such as U+202E."""
    escapes = {}
    for character in set(text):
        if not character.isprintable() and character != "\n":
            escapes[ord(character)] = json.dumps(character)[1:-1]
    return text.translate(escapes)


def _valid(value: Any) -> Any:
    """Replace what JSON cannot hold.

    A number that is not finite becomes null; a byte of a file name that is not valid UTF-8 becomes
    U+FFFD.
    """
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
    """Print names and values in two columns."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {visible(value)}")


def say(text: str) -> None:
    """Print a message to standard error, which keeps it out of pipes and files."""
    click.echo(visible(text), err=True)


def on_terminal() -> bool:
    """Whether someone is watching."""
    return sys.stderr.isatty()


def confirm() -> None:
    """Ask whether to go on, if there is someone to ask; abort on no."""
    if sys.stdin.isatty() and on_terminal():
        click.confirm("go on?", abort=True, err=True)


def worth_a_line(done: int, left: int) -> bool:
    """Whether to announce a result: each one on a terminal, every 25th and the last elsewhere."""
    return on_terminal() or done % RARELY == 0 or left == 0


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; yields a function that takes the share done."""
    if not on_terminal():
        # a bar would fill a log file with control characters
        yield lambda share: None  # noqa: ARG005
        return
    # imported late: rich is slow to import, and most commands do not need it
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        # of all that is done so far: the last steps alone may have been quick or slow ones
        TextColumn("left {task.fields[left]}"),
    )
    began = time.perf_counter()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(visible(what), total=1.0, left="")

        def show(share: float) -> None:
            left = seconds_left(time.perf_counter() - began, share)
            bars.update(task, completed=share, left="" if left is None else human_seconds(left))

        yield show


def seconds_left(elapsed: float, share: float) -> float | None:
    """The time that the rest takes at the same pace; ``None`` before anything is done."""
    return elapsed * (1 - share) / share if share > 0 else None


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
