"""Options that several commands about benchmarks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from longtake.cli.options import COUNT, PATH, F
from longtake.errors import ConfigError

retry_errors = click.option("--retry-errors", is_flag=True, help="Retry questions that failed.")
ablation_option = click.option(
    "--ablation", metavar="NAME", help="A row of the paper's tables, by name; 'help' lists them."
)
allow_differences = click.option(
    "--allow-differences", is_flag=True, help="Run with other encoders than the paper's."
)


def number(
    *names: str,
    default: float,
    kind: click.ParamType[Any] = COUNT,
    help: str | None = None,  # noqa: A002
    hidden: bool = False,
) -> Callable[[F], F]:
    """An option that takes a number."""
    return click.option(*names, type=kind, default=default, help=help, hidden=hidden)


def workers(default: int) -> Callable[[F], F]:
    """``--workers``."""
    return click.option("--workers", type=COUNT, default=default, help="Number of processes.")


def benchmark_files(help: str) -> Callable[[F], F]:  # noqa: A002
    """``--data``."""
    return click.option("--data", type=PATH, metavar="DIR", help=help)


def _read_parts(_context: Any, _option: Any, assignments: tuple[str, ...]) -> dict[str, str]:
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
    help="A part of the benchmark; see 'longtake eval --list'.",
)
