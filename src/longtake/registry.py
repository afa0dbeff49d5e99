"""Named extension points whose implementations are imported on first use."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from longtake.errors import ConfigError, unknown

_ADDRESS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class Registry:
    """Maps names to ``"module:attribute"`` addresses; an address is itself a valid name.

    Installed packages add names through the entry-point group of the registry, without any
    configuration.
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
        """All names: the built-in ones first, then those of installed packages."""
        self._read_plugins()
        return list(self._targets)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: str) -> bool:
        return name in self._targets or name in self.names()

    def add(self, name: str, target: str) -> None:
        """Map ``name`` to ``"module:attribute"``, replacing an existing name."""
        self._targets[name] = target

    def finds(self, name: str) -> bool:
        """Whether :meth:`get` would look for ``name``: a known name, or an address."""
        return name in self or _ADDRESS.fullmatch(name) is not None

    def modules(self) -> list[str]:
        """The modules behind all names and behind every address used so far, each once."""
        self._read_plugins()
        targets = [*self._targets.values(), *self._addresses]
        return list(dict.fromkeys(target.partition(":")[0] for target in targets))

    def get(self, name: str) -> Any:
        """Import what ``name`` stands for; addresses may name modules in the working folder."""
        # only an address given by the user is imported from the working folder
        if name not in self:
            if not _ADDRESS.fullmatch(name):
                raise unknown(self.kind, name, self.names())
            _find_in_working_folder()
            # remembered, so that the prompts beside a method of the working folder are found
            self._addresses[name] = None
        module, _, attribute = self._targets.get(name, name).partition(":")
        try:
            target = getattr(import_module(module), attribute)
        except Exception as error:  # importing a module of another package can raise anything
            reason = str(error)
            if not isinstance(error, ImportError | AttributeError):
                reason = f"{type(error).__name__}: {error}"
            raise ConfigError(
                f"{self.kind} {name!r} cannot be loaded: {reason}", key=name
            ) from error
        if fault := self._fault(target):
            raise ConfigError(f"{name} is not a {self.kind}: {fault}", key=name)
        return target

    def name_of(self, kind: type[Any]) -> str:
        """The name or address by which :meth:`get` finds a class again; empty if there is none."""
        for name, target in self._targets.items():
            module, _, attribute = target.partition(":")
            # a class in use has been imported, so nothing needs importing here
            if getattr(sys.modules.get(module), attribute, None) is kind:
                return name
        address = f"{kind.__module__}:{kind.__qualname__}"
        return address if _ADDRESS.fullmatch(address) and kind.__module__ != "__main__" else ""

    def _read_plugins(self) -> None:
        if not self._plugins_read:
            from importlib.metadata import entry_points  # late: slow to import, seldom needed

            self._plugins_read = True
            for point in entry_points(group=self.group):
                # a package cannot take over a built-in name
                self._targets.setdefault(point.name, point.value)


def _find_in_working_folder() -> None:
    """Make the working folder importable; last on the path, so its files cannot shadow packages."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _no_method(target: Any) -> str:
    """Say why something is not a method; empty if it is one."""
    # fields are a method's settings, so a plain class would have none
    if not (isinstance(target, type) and dataclasses.is_dataclass(target)):
        return "a method is a dataclass (docs/tutorial.md shows one)"
    return _missing(target, ("name", "paper", "roles", "presets", "answer"))


def _no_backend(target: Any) -> str:
    """Say why something is not a backend; empty if it is one."""
    if not isinstance(target, type):
        return "a backend is a class (docs/models.md shows one)"
    if fault := _missing(target, ("name", "settings", "host", "open", "tries", "at_once")):
        return f"{fault}; derive it from longtake.llm.backend.Backend"
    # reported here, where the name is known, instead of at the first instantiation
    abstract = sorted(getattr(target, "__abstractmethods__", ()))
    return f"it does not define {', '.join(abstract)}" if abstract else ""


def _missing(target: type[Any], parts: tuple[str, ...]) -> str:
    missing = [part for part in parts if not hasattr(target, part)]
    return f"it has no {', '.join(missing)}" if missing else ""


methods = Registry(
    "method",
    "longtake.methods",
    {
        "uniform": "longtake.methods.baselines.method:Uniform",
        "search": "longtake.methods.baselines.method:Search",
        "blind": "longtake.methods.baselines.method:Blind",
        "lookup": "longtake.methods.lookup.method:Lookup",
        "auto": "longtake.methods.auto.method:Auto",
        "videoagent": "longtake.methods.videoagent.method:VideoAgent",
        "a4vl": "longtake.methods.a4vl.method:A4VL",
        "videodetective": "longtake.methods.videodetective.method:VideoDetective",
        "lvagent": "longtake.methods.lvagent.method:LVAgent",
        "symphony": "longtake.methods.symphony.method:Symphony",
    },
    _no_method,
)
"""Ways to answer a question about a film."""

encoders = Registry(
    "encoder",
    "longtake.encoders",
    {
        "conse": "longtake.perception.conse:open_conse",
        "efficientnet-lite2": "longtake.perception.encoders:open_efficientnet",
        "clip-vit-base-patch32": "longtake.perception.cards:open_named_card",
        "siglip2-base-patch16-224": "longtake.perception.cards:open_named_card",
        "dinov2-small": "longtake.perception.cards:open_named_card",
        "transformers": "longtake.perception.torch_encoder:open_transformers",
    },
)
"""Image encoders. An entry is called with an ``EncoderSetup`` (see ``perception.catalogue``)."""

backends = Registry(
    "backend",
    "longtake.backends",
    {
        "openai": "longtake.llm.backends.openai:OpenAIBackend",
        "local": "longtake.llm.backends.local:LocalBackend",
        "socratic": "longtake.llm.backends.socratic:SocraticBackend",
        "senses": "longtake.llm.backends.socratic:PerceptionOnlyBackend",
        "scripted": "longtake.llm.backends.scripted:ScriptedBackend",
    },
    _no_backend,
)
"""Ways to reach a model."""
