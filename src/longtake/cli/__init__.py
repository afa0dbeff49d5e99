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
from collections.abc import Container
from typing import TYPE_CHECKING

import click

from longtake import __version__
from longtake._util import on_one_line, visible
from longtake._util.cancellation import leave
from longtake.errors import ConfigError, LongtakeError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


GROUP = "longtake.commands"


def installed(reserved: Container[str]) -> dict[str, EntryPoint]:
    """The added commands by name; a package cannot replace a reserved name."""
    from importlib.metadata import entry_points  # late: slow to import, seldom needed

    points: dict[str, EntryPoint] = {}
    # sorted, since packages come in no fixed order
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name not in reserved:
            points.setdefault(point.name, point)
    return points


def describe(point: EntryPoint) -> str:
    """The line for ``--help``: the command's own summary would require importing it."""
    return f"Added by {_package(point)}."


def load(point: EntryPoint) -> click.Command:
    """Import a command."""
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


COMMANDS = {
    "setup": "Find what is there, choose a model, try it, and write your configuration.",
    "ask": "Ask a question about films; get answers with evidence.",
    "chat": "Ask a film one question after another.",
    "history": "Show what was asked before.",
    "compare": "Compare several methods on one question.",
    "estimate": "Show the most a question can cost, without asking it.",
    "serve": "Start a server with a page on which to ask and watch answers being found.",
    "mcp": "Offer films as tools to an assistant, over the Model Context Protocol.",
    "methods": "List the methods, or show one with its fields, paper, roles and cost.",
    "replay": "Show a recorded run offline, or repeat it with its recorded replies.",
    "info": "Show a film's length, picture, sound and subtitles.",
    "transcript": "Show what is said in a film, with times, or save it as subtitles.",
    "speakers": "List who speaks in a film, or rename speakers.",
    "frames": "Save the frames at given times.",
    "clip": "Cut a stretch out of a film.",
    "index": "Index films, so that questions are answered quickly.",
    "events": "Divide a film into blocks where its content changes.",
    "chapters": "Show a film's chapters, or export them.",
    "summary": "Summarise a film, with its chapters.",
    "extract": "Extract a table from films: every cell is a value with its citation, or null.",
    "search": "Find moments by words: in speech, pictures and on-screen text.",
    "library": "Search and ask many films at once.",
    "eval": "Run a method on a benchmark and score it.",
    "reproduce": "Repeat the tables of a paper row by row, beside the published figures.",
    "calibrate": "Fit probabilities to a model's answers to labelled questions.",
    "report": "Score runs and compare them, as Markdown, JSON or a web page.",
    "audit": "Show what answers owe to the footage, to citations and to letters.",
    "benchmarks": "List the benchmarks: what to download, where to put it, under which terms.",
    "select": "Choose a team from a library of agents, without labels.",
    "train-retriever": "Train a head that finds the part of a film that a text describes.",
    "models": "List, probe and download language models.",
    "lab": "Make films with known truth, and simulate models of known acuity.",
    "cache": "List and clear what was derived from films.",
    "completion": "Print a script that completes commands in your shell.",
    "doctor": "Show what is installed, configured and available, and what to do next.",
}
"""Our commands in the order of ``--help``. Their summaries are here so that ``--help`` need not
import them."""

_FILES = {
    "audit": "eval",
    "benchmarks": "eval",
    "completion": "setup",
    "doctor": "setup",
    "estimate": "compare",
    "events": "chapters",
    "frames": "clip",
    "mcp": "serve",
    "report": "eval",
    "speakers": "transcript",
    "summary": "chapters",
}
"""Commands whose file is not named after them."""

WELCOME = """\
Ask a film:      longtake ask film.mp4 "Who wins the race?"
Choose a model:  longtake setup   (or per question: --model gemini-…, gpt-…, claude-…, ollama/…)
Open the page:   longtake serve --films DIR --open
All commands:    longtake --help"""
"""What ``longtake`` alone prints."""

INTERRUPTED = "interrupted; finished work is kept"


class _LazyGroup(click.Group):
    """Imports a command only when it is called, which keeps ``--help`` instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*COMMANDS, *installed(COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in COMMANDS:
            return _load(cmd_name)
        point = installed(COMMANDS).get(cmd_name)
        return None if point is None else load(point)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        added = {}
        for name, point in installed(COMMANDS).items():
            added[name] = describe(point)
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items(), *added.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # click's own error would not suggest the nearest command
        name = args[0] if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            known = self.list_commands(ctx)
            if name not in known:
                raise unknown("command", name, known)
        return super().resolve_command(ctx, args)


def _load(name: str) -> click.Command:
    identifier = name.replace("-", "_")
    file = _FILES.get(name, identifier)
    # the collector would search all that was imported so far again and again, and find nothing
    gc.disable()
    try:
        module = importlib.import_module(f"longtake.cli.{file}")
    finally:
        gc.freeze()
        gc.enable()
    # a function named eval would shadow the built-in
    command = getattr(module, "eval_command" if name == "eval" else identifier)
    assert isinstance(command, click.Command)
    return command


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="longtake")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Ask questions about long videos; get answers with evidence you can check.

    Every command has --help with an example. Results go to standard output, progress to standard
    error.
    """
    if ctx.invoked_subcommand is None:
        click.echo(WELCOME)


def main() -> None:
    """Run the ``longtake`` command."""
    # looking for pydantic's plugins reads the metadata of every installed package
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
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
    # --help and --version end like this
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return _fail(error, INTERRUPTED, 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SystemExit:
        # click exits like this when the reader of a pipe goes away (| head)
        return 0
    except OSError as error:
        return _fail(error, _explain(error), 1)
    except sqlite3.DatabaseError as error:
        return _fail(error, f"a database in the cache failed: {error}", 1)
    except Exception as error:  # noqa: BLE001 - the last stop before the user
        what = f"{type(error).__name__}: {error}"
        return _fail(error, f"internal error: {what} (--debug shows where)", 1)


def _explain(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or "while writing"
        return f"the disk is full ({place}); finished parts are kept"
    return f"{error.filename or 'file'}: {error.strerror or error}"


def _fail(error: BaseException, message: str, code: int) -> int:
    if _interrupted(error):
        message, code = INTERRUPTED, 130
    # read from argv, since the error may have come before options were parsed
    if "--debug" in sys.argv:
        traceback.print_exception(error)
    print(f"longtake: {visible(message)}", file=sys.stderr)
    return code


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused the error; a library that is being loaded wraps it in its own."""
    known: set[int] = set()
    # an error may be its own cause, by way of others
    while error is not None and id(error) not in known:
        if isinstance(error, KeyboardInterrupt | click.Abort):
            return True
        known.add(id(error))
        error = error.__cause__
    return False
