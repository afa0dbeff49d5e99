"""Presets that repeat a paper's experiment, one TOML file each, with its published figures."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from longtake.errors import unknown


@dataclass(frozen=True)
class Published:
    """A published figure. It is shown as such and never enters a computation."""

    accuracy: float
    """In per cent."""
    system: str
    where: str
    """The paper and the table."""

    def row(self, preset: str) -> list[str]:
        """The figure as a row of a table: system, accuracy, source."""
        return [f"{self.system} ({preset})", f"{self.accuracy:.1f} %", self.where]


@dataclass(frozen=True)
class EvalPreset:
    """What to run, and what is known about the original experiment."""

    name: str
    title: str
    benchmark: str
    method: str
    used: str
    """The models that the paper used."""
    departs: str = ""
    """How this differs from the paper's experiment."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the benchmark, such as the split."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the method."""
    models: tuple[str, ...] = ()
    """The paper's models in the notation of ``--model``, if a public server offers them.

    If empty, the user has to name models.
    """
    published: tuple[Published, ...] = ()


def names() -> list[str]:
    """The names of all presets."""
    files = [entry.name for entry in resources.files(__name__).iterdir()]
    return sorted(file.removesuffix(".toml") for file in files if file.endswith(".toml"))


def read(name: str) -> EvalPreset:
    """Read the preset with that name."""
    if name not in names():
        raise unknown("preset", name, names())
    file = resources.files(__name__) / f"{name}.toml"
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    # every other key of the file is a field of Preset
    published = tuple(Published(**row) for row in data.pop("published", ()))
    return EvalPreset(name=name, models=tuple(data.pop("models", ())), published=published, **data)
