"""Options that every command takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from longtake import config, registry
from longtake.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """Adds ``--json`` and the options that settings come from; the command gets ``settings`` and ``as_json``."""

    @functools.wraps(command)
    def with_settings(
        *args: Any,
        config_file: Path | None,
        assignments: tuple[str, ...],
        trust_config: bool,
        debug: bool,
        **rest: Any,
    ) -> Any:
        del debug  # read where errors are shown
        settings = config.load(
            config=config_file,
            assignments=assignments,
            trust_working_folder=trust_config,
            method_names=registry.methods.names(),
        )
        return command(*args, settings=settings, **rest)

    options = [
        click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Settings to lay over the user's own and longtake.toml.",
        ),
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="KEY=VALUE",
            help="One setting, as in media.workers=2; repeatable.",
        ),
        click.option(
            "--trust-config",
            is_flag=True,
            help="Let longtake.toml in this folder name servers and keys.",
        ),
        click.option("--debug", is_flag=True, help="Show where an error came from."),
    ]
    decorated: Any = with_settings
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


film = click.argument("film", type=click.Path(path_type=Path))
"""The film a command is about."""

full_hash = click.option(
    "--full-hash",
    is_flag=True,
    help="Tell films apart by every byte, not by head, middle and tail.",
)


def read_parts(assignments: tuple[str, ...]) -> dict[str, str]:
    """``--of KEY=VALUE``, which part of a benchmark is asked, given several times."""
    parts = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--of {text}: write KEY=VALUE")
        parts[key] = value
    return parts
