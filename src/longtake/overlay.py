"""Lays plain values, as read from TOML or the command line, over a frozen dataclass.

Settings and the fields of methods are both filled in this way. The metadata of a field can hold:

``trusted``
    Only the user's own configuration may set the field.
``least``, ``above``, ``most``
    Bounds of a number. A number must be finite unless ``most`` is infinite.
``was``
    The former name of the field, which still works.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, TypeVar

from longtake.errors import ConfigError, unknown

T = TypeVar("T")


def trusted(default: Any, *, was: str = "") -> Any:
    """A field that only the user's own configuration may set."""
    return field(default=default, metadata={"trusted": True, "was": was})


def renamed(default: Any, *, was: str) -> Any:
    """A field that can still be set by its former name."""
    return field(default=default, metadata={"was": was})


def number(default: float | None, *, trusted: bool = False, **bounds: float) -> Any:
    """A numeric field with bounds: any of ``least``, ``above`` and ``most``."""
    return field(default=default, metadata={"trusted": trusted, **bounds})


class Origin(NamedTuple):
    """Where values come from."""

    source: str
    """What error messages call it."""
    trusted: bool = True


def overlay(
    base: T,
    values: Mapping[str, Any],
    *,
    source: str,
    trusted: bool = True,
    path: str = "",
    also: Iterable[str] = (),
) -> T:
    """Return a copy of a dataclass with ``values`` laid over it; keys and types are checked.

    ``path`` is what precedes each key in error messages; ``also`` lists further keys to suggest
    when one is unknown.
    """
    return _overlay(base, values, Origin(source, trusted), path, also)


def _overlay(
    base: T, values: Mapping[str, Any], origin: Origin, path: str, also: Iterable[str] = ()
) -> T:
    hints = typing.get_type_hints(type(base))
    fields = {each.name: each for each in dataclasses.fields(base)}  # type: ignore[arg-type]
    new_names = {}
    for each in fields.values():
        if old_name := each.metadata.get("was"):
            new_names[old_name] = each.name
    changes: dict[str, Any] = {}
    for written, value in values.items():
        key = new_names.get(written, written)
        name = f"{path}{key}"
        if key not in fields:
            known = {f"{path}{each}" for each in fields} | set(also)
            raise unknown("key", name, known, where=origin.source)
        metadata = fields[key].metadata
        if metadata.get("trusted") and not origin.trusted:
            raise ConfigError(
                f"{name} in {origin.source} is not taken from a working folder; "
                "put it in your own configuration, or pass --trust-config",
                key=name,
            )
        old = getattr(base, key)
        entry_type = _entry_type(hints[key])
        if dataclasses.is_dataclass(old):
            table = as_table(value, name, origin.source)
            changes[key] = _overlay(old, table, origin, f"{name}.")
        elif entry_type is not None:
            table = as_table(value, name, origin.source)
            changes[key] = _overlay_entries(old, entry_type, table, origin, name)
        else:
            changes[key] = coerce(hints[key], value, name=name, source=origin.source)
            _check_bounds(name, changes[key], metadata, origin.source)
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


def _overlay_entries(
    old: Mapping[str, Any], entry_type: Any, tables: Mapping[str, Any], origin: Origin, path: str
) -> dict[str, Any]:
    """Entries by name, such as ``[models.NAME]``; an unknown name makes a new entry."""
    entries = dict(old)
    for key, value in tables.items():
        name = f"{path}.{key}"
        base = entries.get(key) or entry_type()
        table = as_table(value, name, origin.source)
        entries[key] = _overlay(base, table, origin, f"{name}.")
    return entries


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


def _entry_type(hint: Any) -> Any:
    """The dataclass of a ``Mapping[str, Entry]`` field's entries; ``None`` for other fields."""
    if typing.get_origin(hint) is not Mapping:
        return None
    kind = typing.get_args(hint)[1]
    return kind if dataclasses.is_dataclass(kind) else None
