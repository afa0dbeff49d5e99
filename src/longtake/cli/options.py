"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from longtake import config, registry
from longtake.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
COUNT = click.IntRange(min=1)

film_path = click.argument("path", type=PATH, metavar="FILM")

full_hash = click.option(
    "--full-hash",
    is_flag=True,
    help="Identify films by every byte, not by their beginning, middle and end.",
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)
debug = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show where an error came from."
)
quiet_option = click.option(
    "--quiet", "-q", is_flag=True, help="Print only the answer and its citations."
)
verbose_option = click.option(
    "--verbose", "-v", is_flag=True, help="Show everything that the method does."
)
retry_errors = click.option("--retry-errors", is_flag=True, help="Retry questions that failed.")


def workers(default: int) -> Callable[[F], F]:
    """``--workers``."""
    return click.option(
        "--workers", type=COUNT, default=default, show_default=True, help="Number of processes."
    )


def plot(help: str) -> Callable[[F], F]:  # noqa: A002
    """``--plot``; drawing needs an extra."""
    return click.option("--plot", type=FILE, metavar="FILE", help=f"{help} (extra: plot).")


def common(command: F) -> F:
    """Add ``--json`` and options for settings; the command gets ``settings`` and ``as_json``."""

    @functools.wraps(command)
    def with_settings(
        *args: Any,
        config_file: Path | None,
        assignments: tuple[str, ...],
        trust_config: bool,
        **rest: Any,
    ) -> Any:
        settings = config.load(
            config=config_file,
            assignments=assignments,
            trust_working_folder=trust_config,
            # a method's section has its own name, so the names must be known
            method_names=registry.methods.names(),
        )
        return command(*args, settings=settings, **rest)

    return add_options(with_settings, [as_json, *_SETTINGS, debug])  # type: ignore[return-value]


_SETTINGS = [
    click.option(
        "--config",
        "config_file",
        type=PATH,
        metavar="FILE",
        help="Settings that override your own and those in longtake.toml.",
    ),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting, such as media.workers=2; repeatable.",
    ),
    click.option(
        "--trust-config",
        is_flag=True,
        help="Let longtake.toml in this folder name servers and keys.",
    ),
]


def add_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """Apply options so that ``--help`` lists them in the given order."""
    # decorators apply from the bottom up
    for option in reversed(options):
        command = option(command)
    return command


def benchmark_files(help: str) -> Callable[[F], F]:  # noqa: A002
    """``--data``."""
    return click.option("--data", type=PATH, metavar="DIR", help=help)


def _read_parts(
    context: click.Context,  # noqa: ARG001
    option: click.Parameter,  # noqa: ARG001
    assignments: tuple[str, ...],
) -> dict[str, str]:
    parts = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--of {text}: write KEY=VALUE")
        parts[key] = value
    return parts


benchmark_parts = click.option(
    "--of",
    "parts",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_read_parts,
    help="A part of the benchmark; see 'longtake benchmarks'.",
)
