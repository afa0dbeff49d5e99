"""The command line: one module per command, imported when the command is called."""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import sqlite3
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from longtake import __version__
from longtake._util import on_one_line, visible
from longtake._util.cancellation import leave
from longtake.errors import ConfigError, LongtakeError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


GROUPS = {
    "Ask": {
        "ask, chat": "a question, with evidence; one after another",
        "compare": "several methods on one question",
        "extract": "a table: every cell with its citation",
        "library": "search and ask many films at once",
        "serve, mcp": "a page and an API; tools for assistants",
        "replay": "a recorded run again",
    },
    "Look": {
        "search": "find moments by words: heard, seen, written",
        "summary": "what a film is about; chapters to export",
        "transcript, speakers": "what is said, as subtitles too; who speaks",
        "info, frames, clip": "describe a film; save stills; cut a stretch",
    },
    "Manage": {
        "setup, doctor": "choose a model; check the installation",
        "models, methods": "list, try and download models; show methods",
        "index, cache": "index films ahead; list and clear the cache",
    },
}
"""Built-in commands as ``--help`` shows them, without importing any."""
COMMANDS = tuple(name for group in GROUPS.values() for names in group for name in names.split(", "))
MEASURING = {
    "eval, report, audit": "run benchmarks; score runs; question scores",
    "reproduce, calibrate": "a paper's tables; fit probabilities",
    "select, train-retriever": "choose a team; train a finder of clips",
    "lab": "films of known truth, simulated models",
}
"""Commands of the package ``longtake_bench``, as ``--help`` shows them if it is installed."""

_FILES = {"doctor": "setup", "frames": "clip", "mcp": "serve", "speakers": "transcript"}
"""Commands that share a module with another one."""

WELCOME = """\
Ask a film:      longtake film.mp4 "Who wins the race?"
Open the page:   longtake film.mp4
Choose a model:  longtake setup   (or per question: --model gemini-…, gpt-…, claude-…, ollama/…)
All commands:    longtake --help"""
"""What ``longtake`` alone prints."""

USAGE = """\
Usage: longtake FILM "QUESTION"   answer it, with evidence that you can check
       longtake FILM              open the page on the film
       longtake COMMAND --help    a command's options, with an example

"""

SHARED_OPTIONS = "Most take --json, --set KEY=VALUE, --config FILE and --debug."
INTERRUPTED = "interrupted; finished work is kept"
MOVE_CACHE = "$LONGTAKE_CACHE or cache.folder moves the cache"


class _LazyGroup(click.Group):
    """Imports a command only when it is called, which keeps ``--help`` instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*COMMANDS, *_added()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in COMMANDS:
            return _load(cmd_name)
        point = _added().get(cmd_name)
        return None if point is None else _load_added(point)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        formatter.write(USAGE)
        for title, group in GROUPS.items():
            _write_group(formatter, title, group)
        installed = _added()
        measuring = {
            names: summary
            for names, summary in MEASURING.items()
            if all(name in installed for name in names.split(", "))
        }
        _write_group(formatter, "Measure", measuring)
        known = {name for names in measuring for name in names.split(", ")}
        # the summary of an added command would require importing it
        added = {
            name: f"Added by {_package(point)}."
            for name, point in installed.items()
            if name not in known
        }
        _write_group(formatter, "Added", added)
        formatter.write(f"\n{SHARED_OPTIONS}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, *words = args
        if name not in COMMANDS and name not in _added() and not name.startswith("-"):
            if not names_film(name):
                # click's error would not suggest the nearest command
                raise unknown("command", name, self.list_commands(ctx))
            # the page shows files, not URLs
            alone = not words and "://" not in name
            if alone or all(map(os.path.exists, args)):
                name, words = "serve", ["--open", *(f"--films={path}" for path in args)]
            else:
                name, words = "ask", args
        return super().resolve_command(ctx, [name, *words])


def _write_group(formatter: click.HelpFormatter, title: str, group: Mapping[str, str]) -> None:
    for number, (names, summary) in enumerate(group.items()):
        formatter.write(f"{'' if number else title:<9}{names:<25}{summary}\n")


def _added() -> dict[str, EntryPoint]:
    """Commands that other packages add, by name; they cannot replace a built-in one."""
    from importlib.metadata import entry_points  # late: slow to import, seldom needed

    points: dict[str, EntryPoint] = {}
    # sorted, since packages come in no fixed order
    for point in sorted(entry_points(group="longtake.commands"), key=lambda point: point.name):
        if point.name not in COMMANDS:
            points.setdefault(point.name, point)
    return points


def _load_added(point: EntryPoint) -> click.Command:
    where = f"command {point.name!r}, added by {_package(point)},"
    try:
        command = point.load()
    except Exception as error:  # importing a module can raise anything
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{where} cannot be loaded: {problem}", key=point.name) from error
    if not isinstance(command, click.Command):
        raise ConfigError(f"{where} is not a click command: {point.value}", key=point.name)
    return command


def _package(point: EntryPoint) -> str:
    name = point.dist.name if point.dist is not None else point.module
    return f"the package {on_one_line(name)}"


def names_film(word: str) -> bool:
    """Whether a word looks like a film or a folder; it may not exist."""
    # unlike pathlib's, this takes any text
    if os.path.exists(word) or "://" in word:  # noqa: PTH110
        return True
    from longtake.video.container import SUFFIXES  # late: it loads FFmpeg

    return os.path.splitext(word)[1].lower() in SUFFIXES  # noqa: PTH122


def _load(name: str) -> click.Command:
    identifier = name.replace("-", "_")
    file = _FILES.get(name, identifier)
    # otherwise the garbage collector scans every imported object again and again
    gc.disable()
    try:
        module = importlib.import_module(f"longtake.cli.{file}")
    finally:
        gc.freeze()
        gc.enable()
    command = getattr(module, identifier)
    assert isinstance(command, click.Command)
    return command


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, prog_name="longtake")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Ask questions about long videos; get answers with evidence you can check."""
    if ctx.invoked_subcommand is None:
        click.echo(WELCOME)


def main() -> None:
    """Run the ``longtake`` command."""
    # looking for pydantic's plugins reads the metadata of every installed package
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # closed by whoever started this; otherwise the next file opened would take its number
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # file names may hold bytes that are not valid text
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    leave(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    try:
        # not standalone: click would turn every error into its own exit code
        code = root.main(arguments, prog_name="longtake", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except LongtakeError as error:
        return _fail(error, str(error), error.exit_code)
    # raised by --help and --version
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return _fail(error, INTERRUPTED, 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SystemExit:
        # raised by click when the reader of a pipe goes away (| head)
        return 0
    except OSError as error:
        return _fail(error, _explain(error), 1)
    except sqlite3.DatabaseError as error:
        return _fail(error, f"a database in the cache cannot be used: {error}; {MOVE_CACHE}", 1)
    except Exception as error:  # noqa: BLE001 - the last stop before the user
        what = f"{type(error).__name__}: {error}"
        return _fail(error, f"internal error: {what} (--debug shows the traceback)", 1)


def _explain(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or "while writing"
        return f"the disk is full ({place}); finished parts are kept"
    problem = f"{error.filename or 'file'}: {error.strerror or error}"
    if error.errno in (errno.EROFS, errno.EACCES):
        problem += f"; {MOVE_CACHE}"
    return problem


def _fail(error: BaseException, message: str, code: int) -> int:
    if _interrupted(error):
        message, code = INTERRUPTED, 130
    # from argv, since the error may have occurred before options were parsed
    if "--debug" in sys.argv:
        traceback.print_exception(error)
    print(f"longtake: {visible(message)}", file=sys.stderr)
    return code


def _interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C caused the error; imports may wrap it in an ImportError."""
    interrupts = (KeyboardInterrupt, click.Abort)
    return isinstance(error, interrupts) or isinstance(error.__cause__, interrupts)
