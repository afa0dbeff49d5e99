"""Lays plain values, as read from TOML or the command line, over a frozen dataclass.

Settings, model entries and the fields of methods are filled in this way. The metadata of a field
can hold:

``trusted``
    Only the user's own configuration may set the field.
``limit``
    A limit: a file that is not the user's own may lower it, never raise it.
``least``, ``above``, ``most``
    Bounds of a number. A number must be finite unless ``most`` is infinite.
``was``
    The former name of the field, which still works.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from longtake.errors import ConfigError, unknown

T = TypeVar("T")


def trusted(default: Any, *, was: str = "") -> Any:
    """A field that only the user's own configuration may set."""
    return field(default=default, metadata={"trusted": True, "was": was})


def renamed(default: Any, *, was: str) -> Any:
    """A field that can still be set by its former name."""
    return field(default=default, metadata={"was": was})


def tunable(default: Any) -> Any:
    """A field that a ``longtake.toml`` in the working folder may set too."""
    return field(default=default, metadata={"trusted": False})


def number(
    default: float | None, *, trusted: bool | None = None, limit: bool = False, **bounds: float
) -> Any:
    """A numeric field with bounds: any of ``least``, ``above`` and ``most``."""
    rules: dict[str, Any] = {"limit": limit, **bounds}
    if trusted is not None:
        rules["trusted"] = trusted
    return field(default=default, metadata=rules)


@dataclass(frozen=True)
class Layer:
    """One source of settings."""

    values: Mapping[str, Any]
    source: str
    """What error messages call it."""
    trusted: bool = True
    """Whether it is the user's own."""


# cached, since methods are configured for every question and reading annotations is slow
_type_hints = functools.cache(typing.get_type_hints)


@functools.cache
def _warn(text: str) -> None:
    """Print a warning, once."""
    print(f"longtake: {text}", file=sys.stderr)


def overlay(
    base: T,
    layer: Layer,
    *,
    path: str = "",
    also: Iterable[str] = (),
    guarded: Collection[str] = (),
) -> T:
    """Return a copy of a dataclass with a layer's values laid over it; keys and types are checked.

    ``path`` is what precedes each key in error messages; ``also`` lists further keys to suggest
    when one is unknown; ``guarded`` lists fields that are trusted unless they say otherwise.
    """
    kind: type = type(base)
    hints = _type_hints(kind)
    fields = {part.name: part for part in dataclasses.fields(base)}  # type: ignore[arg-type]
    new_names = {}
    for part in fields.values():
        if old_name := part.metadata.get("was"):
            new_names[old_name] = part.name
    changes: dict[str, Any] = {}
    for written, value in layer.values.items():
        key = new_names.get(written, written)
        name = f"{path}{key}"
        if key != written:
            _warn(f"{layer.source}: {path}{written} is now {name}; the former name works until 0.4")
        if key not in fields:
            known = {f"{path}{field_name}" for field_name in fields} | set(also)
            raise unknown("key", name, known, where=layer.source)
        metadata = fields[key].metadata
        if not layer.trusted and metadata.get("trusted", key in guarded):
            raise ConfigError(
                f"{name} in {layer.source} is not taken from a working folder; "
                "put it in your own configuration, or pass --trust-config",
                key=name,
            )
        old = getattr(base, key)
        if dataclasses.is_dataclass(old):
            table = as_table(value, name, layer.source)
            section = dataclasses.replace(layer, values=table)
            changes[key] = overlay(old, section, path=f"{name}.", guarded=guarded)
        else:
            changes[key] = coerce(hints[key], value, name=name, source=layer.source)
            _check_bounds(name, changes[key], metadata, layer.source)
            if metadata.get("limit") and not layer.trusted:
                _check_tightens(name, changes[key], old, layer.source)
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


def _check_tightens(name: str, value: Any, old: Any, source: str) -> None:
    """Reject a limit above the present one; ``None`` is no limit at all."""
    if old is not None and (value is None or value > old):
        raise ConfigError(
            f"{name} in {source} may only lower the limit of {old:g}; "
            "put it in your own configuration, or pass --trust-config",
            key=name,
        )


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
