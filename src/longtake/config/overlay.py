"""Lays plain values, as read from TOML or the command line, over a frozen dataclass.

Settings, model entries and the fields of methods are filled in this way. The metadata of a field
can hold:

``least``, ``above``, ``most``
    Bounds of a number. A number must be finite unless ``most`` is infinite.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from longtake.errors import ConfigError, unknown

T = TypeVar("T")


def number(default: float | None, **bounds: float) -> Any:
    """A numeric field with bounds: any of ``least``, ``above`` and ``most``."""
    return field(default=default, metadata=bounds)


RENAMED = {
    "perception.encoder": "perception.images",
    "perception.encoder_folder": "perception.images_folder",
    "perception.looks": "perception.scene_encoder",
    "perception.looks_folder": "perception.scene_encoder_folder",
}
"""Settings of version 0.2 and their present names."""


@dataclass(frozen=True)
class Layer:
    """One source of settings."""

    values: Mapping[str, Any]
    source: str
    """What error messages call it."""


# cached, since methods are configured for every question and reading annotations is slow
_type_hints = functools.cache(typing.get_type_hints)


def overlay(base: T, layer: Layer, *, path: str = "", also: Iterable[str] = ()) -> T:
    """Return a copy of a dataclass with a layer's values laid over it; keys and types are checked.

    ``path`` is what precedes each key in error messages; ``also`` lists further keys to suggest
    when one is unknown.
    """
    kind: type = type(base)
    hints = _type_hints(kind)
    fields = {part.name: part for part in dataclasses.fields(base)}  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    for key, value in layer.values.items():
        name = f"{path}{key}"
        if name in RENAMED:
            raise ConfigError(f"{name} in {layer.source} is now {RENAMED[name]}", key=name)
        if key not in fields:
            known = {f"{path}{field_name}" for field_name in fields} | set(also)
            raise unknown("key", name, known, where=layer.source)
        metadata = fields[key].metadata
        old = getattr(base, key)
        if dataclasses.is_dataclass(old):
            table = as_table(value, name, layer.source)
            section = dataclasses.replace(layer, values=table)
            changes[key] = overlay(old, section, path=f"{name}.")
        else:
            changes[key] = coerce(hints[key], value, name=name, source=layer.source)
            _check_bounds(name, changes[key], metadata, layer.source)
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


def coerce(hint: Any, value: Any, *, name: str, source: str) -> Any:
    """Return ``value`` as the type a field declares; the error for a wrong type names the field."""
    # imported late: pydantic takes half of the start-up time of a small command
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise ConfigError(f"{name} = {value!r} in {source}: {problem}", key=name) from error


def _check_bounds(name: str, value: Any, bounds: Mapping[str, Any], source: str) -> None:
    """Reject numbers outside a field's bounds, and NaN."""
    if not isinstance(value, int | float):
        return
    problem = ""
    if isinstance(value, float) and not math.isfinite(value) and value != bounds.get("most"):
        problem = "must be a finite number"
    elif "least" in bounds and value < bounds["least"]:
        problem = f"must be {bounds['least']:g} or more"
    elif "above" in bounds and value <= bounds["above"]:
        problem = f"must be more than {bounds['above']:g}"
    elif "most" in bounds and value > bounds["most"]:
        problem = f"must be {bounds['most']:g} or less"
    if problem:
        raise ConfigError(f"{name} = {value} in {source}: {problem}", key=name)


def as_table(value: Any, name: str, source: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a table; raise an error that names the key if not."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} in {source} is a table; write {name}.KEY = value", key=name)
    return value
