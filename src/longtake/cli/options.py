"""Options that several commands share, and how they become settings, sessions and questions."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from longtake import config, registry
from longtake._util.timecode import parse_range
from longtake.cli.output import Output, say
from longtake.config.entries import BUILTIN_MODELS, PRESETS
from longtake.errors import ConfigError, MediaError, check_limit
from longtake.runner.assignment import (
    BUILT_IN_METHOD,
    DEFAULT_METHOD,
    ONE_MODEL_METHOD,
    ModelAssignment,
)
from longtake.runner.session import Session
from longtake.types import Question, QuestionKind
from longtake.video import remote

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
FOLDER.name = "dir"  # as --help calls it
COUNT = click.IntRange(min=1)


class _Path(click.Path):
    """A file or folder; for films, also a URL."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        if isinstance(value, str) and "://" in value:
            if self is not FILM:
                self.fail("only files on this machine can be named here, not URLs", param, ctx)
            return remote.film_path(value)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        # in one line, since this may be the only word of the command line
        if self is EXISTING and not path.exists():
            raise MediaError(path, "not_found", "does not exist")
        return path


PATH = _Path(path_type=Path)
EXISTING = _Path(path_type=Path)
FILM = _Path(path_type=Path)

film_path = click.argument("path", type=FILM, metavar="FILM")

# hidden, since longtake --help lists it once for all commands
debug = click.option("--debug", is_flag=True, expose_value=False, hidden=True)
quiet_option = click.option(
    "--quiet", "-q", is_flag=True, help="Print only the answer and its citations."
)
verbose_option = click.option(
    "--verbose", "-v", is_flag=True, help="Show every step of the method."
)


def json_option(command: F) -> F:
    """Add ``--json``, and print the :class:`Output` that the command returns."""

    @functools.wraps(command)
    def printed(*args: Any, as_json: bool, **rest: Any) -> Any:
        result = command(*args, **rest)
        return result.show(as_json=as_json) if isinstance(result, Output) else result

    help_text = "Print one JSON object instead of text."
    option = click.option("--json", "as_json", is_flag=True, help=help_text)
    return option(printed)  # type: ignore[return-value]


def settings_options(command: F) -> F:
    """Add ``--set`` and ``--config``; the command gets ``settings``."""

    @functools.wraps(command)
    def with_settings(
        *args: Any, config_file: Path | None, assignments: tuple[str, ...], **rest: Any
    ) -> Any:
        if config_file is None and Path(WORKING).is_file():
            say(f"{WORKING} is not read unless it is named: --config {WORKING}")
        settings = config.load(
            config=config_file,
            assignments=assignments,
            # a section may be named after any registered method
            method_names=registry.methods.names(),
        )
        return command(*args, settings=settings, **rest)

    return add_options(with_settings, _SETTINGS_OPTIONS)  # type: ignore[return-value]


def common(command: F) -> F:
    """Add ``--json`` and the options for settings.

    The command gets ``settings`` and returns an :class:`Output`, which is printed.
    """
    return json_option(settings_options(command))


WORKING = "longtake.toml"
"""A file that earlier versions read from the working folder."""
_SETTINGS_OPTIONS = [
    click.option("--config", "config_file", type=PATH, hidden=True),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting, such as media.workers=2; repeatable.",
    ),
    debug,
]


def add_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """Apply options so that ``--help`` lists them in the given order."""
    # decorators apply from the bottom up
    for option in reversed(options):
        command = option(command)
    return command


within_option = click.option(
    "--within",
    metavar="START-END",
    callback=lambda _context, _option, text: None if text is None else parse_range(text),
    help="Only this part, such as 00:10:00-00:20:00; clipped to the film.",
)


def _complete_methods(_context: Any, _option: Any, typed: str) -> list[str]:
    """Complete the name of a method."""
    return [name for name in registry.methods.names() if name.startswith(typed)]


def _complete_models(_context: Any, _option: Any, typed: str) -> list[str]:
    """Complete the name of a built-in model, or the prefix of a vendor's models."""
    names = [*BUILTIN_MODELS, *(preset.begins for preset in PRESETS), "lab/acuity=0.8"]
    return [name for name in names if name.startswith(typed)]


_method = functools.partial(click.option, shell_complete=_complete_methods, metavar="NAME")
method_option = _method("--method", default=DEFAULT_METHOD, help="See 'longtake methods'.")
question_method_option = _method(
    "--method",
    help="See 'longtake methods'."
    f"  [default: {BUILT_IN_METHOD} with built-in models, {ONE_MODEL_METHOD} with one other model"
    f" for every role, else {DEFAULT_METHOD}]",
)
methods_option = _method(
    "--method", "methods", multiple=True, help="Repeatable.  [default: every method]"
)


_QUESTION_OPTIONS = [
    click.option(
        "--option",
        "options",
        multiple=True,
        metavar="TEXT",
        help="A possible answer; give 2 to 26 of them.",
    ),
    click.option(
        "--as",
        "asked_as",
        type=click.Choice(get_args(QuestionKind)),
        metavar="KIND",
        help=f"Kind of question: {', '.join(get_args(QuestionKind))}.  [default: by its words]",
    ),
    click.option("--subtitles", type=PATH, metavar="FILE", help="SRT, VTT, ASS or JSON."),
]


_LIMITS = {
    "seconds": click.option(
        "--max-seconds",
        type=float,
        metavar="N",
        help="Stop after this time with the best answer so far.",
    ),
    "cost": click.option(
        "--max-cost", type=float, metavar="USD", help="Maximum cost per question."
    ),
    "tokens": click.option(
        "--max-tokens", type=int, metavar="N", help="Maximum number of tokens, in and out."
    ),
    "frames": click.option(
        "--max-frames", type=int, metavar="N", help="Maximum number of pictures shown to models."
    ),
    "calls": click.option("--max-calls", type=int, metavar="N", help="Maximum number of calls."),
}
"""Options that limit the budget, by the name of the limit."""


_SESSION_OPTIONS = [
    click.option(
        "--model",
        "models",
        shell_complete=_complete_models,
        multiple=True,
        metavar="[ROLE=]NAME",
        help="A model for all roles, or for one; repeatable. See 'longtake models list'.",
    ),
    click.option("--team", type=PATH, metavar="FILE", help="A team file, for team methods."),
    click.option(
        "--prompts", type=PATH, metavar="DIR", help="A folder of prompts that replace shipped ones."
    ),
    *_LIMITS.values(),
    click.option("--seed", type=int, default=0, help="For methods that sample frames at random."),
    click.option("--offline", is_flag=True, help="Refuse models that are not on this machine."),
    click.option("--no-cache", "fresh", is_flag=True, help="Do not reuse earlier replies."),
    click.option(
        "--verify/--no-verify",
        default=None,
        help="Check the answer and its citations afterwards, or do not.",
    ),
    click.option(
        "--min-confidence",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Withhold answers whose probability is lower or unknown.",
    ),
]


def question_options(command: F) -> F:
    """Add ``--option``, ``--as`` and ``--subtitles``.

    The command gets ``options``, ``asked_as`` and ``subtitles``.
    """
    return add_options(command, _QUESTION_OPTIONS)


def session_options(command: F) -> F:
    """Add the options of a session; the command gets a ``session`` instead of its ``settings``."""

    @functools.wraps(command)
    def with_session(
        *args: Any,
        models: tuple[str, ...],
        team: Path | None,
        prompts: Path | None,
        seed: int,
        offline: bool,
        fresh: bool,
        verify: bool | None,
        min_confidence: float | None,
        **rest: Any,
    ) -> Any:
        check_offline(offline, rest.get("path"), *rest.get("paths", ()))
        limits = _without_none({name: rest.pop(f"max_{name}") for name in _LIMITS})
        for name, limit in limits.items():
            check_limit(f"--max-{name}", limit)
        checks = _without_none({"verify": verify, "min_confidence": min_confidence})
        settings = rest.pop("settings")
        settings = replace(
            settings,
            budget=replace(settings.budget, **limits),
            answers=replace(settings.answers, **checks),
        )
        assignment = ModelAssignment(models, team, offline, replies=not fresh)
        return command(*args, session=Session(settings, assignment, seed, prompts), **rest)

    return add_options(with_session, _SESSION_OPTIONS)  # type: ignore[return-value]


def check_offline(offline: bool, *paths: Path | None) -> None:
    """Reject films on other machines if ``offline`` is set."""
    for path in paths:
        if offline and isinstance(path, remote.RemotePath):
            raise ConfigError(f"{path} is on another machine, and --offline forbids reading it")


def answering_options(command: F) -> F:
    """Like :func:`session_options`, but without ``--model`` the configured model answers.

    Measurements use :func:`session_options`: they must not depend on the user's configuration.
    """

    @functools.wraps(command)
    def with_model(*args: Any, session: Session, **rest: Any) -> Any:
        assignment = session.assignment.by_default(session.settings)
        return command(*args, session=replace(session, assignment=assignment), **rest)

    return session_options(with_model)  # type: ignore[return-value]


def _without_none(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def read_question(
    text: str, options: tuple[str, ...], asked_as: QuestionKind | None = None
) -> Question:
    """Return the question; raise :class:`ConfigError` if it is invalid."""
    try:
        "".join((text, *options)).encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the question or an option is not valid UTF-8") from error
    try:
        return Question(text, options, asked_as)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def check_models(session: Session, roles: tuple[str, ...], *, here: bool = True) -> None:
    """Reject models that cannot be used, and print the hosts that data will be sent to.

    Called before a film is indexed, which can take long. Unless models run ``here``, keys and
    weights are only needed on other machines.
    """
    if here:
        session.check_models(roles)
    for host in session.hosts(roles):
        say(f"pictures and words from this film will be sent to {host}")
