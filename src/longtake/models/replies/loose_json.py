"""JSON as models write it.

Fenced blocks, prose around it, trailing commas, single quotes, Python's ``True`` and ``None``, comments, raw
line breaks in strings, and a tail that was cut off are all read. Nothing is added that was not written: a
number, word or key that was cut off is dropped, because ``1`` may have been going to be ``10``; a string
that was cut off is kept but reported, so that whoever reads it can refuse it where its end matters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_QUOTES = {'"': '"', "'": "'", "“": "”"}
_DEPTH = 64
_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON value in a text, and the path to its last string if that was cut off."""

    value: Any
    cut: Path | None = None


class NotJson(ValueError):
    """No JSON begins here."""


def objects(text: str) -> Iterator[Found]:
    """Every JSON object in a text, from left to right, none inside another.

    An object that begins well and then breaks raises :class:`NotJson`: one found inside it, or after it,
    might not be what was meant.
    """
    position = 0
    while (start := text.find("{", position)) >= 0:
        reader = _Reader(text, start)
        try:
            value = reader.value(())
        except NotJson:
            if reader.pairs:
                raise
            position = start + 1  # a brace in prose
            continue
        yield Found(value, reader.cut)
        position = reader.at


def parse(text: str) -> Found:
    """The text, all of it, as one JSON value."""
    try:
        strict = json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_not_a_number, parse_int=_integer
        )
        return Found(strict)
    except (ValueError, RecursionError):
        reader = _Reader(text, 0)
        try:
            value = reader.value(())
        except _Cut:
            raise NotJson("a word, or a number cut off") from None
        reader.space()
        if reader.at < len(text):
            raise NotJson("more follows") from None
        return Found(value, reader.cut)


class _Cut(Exception):
    """The text ended inside something that means nothing without its end."""


class _Reader:
    """A recursive-descent reader; ``at`` is where it stands."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.cut: Path | None = None
        self.pairs = 0
        """Keys that were read with their colon: what tells JSON from a brace in prose."""

    def value(self, path: Path) -> Any:
        self.space()
        if self.ended():
            raise _Cut
        char = self.peek()
        if char == "{":
            return self.object(path)
        if char == "[":
            return self.array(path)
        if char in _QUOTES:
            return self.string(path)
        if match := _NUMBER.match(self.text, self.at):
            return self.number(match)
        if match := _WORD.match(self.text, self.at):
            if match.end() == len(self.text):
                raise _Cut
            if match.group() in _WORDS:
                self.at = match.end()
                return _WORDS[match.group()]
        if self.text[self.at :] == "-":
            raise _Cut  # a number of which only the sign arrived
        raise NotJson(f"no value at {self.at}")

    def object(self, path: Path) -> dict[str, Any]:
        self.enter(path)
        found: dict[str, Any] = {}
        while True:
            self.space()
            if self.ended() or self.take("}"):
                return found
            try:
                key = self.key()
                if not self.take(":"):
                    self.cut_or_fail()
                self.pairs += 1
                value = self.value((*path, key))
            except _Cut:
                self.at = len(self.text)
                return found
            if key in found and found[key] != value:
                raise NotJson(f"two values for {key!r}")
            found[key] = value
            self.separator("}")

    def array(self, path: Path) -> list[Any]:
        self.enter(path)
        found: list[Any] = []
        while True:
            self.space()
            if self.ended() or self.take("]"):
                return found
            try:
                found.append(self.value((*path, len(found))))
            except _Cut:
                self.at = len(self.text)
                return found
            self.separator("]")

    def string(self, path: Path | None) -> str:
        close = _QUOTES[self.peek()]
        self.at += 1
        out: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == close:
                return "".join(out)
            out.append(self.escape() if char == "\\" else char)
        if path is None:
            raise _Cut
        self.cut = path
        return "".join(out)

    def escape(self) -> str:
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char != "u":
            return _ESCAPES.get(char, char)
        digits = self.text[self.at : self.at + 4]
        if len(digits) < 4:
            self.at = len(self.text)
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            return ""
        self.at += 4
        code = int(digits, 16)
        if 0xD800 <= code < 0xDC00 and (
            low := re.match(r"\\u([dD][c-fC-F]\w\w)", self.text[self.at :])
        ):
            self.at += 6
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low.group(1), 16) - 0xDC00)
        return "" if 0xD800 <= code < 0xE000 else chr(code)

    def number(self, match: re.Match[str]) -> int | float:
        if match.end() == len(self.text):
            raise _Cut
        following = self.text[match.end()]
        if following.isalnum() or following in "./%":  # 8/10, 3rd, 50%: not a number as it stands
            raise NotJson(f"no number at {self.at}")
        self.at = match.end()
        digits = match.group()
        return _integer(digits) if digits.lstrip("+-").isdigit() else float(digits)

    def key(self) -> str:
        self.space()
        if self.peek() in _QUOTES:
            return self.string(None)
        if match := _WORD.match(self.text, self.at):
            if match.end() == len(self.text):
                raise _Cut
            self.at = match.end()
            return match.group()
        raise NotJson(f"no key at {self.at}")

    def separator(self, close: str) -> None:
        """A comma, or the end; anything else means that this is not JSON."""
        self.space()
        if self.ended() or self.peek() == close or self.take(","):
            return
        raise NotJson(f"no comma at {self.at}")

    def enter(self, path: Path) -> None:
        if len(path) > _DEPTH:
            raise NotJson("nested too deeply")
        self.at += 1

    def cut_or_fail(self) -> NoReturn:
        if self.ended():
            raise _Cut
        raise NotJson(f"no colon at {self.at}")

    def take(self, char: str) -> bool:
        self.space()
        if self.peek() == char:
            self.at += 1
            return True
        return False

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def ended(self) -> bool:
        # a closing fence after a cut-off tail is an end too
        return self.at >= len(self.text) or self.text.startswith("```", self.at)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"two values for {key!r}")
        found[key] = value
    return found


def _not_a_number(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a number")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise NotJson("a number of that many digits is none")
    return int(digits)
