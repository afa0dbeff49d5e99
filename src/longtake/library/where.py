"""Filters such as ``tag=lecture and year>=2025``: a small language, parsed and never executed.

::

    filter      any ("or" any)*                  any    one ("and" one)*
    one         "not" one | "(" filter ")" | FIELD OPERATOR VALUE
    FIELD       tag name path place date year minutes
    OPERATOR    = != < <= > >= ~                 ~ is "contains"
    VALUE       a word, or anything in quotes
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from longtake.errors import ConfigError, unknown
from longtake.library.entries import Entry

Filter: TypeAlias = Callable[[Entry], bool]

FIELDS = ("tag", "name", "path", "place", "date", "year", "minutes")
_TOKEN = re.compile(r"""\s*(?:(<=|>=|!=|[=<>~()])|"([^"]*)"|'([^']*)'|([^\s"'()=<>!~]+))""")
_ORDERED: dict[str, Callable[[float | str, float | str], bool]] = {
    "<": lambda one, two: one < two,  # type: ignore[operator]
    "<=": lambda one, two: one <= two,  # type: ignore[operator]
    ">": lambda one, two: one > two,  # type: ignore[operator]
    ">=": lambda one, two: one >= two,  # type: ignore[operator]
}
OPERATORS = ("=", "!=", "~", *_ORDERED)
DEEPEST = 50
"""Brackets within brackets."""


class _Token(NamedTuple):
    text: str
    quoted: bool
    place: int


def parse(text: str) -> Filter:
    """The filter that a text describes; an empty text keeps every film."""
    if not text.strip():
        return lambda entry: True  # noqa: ARG005
    parser = _Parser(text)
    chosen = parser.filter()
    parser.finish()
    return chosen


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def filter(self) -> Filter:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return lambda entry: any(part(entry) for part in parts)

    def finish(self) -> None:
        if self._next < len(self._tokens):
            raise self._error("expected 'and' or 'or'")

    def _all(self) -> Filter:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return lambda entry: all(part(entry) for part in parts)

    def _one(self) -> Filter:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} levels")
        try:
            if self._take("not"):
                inner = self._one()
                return lambda entry: not inner(entry)
            if self._take("("):
                chosen = self.filter()
                if not self._take(")"):
                    raise self._error("expected ')'")
                return chosen
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Filter:
        field = self._value("a field").casefold()
        if field not in FIELDS:
            raise unknown("field", field, FIELDS, where=f"--where {self._text}")
        operator = self._value(f"one of {' '.join(OPERATORS)}")
        if operator not in OPERATORS:
            raise self._error(f"expected one of {' '.join(OPERATORS)}", back=1)
        return _compare(field, operator, self._value("a value"), self._text)

    def _take(self, word: str) -> bool:
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            if not token.quoted and token.text.casefold() == word:
                self._next += 1
                return True
        return False

    def _value(self, what: str) -> str:
        if self._next >= len(self._tokens):
            raise self._error(f"expected {what}")
        self._next += 1
        return self._tokens[self._next - 1].text

    def _error(self, what: str, back: int = 0) -> ConfigError:
        number = self._next - back
        ended = number >= len(self._tokens)
        place = len(self._text) if ended else self._tokens[number].place
        return ConfigError(
            f"--where {self._text}: {what} at character {place + 1}; "
            'write it like "tag=lecture and year>=2025"'
        )


def _tokens(text: str) -> list[_Token]:
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise ConfigError(
                f"--where {text}: cannot be read from character {place + 1}; close the quotes"
            )
        sign, double, single, word = match.groups()
        inside = double if double is not None else single
        quoted = inside is not None
        token = inside if inside is not None else sign or word
        tokens.append(_Token(token, quoted, match.start(match.lastindex or 0)))
        place = match.end()
    return tokens


def _compare(field: str, operator: str, value: str, text: str) -> Filter:
    if field in ("year", "minutes"):
        return _by_number(field, operator, value, text)
    if operator in _ORDERED:
        if field != "date":
            raise ConfigError(f"--where {text}: {field} has no order; use =, != or ~")
        order = _ORDERED[operator]
        # a date known to the year only is compared by its year: 2025 is not before 2025-03
        return lambda entry: bool(entry.date) and order(entry.date[: len(value)], value)
    wanted = same_tag(value) if field == "tag" else value.casefold()

    def holds(entry: Entry) -> bool:
        texts = _texts(entry, field)
        if operator == "~":
            return any(wanted in each for each in texts)
        if field == "date":
            return any(each.startswith(wanted) for each in texts)
        return wanted in texts

    if operator == "!=":
        return lambda entry: not holds(entry)
    return holds


def _by_number(field: str, operator: str, value: str, text: str) -> Filter:
    try:
        number = float(value)
    except ValueError:
        raise ConfigError(f"--where {text}: {field} is a number, not {value!r}") from None
    if operator == "~":
        raise ConfigError(f"--where {text}: {field} is a number; use =, !=, <, <=, > or >=")

    def own(entry: Entry) -> float | None:
        return entry.year if field == "year" else entry.duration / 60

    def holds(entry: Entry) -> bool:
        known = own(entry)
        if known is None:
            return operator == "!="  # an unknown year differs from every year
        if operator in _ORDERED:
            return _ORDERED[operator](known, number)
        same = round(known) == number if field == "minutes" else known == number
        return same == (operator == "=")

    return holds


def _texts(entry: Entry, field: str) -> list[str]:
    if field == "tag":
        return [same_tag(tag) for tag in entry.tags]
    if field == "path":
        return [str(path).casefold() for path in entry.paths]
    own = {"name": entry.name, "place": entry.place, "date": entry.date}[field]
    return [own.casefold()]


def same_tag(tag: str) -> str:
    """A tag without case and plural: a folder ``Lectures`` gives ``tag=lecture``."""
    plain = tag.strip().casefold()
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") else plain
