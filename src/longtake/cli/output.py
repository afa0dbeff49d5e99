"""How commands print: results as text or JSON, messages, progress bars and rough figures."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtake._util import on_one_line, replacing, visible
from longtake.errors import ConfigError

if TYPE_CHECKING:
    # loading these would slow every command
    from longtake.index.search import SearchHit
    from longtake.library import FoundMoment

SCHEMA = 1
"""Version of the ``--json`` output."""


@dataclass(frozen=True)
class Output:
    """What a command prints: an object with ``--json``, or else lines of text."""

    data: Any
    """A dataclass or a mapping; its names are part of the interface."""
    text: Iterable[str] = ()
    exit_code: int = 0

    def show(self, *, as_json: bool) -> int:
        """Print it, and return the exit code."""
        if as_json:
            emit_json(self.data)
        for line in () if as_json else self.text:
            click.echo(line)
        return self.exit_code


def prints_json() -> bool:
    """Whether the command that is running was called with ``--json``."""
    return bool(click.get_current_context().params["as_json"])


def emit_json(data: Any, *, indent: int | None = 2) -> None:
    """Print one JSON object, always in UTF-8."""
    text = json.dumps({"schema": SCHEMA, **_valid(data)}, ensure_ascii=False, indent=indent)
    click.echo(_escaped(text).encode())


def emit_line(data: Mapping[str, Any]) -> None:
    """Print one JSON object in one line, for JSON Lines."""
    emit_json(data, indent=None)
    # the reader of a pipe gets each answer at once
    sys.stdout.flush()


def _escaped(text: str) -> str:
    """Escape control characters for terminals, such as U+202E."""
    escapes = {}
    for character in set(text):
        if not character.isprintable() and character != "\n":
            escapes[ord(character)] = json.dumps(character)[1:-1]
    return text.translate(escapes)


def _valid(value: Any) -> Any:
    """Replace values that JSON cannot hold.

    Infinity and NaN become null; bytes of a file name that are not valid UTF-8 become U+FFFD;
    dataclasses become objects.
    """
    if is_dataclass(value):
        value = _fields(value)
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, Mapping):
        return {_valid(key): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def hit_data(hit: SearchHit | FoundMoment) -> dict[str, Any]:
    """A moment that a search found, for ``--json``."""
    facts = {name: getattr(hit, name) for name in ("time", "score", "sure", "sources", "text")}
    return {**facts, "start": hit.segment.start, "end": hit.segment.end}


def in_columns(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Names and values in two columns."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        yield f"{name:<{width}}  {visible(value)}"


def say(text: str) -> None:
    """Print a message to standard error."""
    click.echo(visible(text), err=True)


def on_terminal() -> bool:
    """Whether messages go to a terminal."""
    return sys.stderr.isatty()


def confirm() -> None:
    """Ask whether to continue if there is a terminal to ask on; abort on no."""
    if sys.stdin.isatty() and on_terminal():
        click.confirm("Continue?", abort=True, err=True)


def worth_a_line(done: int, left: int) -> bool:
    """Whether to print a progress line: always on a terminal, else every 25th and the last."""
    return on_terminal() or done % 25 == 0 or left == 0


def time_left(began: float, done: int, left: int) -> str:
    """The estimated time for the items that are left; ``began`` is a ``time.monotonic()``."""
    return f"{human_seconds((time.monotonic() - began) / done * left)} left"


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; yield a function that updates it with a share of 1."""
    if not on_terminal():
        # a bar would fill log files with control characters
        yield lambda share: None  # noqa: ARG005
        return
    # late: slow to import, and most commands do not need it
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        # estimated from all steps so far, since the last ones may have been unusually quick or slow
        TextColumn("{task.fields[left]}"),
    )
    began = time.perf_counter()
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        # results that go to the terminal are printed above the bar
        redirect_stdout=sys.stdout.isatty(),
    ) as bars:
        task = bars.add_task(visible(what), total=1.0, left="")

        def show(share: float) -> None:
            elapsed = time.perf_counter() - began
            left = f"{human_seconds(elapsed * (1 - share) / share)} left" if share > 0 else ""
            bars.update(task, completed=share, left=left)

        yield show


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


WIDEST = 100
"""Maximum width of a line; longer ones are hard to read."""


def has_colours() -> bool:
    """Whether standard output shows colours: a terminal, unless NO_COLOR or TERM=dumb is set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def bold(text: str) -> str:
    """Text in bold if the terminal can show it."""
    return click.style(text, bold=True) if has_colours() else text


def faint(text: str) -> str:
    """Text in a faint colour if the terminal can show it."""
    return click.style(text, dim=True) if has_colours() else text


def columns() -> int:
    """The width of a line; 0 without a terminal: lines are then not wrapped, as for grep."""
    if not sys.stdout.isatty():
        return 0
    width = shutil.get_terminal_size().columns
    return max(30, min(width, WIDEST))


def wrapped(text: str, *, indent: str = "") -> str:
    """The text wrapped to the terminal's width, with control characters escaped."""
    width = columns()
    lines = []
    for line in visible(text).splitlines() or [""]:
        parts = textwrap.wrap(line, width - len(indent)) if width else [line]
        lines += [f"{indent}{part}" for part in parts or [""]]
    return "\n".join(lines)


def in_one_line(text: str, *, taken: int = 0) -> str:
    """The text shortened to one line, of which ``taken`` columns are in use already."""
    room = max(20, (columns() or WIDEST) - taken)
    line = on_one_line(text)
    return line if len(line) <= room else f"{line[: room - 1].rstrip()}…"


def with_quote(start: str, text: str) -> str:
    """The start of a line, followed by a quotation shortened to the rest of the line."""
    return f"{start}  “{in_one_line(text, taken=len(start) + 4)}”" if text else start


def read_text(path: Path) -> str:
    """Read a text file; ``-`` stands for standard input."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: invalid UTF-8 ({error})") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically and print its name."""
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from error
    say(f"wrote {path}")


@dataclass(frozen=True)
class Kind:
    """A kind of output file, and the first bytes by which it is recognised."""

    name: str
    begins: tuple[bytes, ...]


TRACE = Kind("a trace", (b'{"longtake_trace"',))
PAGE = Kind("a report", (b"<!doctype html>",))
TEAM = Kind("a team that select wrote", (b"# Chosen by longtake select",))
PICTURE = Kind("a PNG", (b"\x89PNG",))
NEW = Kind("empty", ())
"""Never overwrites anything."""


def check_place(path: Path, kind: Kind, *, inputs: Iterable[Path | None] = ()) -> None:
    """Raise if an output cannot be written, or would overwrite a file of another kind.

    Called before any work. ``inputs`` are files that must not be overwritten either: those that the
    command reads, and its other outputs.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"{path}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"{path}: cannot be written")
    for other in filter(None, inputs):
        both_exist = path.exists() and other.exists()
        # samefile also recognises hard links
        same = path.samefile(other) if both_exist else path.resolve() == other.resolve()
        if same:
            raise ConfigError(f"{path}: this would overwrite {other}")
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    if head and not head.startswith(kind.begins):
        raise ConfigError(f"{path}: exists and is not {kind.name}; choose another file")
