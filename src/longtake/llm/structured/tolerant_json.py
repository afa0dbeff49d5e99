"""JSON as models write it.

Code fences, prose around the object, trailing commas, single quotes, Python's ``True`` and
``None``, comments, raw line breaks in strings, unescaped quotes, unquoted values, missing commas
and brackets, ``=`` for ``:`` and a missing end are all read.

Nothing is invented. A number, word or key that was cut off is dropped, because ``1`` may have been
going to be ``10``; a string that was cut off becomes a :class:`CutText`, which the caller can
refuse where its end matters. Reading takes time linear in the text, whatever the text is.

Why not a library: on 10,000 made-up replies (``benchmarks/replies.py --fuzz``) ``json_repair``
misreads 77, or 44 in its strict mode, and ``pydantic_core.from_json`` with ``allow_partial`` 106,
mostly because the last of two values of a key wins; this reader misreads none and reads more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_LENGTH = 400_000
"""Characters of a text that is searched for JSON; no reply to a step of ours is that long."""
MAX_DEPTH = 64
"""Levels of nesting that are read; code that recurses over a value can take as many."""

_QUOTES = {'"': '"', "'": "'", "“": "”"}
_SPACE = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_KEY_TEXT = r"""(?:"(?:[^"\\\n]|\\.){0,60}|'(?:[^'\\\n]|\\.){0,60}|“(?:[^”\\\n]|\\.){0,60})"""
_QUOTED_KEY = rf"""{_KEY_TEXT}["'”][ \t]{{0,4}}[:=]"""
_QUOTED_CUT_KEY = rf"""{_KEY_TEXT}(?:\\|["'”]\s*)?$"""
_ANY_KEY = rf"(?:{_QUOTED_KEY}|\w{{1,40}}[ \t]{{0,4}}:)"
_KEY = re.compile(_ANY_KEY)
_CUT_KEY = re.compile(rf"{_QUOTED_CUT_KEY}|\w{{0,60}}$")
_CLOSING = r"$|```|[\]}]"
_BLANKS = r"\s{0,200}(?:(?://[^\n]{0,200}\n|/\*[^*]{0,200}\*/)\s{0,200})?"
# what may follow a member of an object; without a comma, a key has quotes or begins a line
_MEMBER_END = re.compile(
    rf"{_BLANKS}(?:{_CLOSING}|,{_BLANKS}(?:{_CLOSING}|{_ANY_KEY}|{_QUOTED_CUT_KEY})|{_QUOTED_KEY})"
    rf"|[ \t]{{0,200}}\n{_BLANKS}{_ANY_KEY}"
)
# what may follow a string in a list, and any other item
_STRING_ITEM_END = re.compile(
    rf"""{_BLANKS}(?:{_CLOSING}|,{_BLANKS}(?:{_CLOSING}|["'“{{\[\d-]|(?:true|false|null)\b"""
    r"|(?:tr?u?|fa?l?s?|nu?l?)$))"
)
_ITEM_END = re.compile(rf"{_BLANKS}(?:{_CLOSING}|,)")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_LITERAL = re.compile(
    rf"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?:{'|'.join(_WORDS)})(?!\w)|[-+]$"
)
_BARE_TEXT = re.compile(r"""[^\s{}\[\]",][^\n{}\[\]",]{0,400}""")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|u[0-9a-fA-F]{0,3}$|(.)|$)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """No JSON begins here."""


class CutText(str):
    """A string whose end is missing."""


class _Cut(Exception):
    """The text ended inside something that means nothing without its end."""


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON value and where it stands in the text."""

    value: Any
    start: int
    end: int


def objects(text: str) -> list[Found]:
    """Every JSON object in a text, from left to right, none inside another.

    An object that begins well and then breaks beyond mending raises :class:`NotJson`: one found
    inside it, or after it, might not be what was meant.
    """
    return list(_values(text, "{"))


def lists(text: str) -> list[Found]:
    """Every JSON list in a text, as :func:`objects` gives objects."""
    return list(_values(text, "["))


def parse(text: str) -> Any:
    """The text, all of it, as one JSON value."""
    _check_length(text)
    try:
        whole = _value_at(text, 0, _Reader(text, 0))
    except _Cut:
        raise NotJson("a word, or a number that was cut off") from None
    if text[whole.end :].strip():
        raise NotJson("more follows")
    return whole.value


def holds_cut(value: Any) -> bool:
    """Whether a value is or holds a string whose end is missing."""
    if isinstance(value, dict):
        return any(map(holds_cut, value.values()))
    if isinstance(value, list):
        return any(map(holds_cut, value))
    return isinstance(value, CutText)


def _values(text: str, bracket: str) -> Iterator[Found]:
    _check_length(text)
    position = strays = 0
    while (start := text.find(bracket, position)) >= 0:
        reader = _Reader(text, start)
        try:
            value = _value_at(text, start, reader)
        except _Cut:
            return
        except NotJson:
            if reader.keys:
                raise
            # a bracket in prose
            strays += 1
            # each is tried once, so the time stays linear in the text
            if strays > 100:
                raise NotJson("too many brackets that begin nothing") from None
            position = start + 1
            continue
        yield value
        position = value.end


def _value_at(text: str, start: int, reader: _Reader) -> Found:
    """The value that begins at a place: as the standard reads it, or mended where it is broken."""
    try:
        # valid JSON needs no mending
        value, end = _STANDARD.raw_decode(text, start)
    except (ValueError, RecursionError):
        value = reader.value(_MEMBER_END)
        return Found(value, start, reader.at)
    _check_depth(text[start:end])
    if _SURROGATE.search(text, start, end):
        # the standard keeps surrogates that have no partner, which cannot be written down
        value = json.loads(_without_surrogates(json.dumps(value, ensure_ascii=False)))
    return Found(value, start, end)


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise NotJson(f"longer than {MAX_LENGTH} characters")


def _check_depth(text: str) -> None:
    depth = 0
    for bracket in re.findall(r"[\[{\]}]", text):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise NotJson("nested too deeply")


class _Reader:
    """A recursive-descent reader; ``at`` is its position."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.keys = 0
        """Keys that were read with their colon: they distinguish JSON from a brace in prose."""

    def value(self, end: re.Pattern[str], depth: int = 0) -> Any:
        """The value that begins here; ``end`` is what may follow it."""
        if depth > MAX_DEPTH:
            raise NotJson("nested too deeply")
        self._skip_space()
        # a value that never began has no meaning to keep
        if self._ended():
            raise _Cut
        char = self.text[self.at]
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._list(depth)
        if char in _QUOTES:
            return self._string(_QUOTES[char], _STRING_ITEM_END if end is _ITEM_END else end)
        return self._unquoted(end)

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        members: dict[str, Any] = {}
        while not self._closed("}", "]"):
            key = _KEY.match(self.text, self.at)
            if key is None and _CUT_KEY.match(self.text, self.at):
                self.at = len(self.text)
                break
            if key is None:
                raise NotJson(f"no key at {self.at}")
            self.keys += 1
            self.at = key.end()
            name = key.group()[:-1].rstrip()
            if name[0] in _QUOTES:
                name = _unescaped(name[1:-1])
            try:
                value = self.value(_MEMBER_END, depth + 1)
            except _Cut:
                self.at = len(self.text)
                break
            # other readers let the last of two values win, which may be the wrong one
            if name in members and members[name] != value:
                raise NotJson(f"two values for {name!r}")
            members[name] = value
            self._take(",")
        return members

    def _list(self, depth: int) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while not self._closed("]", "}"):
            try:
                items.append(self.value(_ITEM_END, depth + 1))
            except _Cut:
                self.at = len(self.text)
                break
            if not self._take(",") and not self._ended() and self.text[self.at] not in "]}":
                raise NotJson(f"no comma at {self.at}")
        if not items and self._ended() and self.text[self.at - 1 : self.at] != "]":
            raise _Cut  # an empty list would say that there is nothing
        return items

    def _string(self, close: str, end: re.Pattern[str]) -> str:
        """A string up to the first quote that something follows which may follow a value."""
        self.at += 1
        # escapes are skipped as a whole, so that an escaped quote closes nothing
        for match in re.compile(rf"\\.|{close}", re.DOTALL).finditer(self.text, self.at):
            if match.group() == close and end.match(self.text, match.end()):
                raw = self.text[self.at : match.start()]
                self.at = match.end()
                return _unescaped(raw)
        raw = self.text[self.at :]
        self.at = len(self.text)
        if not raw:
            raise _Cut
        return CutText(_unescaped(raw))

    def _unquoted(self, end: re.Pattern[str]) -> Any:
        """A number, a word such as true, or text without quotes up to the end of its line."""
        literal = _LITERAL.match(self.text, self.at)
        match = literal if literal and end.match(self.text, literal.end()) else None
        match = match or _BARE_TEXT.match(self.text, self.at)
        # without quotes, it is unclear whether the last word is whole
        if match is not None and match.end() == len(self.text):
            raise _Cut
        if match is None or not end.match(self.text, match.end()):
            raise NotJson(f"no value at {self.at}")
        self.at = match.end()
        if match is not literal:
            return match.group().strip()
        if match.group() in _WORDS:
            return _WORDS[match.group()]
        digits = match.group()
        return _integer(digits) if digits.lstrip("+-").isdigit() else float(digits)

    def _closed(self, bracket: str, other: str) -> bool:
        """Whether a container ends here; the bracket of another one closes it too."""
        return self._take(bracket) or self._ended() or self.text[self.at] == other

    def _take(self, char: str) -> bool:
        self._skip_space()
        if self.text.startswith(char, self.at):
            self.at += 1
            return True
        return False

    def _skip_space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _ended(self) -> bool:
        # a closing fence after a cut-off tail is an end too
        return self.at >= len(self.text) or self.text.startswith("```", self.at)


def _unescaped(raw: str) -> str:
    def character(match: re.Match[str]) -> str:
        code, char = match.groups()
        if code:
            return chr(int(code, 16))
        return _ESCAPES.get(char, char) if char else ""

    return _without_surrogates(_ESCAPE.sub(character, raw))


def _without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined, and surrogates without a partner dropped."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")


def _integer(digits: str) -> int:
    # longer ones overflow when they become a float
    if len(digits) > 40:
        raise NotJson("a number with too many digits")
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members and members[key] != value:
            raise ValueError(f"two values for {key!r}")
        members[key] = value
    return members


def _not_a_number(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a number")


_STANDARD = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_not_a_number, parse_int=_integer
)
