"""JSON as models write it.

Code fences, prose around the object, trailing commas, single quotes, Python's ``True`` and
``None``, comments, raw line breaks in strings and a tail that was cut off are all read. An object
that breaks is read a second time, mended: unescaped quotes in strings, unquoted values, missing
commas and brackets, ``=`` for ``:``.

Nothing is invented. A number, word or key that was cut off is dropped, because ``1`` may have been
going to be ``10``; a string that was cut off is kept but reported, so that the caller can refuse it
where its end matters. Reading takes time linear in the text, whatever the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from longtake.models.replies.json_reader import DEPTH, Cut, NotJson, Path, Reader, integer

__all__ = ["NotJson", "Parsed", "Path", "lists", "objects", "parse"]

LONGEST = 400_000
"""Characters of a text that is searched for JSON; no reply to a step of ours is that long."""
STRAY_BRACKETS = 100
"""Brackets in prose that are tried as the start of a value."""
_HIGH = re.compile(r"\\u[dD][89abAB]")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A JSON value in a text."""

    value: Any
    cut: Path | None = None
    """The path to its last string, if that was cut off."""
    start: int = 0
    end: int = 0


def objects(text: str) -> Iterator[Parsed]:
    """Every JSON object in a text, from left to right, none inside another.

    An object that begins well and then breaks beyond mending raises :class:`NotJson`: one found
    inside it, or after it, might not be what was meant.
    """
    return _values(text, "{")


def lists(text: str) -> Iterator[Parsed]:
    """Every JSON list in a text, as :func:`objects` gives objects."""
    return _values(text, "[")


def _values(text: str, bracket: str) -> Iterator[Parsed]:
    _check_length(text)
    position = strays = 0
    while (start := text.find(bracket, position)) >= 0:
        reader = Reader(text, start)
        try:
            value = reader.value(())
        except Cut:
            return
        except NotJson:
            if not reader.pairs:  # a bracket in prose
                strays += 1
                if strays > STRAY_BRACKETS:
                    raise NotJson("too many brackets that begin nothing") from None
                position = start + 1
                continue
            reader = Reader(text, start, mend=True)
            value = reader.value(())
        yield Parsed(value, reader.cut, start, reader.at)
        position = reader.at


def parse(text: str) -> Parsed:
    """The text, all of it, as one JSON value."""
    _check_length(text)
    try:
        return Parsed(_standard(text))
    except (ValueError, RecursionError):
        pass
    try:
        return _whole(text, mend=False)
    except NotJson:
        return _whole(text, mend=True)


def _standard(text: str) -> Any:
    """The value of valid JSON."""
    if _HIGH.search(text):
        raise NotJson("a surrogate, which the standard reader would keep unpaired")
    value = json.loads(
        text, object_pairs_hook=_distinct, parse_constant=_not_a_number, parse_int=integer
    )
    _check_depth(value)
    return value


def _whole(text: str, *, mend: bool) -> Parsed:
    reader = Reader(text, 0, mend=mend)
    try:
        value = reader.value(())
    except Cut:
        raise NotJson("a word, or a number that was cut off") from None
    reader.space()
    if reader.at < len(text):
        raise NotJson("more follows")
    return Parsed(value, reader.cut)


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise NotJson(f"longer than {LONGEST} characters")


def _check_depth(value: Any) -> None:
    """Refuse nesting that code which recurses over the value could not take."""
    level = [value]
    for _ in range(DEPTH + 2):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return
        level = inner
    raise NotJson("nested too deeply")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members and members[key] != value:
            raise ValueError(f"two values for {key!r}")
        members[key] = value
    return members


def _not_a_number(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a number")
