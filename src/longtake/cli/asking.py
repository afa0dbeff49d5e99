"""Options of the commands that ask."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from longtake.cli.output import say
from longtake.config import BudgetSettings, Settings
from longtake.errors import ConfigError
from longtake.session.asking import Session
from longtake.session.casting import Casting
from longtake.types import Question

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = [
    click.option(
        "--option",
        "options",
        multiple=True,
        metavar="TEXT",
        help="A possible answer; 2 to 26 of them.",
    ),
    click.option(
        "--model",
        "models",
        multiple=True,
        metavar="[ROLE=]NAME",
        help="A model for all roles, or for one; repeatable. See 'longtake models list'.",
    ),
    click.option(
        "--team",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A team file for team methods.",
    ),
    click.option(
        "--subtitles",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="SRT, VTT, ASS or JSON.",
    ),
    click.option(
        "--prompts",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Prompts that stand in for ours.",
    ),
    click.option(
        "--max-seconds",
        type=float,
        metavar="N",
        help="End with the best answer so far after this long.",
    ),
    click.option(
        "--max-cost", type=float, metavar="USD", help="The most that one question may cost."
    ),
    click.option("--max-tokens", type=int, metavar="N", help="The most tokens, in and out."),
    click.option("--max-frames", type=int, metavar="N", help="The most pictures shown to models."),
    click.option("--max-calls", type=int, metavar="N", help="The most calls."),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="For methods that draw frames at random.",
    ),
    click.option("--offline", is_flag=True, help="Refuse models that are not on this machine."),
    click.option("--no-cache", "fresh", is_flag=True, help="Do not use earlier replies."),
]


def asking_options(command: F) -> F:
    """Add the options above; the command gets a ``session`` made of them and of its settings."""

    @functools.wraps(command)
    def gathered(
        *args: Any,
        models: tuple[str, ...],
        team: Path | None,
        prompts: Path | None,
        seed: int,
        offline: bool,
        fresh: bool,
        max_seconds: float | None,
        max_cost: float | None,
        max_tokens: int | None,
        max_frames: int | None,
        max_calls: int | None,
        settings: Settings,
        **rest: Any,
    ) -> Any:
        limits: dict[str, Any] = {
            "seconds": max_seconds,
            "cost": max_cost,
            "tokens": max_tokens,
            "frames": max_frames,
            "calls": max_calls,
        }
        given = {name: value for name, value in limits.items() if value is not None}
        for name, value in given.items():
            if not 0 < value < math.inf:  # NaN is neither
                raise ConfigError(
                    f"--max-{name} {value}: a budget must be positive and finite", key=name
                )
        settings = replace(settings, budget=replace(settings.budget or BudgetSettings(), **given))
        casting = Casting(models, team, offline, replies=not fresh)
        return command(*args, session=Session(settings, casting, seed, prompts), **rest)

    decorated: Any = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def read_question(text: str, options: tuple[str, ...]) -> Question:
    """The question, or an error a user can act on."""
    try:
        "".join((text, *options)).encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the question or an option is not valid UTF-8") from error
    try:
        return Question(text, options)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def name_hosts(session: Session, roles: tuple[str, ...]) -> None:
    """Say where pictures and words will go, before any do."""
    for host in session.hosts(roles):
        say(f"pictures and words of this film will be sent to {host}")
