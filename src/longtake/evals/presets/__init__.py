"""Reproduction presets: a paper's experiment as a file beside this one, and the figure that the paper printed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from longtake.errors import unknown


@dataclass(frozen=True)
class Published:
    """A figure as somebody printed it. It is shown as such and never enters a computation."""

    accuracy: float
    """Per cent."""
    system: str
    where: str
    """Which table of which paper."""


@dataclass(frozen=True)
class Preset:
    """What to run, and what is known of the original."""

    name: str
    title: str
    benchmark: str
    method: str
    used: str
    """The models of the paper, in words."""
    departs: str = ""
    """In what this cannot be the paper's experiment."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Which part of the benchmark."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method."""
    models: tuple[str, ...] = ()
    """Models that can be named outright, as ``--model`` takes them; where there are none the user names some."""
    published: tuple[Published, ...] = ()


def names() -> list[str]:
    """All presets."""
    return sorted(
        f.name.removesuffix(".toml")
        for f in resources.files(__name__).iterdir()
        if f.name.endswith(".toml")
    )


def read(name: str) -> Preset:
    """The preset of that name."""
    if name not in names():
        raise unknown("preset", name, names())
    data = tomllib.loads(
        resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    )
    published = tuple(Published(**row) for row in data.pop("published", ()))
    return Preset(name=name, models=tuple(data.pop("models", ())), published=published, **data)
