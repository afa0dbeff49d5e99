"""Commands that installed packages add.

A package adds a command with an entry point in the group ``longtake.commands``. Its name is what
the user types, its value is a click command::

    [project.entry-points."longtake.commands"]
    hello = "my_package.hello:command"
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

import click

from longtake.display import on_one_line
from longtake.errors import ConfigError

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
