"""Names for things that are loaded only when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from longtake.errors import ConfigError, unknown

_ADDRESS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Registry:
    """Maps a name to ``"module:attribute"``, imported on first use; such an address is itself a name.

    Packages add their own through an entry-point group of the registry's name, so that a method of
    yours is found beside ours without a line of configuration.
    """

    def __init__(self, kind: str, group: str, builtin: dict[str, str]) -> None:
        self.kind = kind
        self.group = group
        self._targets = dict(builtin)
        self._plugins_read = False

    def names(self) -> list[str]:
        """All names, ours first, then what installed packages add."""
        self._read_plugins()
        return list(self._targets)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: str) -> bool:
        return name in self._targets or name in self.names()

    def add(self, name: str, target: str) -> None:
        """Give ``name`` to ``"module:attribute"``; an existing name is replaced."""
        self._targets[name] = target

    def get(self, name: str) -> Any:
        """What ``name`` stands for, imported now."""
        if name not in self and not _ADDRESS.fullmatch(name):
            raise unknown(self.kind, name, self.names())
        module, _, attribute = self._targets.get(name, name).partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"{self.kind} {name!r} cannot be loaded: {error}", key=name) from error

    def _read_plugins(self) -> None:
        if not self._plugins_read:
            self._plugins_read = True
            for point in entry_points(group=self.group):
                self._targets.setdefault(point.name, point.value)


methods = Registry(
    "method",
    "longtake.methods",
    {
        "uniform": "longtake.methods.baselines:Uniform",
        "blind": "longtake.methods.baselines:Blind",
        "videoagent": "longtake.methods.videoagent:VideoAgent",
        "a4vl": "longtake.methods.a4vl:A4VL",
        "videodetective": "longtake.methods.videodetective:VideoDetective",
        "lvagent": "longtake.methods.lvagent:LVAgent",
        "symphony": "longtake.methods.symphony:Symphony",
    },
)
"""Ways to answer a question about a film."""

chats = Registry("model family", "longtake.models", {"lab": "longtake.lab.acuity:make"})
"""Makers of models whose names begin with the family's: ``lab/acuity=0.8`` is made by ``lab``."""
