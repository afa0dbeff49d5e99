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
from typing import Any, NoReturn, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

LONGEST = 400_000
"""Characters of a text that is searched for JSON; no reply to a step of ours is that long."""
STRAY_BRACKETS = 100
"""Brackets in prose that are tried as the start of a value."""
_DEPTH = 64
_DIGITS = 40

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_BLANK = re.compile(r"\s*")
_LINE_END = re.compile(r"[ \t]*\n")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_QUOTES = {'"': '"', "'": "'", "“": "”"}
_INSIDE = {close: re.compile(rf"[^\\{close}]+") for close in _QUOTES.values()}
_HIGH = re.compile(r"\\u[dD][89abAB]", re.ASCII)
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_HEX = re.compile(r"[0-9a-fA-F]{4}")

# where an object has to be mended: what a key looks like, and what ends a string or a bare value
_KEY = r"""(?:"[\w -]{1,40}"|'[\w -]{1,40}'|[A-Za-z_]\w{0,40})[ \t]{0,4}[:=]"""
_GAP = r"\s{0,200}"
_NEXT_KEY = re.compile(_KEY)
_QUOTED_KEY = re.compile(r"""(?:"[\w -]{1,40}"|'[\w -]{1,40}')[ \t]{0,4}[:=]""")
_END = r"$|```|[\]}]"
_ENDS_MEMBER = re.compile(rf"{_END}|,{_GAP}(?:{_END}|{_KEY})")
_ENDS_ITEM = re.compile(rf"""{_END}|,{_GAP}(?:{_END}|["'“{{\[\d-])""")
_BARE_MEMBER = re.compile(
    rf"""[^\n{{}}\[\]"]{{1,400}}?(?=[ \t]{{0,8}}(?:\n|,{_GAP}{_KEY}|,?{_GAP}(?:{_END})))"""
)
_BARE_ITEM = re.compile(r"""[^\n{}\[\]",]{1,400}""")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A JSON value in a text."""

    value: Any
    cut: Path | None = None
    """The path to its last string, if that was cut off."""
    start: int = 0
    end: int = 0


class NotJson(ValueError):
    """No JSON begins here."""


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
        reader = _Reader(text, start)
        try:
            value = reader.value(())
        except _Cut:
            return
        except NotJson:
            if not reader.pairs:  # a bracket in prose
                strays += 1
                if strays > STRAY_BRACKETS:
                    raise NotJson("too many brackets that begin nothing") from None
                position = start + 1
                continue
            reader = _Reader(text, start, mend=True)
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
        text, object_pairs_hook=_distinct, parse_constant=_not_a_number, parse_int=_integer
    )
    _check_depth(value)
    return value


def _whole(text: str, *, mend: bool) -> Parsed:
    reader = _Reader(text, 0, mend=mend)
    try:
        value = reader.value(())
    except _Cut:
        raise NotJson("a word, or a number that was cut off") from None
    reader.space()
    if reader.at < len(text):
        raise NotJson("more follows")
    return Parsed(value, reader.cut)


class _Cut(Exception):
    """The text ended inside something that means nothing without its end."""


class _Reader:
    """A recursive-descent reader; ``at`` is its position."""

    def __init__(self, text: str, at: int, *, mend: bool = False) -> None:
        self.text, self.at, self.mend = text, at, mend
        self.cut: Path | None = None
        self.pairs = 0
        """Keys that were read with their colon: what tells JSON from a brace in prose."""
        self._last_mark = max(text.rfind(mark) for mark in "\"'“{}[]")
        """Beyond this there is only prose."""
        self._end = len(text.rstrip())

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
        try:
            return self.plain_value()
        except NotJson:
            if not self.mend:
                raise
            return self.bare_text(path)

    def plain_value(self) -> Any:
        """A number, true, false or null."""
        if match := _NUMBER.match(self.text, self.at):
            return self.number(match)
        if match := _WORD.match(self.text, self.at):
            if match.end() == len(self.text):
                raise _Cut
            if match.group() in _WORDS and not self._goes_on(match.end()):
                self.at = match.end()
                return _WORDS[match.group()]
        if self.at == len(self.text) - 1 and self.peek() == "-":
            raise _Cut  # a number of which only the sign arrived
        raise NotJson(f"no value at {self.at}")

    def bare_text(self, path: Path) -> str:
        """Text without quotes: to the end of the line, or to what ends a value."""
        match = (_BARE_ITEM if _in_array(path) else _BARE_MEMBER).match(self.text, self.at)
        if match is None:
            raise NotJson(f"no value at {self.at}")
        if match.end() >= self._end:
            raise _Cut
        self.at = match.end()
        return match.group().strip()

    def object(self, path: Path) -> dict[str, Any]:
        self.enter(path)
        members: dict[str, Any] = {}
        while True:
            self.space()
            if self.ended() or self.take("}") or (self.mend and self.peek() == "]"):
                return members
            # prose has braces with an equals sign in them, but no quotes around what precedes it
            equals = self.mend or self.peek() in _QUOTES
            try:
                key = self.key()
                if not (self.take(":") or (equals and self.take("="))):
                    self.cut_or_fail()
                self.pairs += 1
                value = self.value((*path, key))
            except _Cut:
                self.at = len(self.text)
                return members
            if key in members and members[key] != value:
                raise NotJson(f"two values for {key!r}")
            members[key] = value
            self.separator("}")

    def array(self, path: Path) -> list[Any]:
        self.enter(path)
        items: list[Any] = []
        while True:
            self.space()
            if self.ended() and not items:
                raise _Cut  # an empty list would say that there is nothing
            if self.ended() or self.take("]") or (self.mend and self.peek() == "}"):
                return items
            try:
                items.append(self.value((*path, len(items))))
            except _Cut:
                if not items:
                    raise
                self.at = len(self.text)
                return items
            self.separator("]")

    def string(self, path: Path | None) -> str:
        close = _QUOTES[self.peek()]
        self.at += 1
        pieces: list[str] = []
        while self.at < len(self.text):
            if match := _INSIDE[close].match(self.text, self.at):
                pieces.append(match.group())
                self.at = match.end()
                continue
            char = self.text[self.at]
            self.at += 1
            if char == "\\":
                pieces.append(self.escape())
            elif self._closes(path):
                return "".join(pieces)
            else:
                pieces.append(char)  # a quote inside the text that should have been escaped
        if path is None or not pieces:
            raise _Cut
        self.cut = path
        return "".join(pieces)

    def escape(self) -> str:
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char != "u":
            return _ESCAPES.get(char, char)
        digits = self.text[self.at : self.at + 4]
        if len(digits) < 4:
            self.at = len(self.text)
        if not _HEX.fullmatch(digits):
            return ""
        self.at += 4
        code = int(digits, 16)
        if 0xD800 <= code < 0xDC00 and (low := _LOW.match(self.text, self.at)):
            self.at += 6
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low.group(1), 16) - 0xDC00)
        return "" if 0xD800 <= code < 0xE000 else chr(code)

    def number(self, match: re.Match[str]) -> int | float:
        if match.end() == len(self.text):
            raise _Cut
        if self._goes_on(match.end()):  # 8/10, 3rd, 50%, 3-4: not a number as it stands
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
        """A comma or the end; anything else means that this is not JSON."""
        ended = self.at
        self.space()
        if self.ended() or self.peek() == close or self.take(","):
            return
        if self.mend:
            if self.peek() in "]}" or _NEXT_KEY.match(self.text, self.at):
                return
            if self._only_prose_follows(ended):
                self.at = len(self.text)
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
        """Skip blanks and comments."""
        while True:
            match = _BLANK.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
            elif self.text.startswith("/*", self.at):
                end = self.text.find("*/", self.at + 2) + 1
            else:
                return
            if end <= 0:  # a comment that never ends is none
                return
            self.at = end + 1

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def ended(self) -> bool:
        # a closing fence after a cut-off tail is an end too
        return self.at >= len(self.text) or self.text.startswith("```", self.at)

    def _closes(self, path: Path | None) -> bool:
        """Whether the quote just read ends its string; the first one does unless we mend."""
        if not self.mend or path is None or self._only_prose_follows(self.at):
            return True
        blank = _BLANK.match(self.text, self.at)
        after = blank.end() if blank else self.at
        if (_ENDS_ITEM if _in_array(path) else _ENDS_MEMBER).match(self.text, after):
            return True
        # a missing comma: the next key has quotes too, or begins a line
        next_key = _NEXT_KEY if "\n" in self.text[self.at : after] else _QUOTED_KEY
        return not _in_array(path) and next_key.match(self.text, after) is not None

    def _only_prose_follows(self, at: int) -> bool:
        """Whether brackets were never closed, and prose begins on a line of its own."""
        return at > self._last_mark and _LINE_END.match(self.text, at) is not None

    def _goes_on(self, at: int) -> bool:
        """Whether a number or word that ends here is only the start of something longer."""
        following = self.text[at : at + 1]
        if following.isalnum() or following in ("/", "%", ".", "-", "–"):
            return True
        rest = self.text[at : at + 80].lstrip(" \t")
        return self.mend and rest[:1].isalnum() and not _NEXT_KEY.match(rest)


def _in_array(path: Path) -> bool:
    return bool(path) and isinstance(path[-1], int)


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise NotJson(f"longer than {LONGEST} characters")


def _check_depth(value: Any) -> None:
    """Refuse nesting that code which recurses over the value could not take."""
    level = [value]
    for _ in range(_DEPTH + 2):
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


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise NotJson("a number with too many digits")
    return int(digits)
