"""Speaking to a person at a terminal: one file per command, loaded when it is called."""

from __future__ import annotations

import errno
import importlib
import io
import sqlite3
import sys
import traceback

import click

from longtake import __version__
from longtake.display import visible
from longtake.errors import LongtakeError, unknown

COMMANDS = {
    "ask": "Ask a question about a film; get an answer with evidence.",
    "compare": "Several methods on one question, side by side.",
    "estimate": "What a question can cost at most, before it is asked.",
    "methods": "The methods, or one of them with its fields, paper, roles and cost.",
    "replay": "Show a recorded run again, offline; or repeat it on its recorded replies.",
    "info": "What a film is: length, picture, sound, subtitles.",
    "frames": "Save the frames on screen at given times.",
    "index": "Look through films once, so that questions are quick.",
    "events": "Divide a film into blocks where what is to be seen changes.",
    "search": "Find moments by words: in pictures, on-screen text and speech.",
    "eval": "Run a method over a benchmark, and score it.",
    "report": "Score runs and set them side by side, as Markdown, JSON or a page.",
    "benchmarks": "The benchmarks: what to download, where to put it, on which terms.",
    "select": "Choose a team from a library of agents, without labels.",
    "train-retriever": "Train a head that finds the part of a film that a text describes.",
    "models": "List, probe and fetch language models.",
    "lab": "Long films with known truth, and models of known acuity.",
    "cache": "See and clear what was derived from films.",
    "doctor": "What is installed, configured and in reach.",
}
"""Commands in the order of ``--help``. The texts are here so that help loads none of them."""

INTERRUPTED = "interrupted; what was finished is kept"


class _LazyGroup(click.Group):
    """Imports a command only when it is called: ``--help`` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"longtake.cli.{cmd_name.replace('-', '_')}")
        command = getattr(
            module, "eval_command" if cmd_name == "eval" else cmd_name.replace("-", "_")
        )
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="longtake")
def root() -> None:
    """Ask questions about long videos; get answers with evidence you can check.

    Every command has --help with an example. Results go to standard output, progress to standard error.
    """


def main() -> None:
    """The ``longtake`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name need not be text
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Carry out a command line; gives its exit code."""
    try:
        code = root.main(arguments, prog_name="longtake", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except LongtakeError as error:
        return _fail(error, str(error), error.exit_code)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return _fail(error, INTERRUPTED, 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SystemExit:
        # click's word for a reader that went away (| head): nothing to say, and nobody to say it to
        return 0
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _fail(
                error,
                f"the disk is full ({error.filename or 'while writing'}); finished parts are kept",
                1,
            )
        return _fail(error, f"{error.filename or 'file'}: {error.strerror or error}", 1)
    except sqlite3.DatabaseError as error:
        return _fail(error, f"a database of the store failed: {error}", 1)
    except Exception as error:  # noqa: BLE001 - the last stop before the user
        return _fail(
            error, f"internal error: {type(error).__name__}: {error} (--debug shows where)", 1
        )


def _fail(error: BaseException, message: str, code: int) -> int:
    if _interrupted(error):
        message, code = INTERRUPTED, 130
    if "--debug" in sys.argv:
        traceback.print_exception(error)
    print(f"longtake: {visible(message)}", file=sys.stderr)
    return code


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error: a library that was being loaded reports it as its own failure."""
    while error is not None and not isinstance(error, KeyboardInterrupt | click.Abort):
        error = error.__cause__
    return error is not None
