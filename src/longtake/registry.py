"""Names for things that are loaded only when asked for."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from longtake.errors import ConfigError, unknown

_ADDRESS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Registry:
    """Maps a name to ``"module:attribute"``, imported on first use; such an address is itself a name.

    Packages add their own through an entry-point group of the registry's name, so that a method of
    yours is found beside ours without a line of configuration.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: dict[str, str],
        fault: Callable[[Any], str] = lambda _: "",
    ) -> None:
        self.kind = kind
        self.group = group
        self._fault = fault
        self._targets = dict(builtin)
        self._addresses: dict[str, None] = {}
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

    def modules(self) -> list[str]:
        """The modules behind all names and behind every address that was used, each once."""
        self._read_plugins()
        targets = [*self._targets.values(), *self._addresses]
        return list(dict.fromkeys(target.partition(":")[0] for target in targets))

    def get(self, name: str) -> Any:
        """What ``name`` stands for, imported now; modules in the working folder are found by their address."""
        if name not in self:
            if not _ADDRESS.fullmatch(name):
                raise unknown(self.kind, name, self.names())
            _find_in_working_folder()
            self._addresses[name] = None
        module, _, attribute = self._targets.get(name, name).partition(":")
        try:
            found = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"{self.kind} {name!r} cannot be loaded: {error}", key=name
            ) from error
        except Exception as error:  # whatever a module of somebody else's does when it is imported
            raise ConfigError(
                f"{self.kind} {name!r} cannot be loaded: {_told(error)}", key=name
            ) from error
        if fault := self._fault(found):
            raise ConfigError(f"{name} is not a {self.kind}: {fault}", key=name)
        return found

    def name_of(self, kind: type[Any]) -> str:
        """The name by which :meth:`get` finds a class again: its own, else its address; empty: it finds none."""
        for name, target in self._targets.items():
            module, _, attribute = target.partition(":")
            if (
                getattr(sys.modules.get(module), attribute, None) is kind
            ):  # what was not imported is not in use
                return name
        address = f"{kind.__module__}:{kind.__qualname__}"
        return address if _ADDRESS.fullmatch(address) and kind.__module__ != "__main__" else ""

    def _read_plugins(self) -> None:
        if not self._plugins_read:
            self._plugins_read = True
            for point in entry_points(group=self.group):
                self._targets.setdefault(point.name, point.value)


def _find_in_working_folder() -> None:
    """Let modules be imported from the working folder; last, so that a stray file stands in for no package."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _no_method(found: Any) -> str:
    """What keeps something from being a method; empty: nothing."""
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        return "a method is a dataclass (docs/tutorial.md shows one)"
    missing = [
        part for part in ("name", "paper", "roles", "presets", "answer") if not hasattr(found, part)
    ]
    return f"it has no {', '.join(missing)}" if missing else ""


benchmarks = Registry(
    "benchmark",
    "longtake.benchmarks",
    {
        "egoschema": "longtake.evals.benchmarks.egoschema:ABOUT",
        "egoschema-captions": "longtake.evals.benchmarks.egoschema:CAPTIONS",
        "nextqa": "longtake.evals.benchmarks.nextqa:ABOUT",
        "nextqa-captions": "longtake.evals.benchmarks.nextqa:CAPTIONS",
        "nextgqa": "longtake.evals.benchmarks.nextgqa:ABOUT",
        "nextgqa-captions": "longtake.evals.benchmarks.nextgqa:CAPTIONS",
        "videomme": "longtake.evals.benchmarks.videomme:ABOUT",
        "longvideobench": "longtake.evals.benchmarks.longvideobench:ABOUT",
        "mlvu": "longtake.evals.benchmarks.mlvu:ABOUT",
        "lvbench": "longtake.evals.benchmarks.lvbench:ABOUT",
        "lab": "longtake.evals.benchmarks.lab:ABOUT",
        "lab-captions": "longtake.evals.benchmarks.lab:CAPTIONS",
    },
)
"""Questions with labels, each described by an ``About`` of :mod:`longtake.evals.benchmarks`."""

methods = Registry(
    "method",
    "longtake.methods",
    {
        "uniform": "longtake.methods.baselines.method:Uniform",
        "blind": "longtake.methods.baselines.method:Blind",
        "videoagent": "longtake.methods.videoagent.method:VideoAgent",
        "a4vl": "longtake.methods.a4vl.method:A4VL",
        "videodetective": "longtake.methods.videodetective.method:VideoDetective",
        "lvagent": "longtake.methods.lvagent.method:LVAgent",
        "symphony": "longtake.methods.symphony.method:Symphony",
    },
    _no_method,
)
"""Ways to answer a question about a film."""

chats = Registry("model family", "longtake.models", {"lab": "longtake.lab.acuity:make"})
"""Makers of models whose names begin with the family's: ``lab/acuity=0.8`` is made by ``lab``."""
