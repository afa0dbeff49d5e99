"""A recursive-descent reader of JSON that may be broken or cut off."""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

DEPTH = 64
"""Levels of nesting that are read; code that recurses over a value can take as many."""
_DIGITS = 40

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_BLANK = re.compile(r"\s*")
_LINE_END = re.compile(r"[ \t]*\n")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_QUOTES = {'"': '"', "'": "'", "“": "”"}
_INSIDE = {close: re.compile(rf"[^\\{close}]+") for close in _QUOTES.values()}
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


class NotJson(ValueError):
    """No JSON begins here."""


class Cut(Exception):
    """The text ended inside something that means nothing without its end."""


class Reader:
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
        """The value that begins here; ``path`` leads to it from the outermost one."""
        self.space()
        if self._ended():
            raise Cut
        char = self._peek()
        if char == "{":
            return self._object(path)
        if char == "[":
            return self._array(path)
        if char in _QUOTES:
            return self._string(path)
        try:
            return self._plain_value()
        except NotJson:
            if not self.mend:
                raise
            return self._bare_text(path)

    def _plain_value(self) -> Any:
        """A number, true, false or null."""
        if match := _NUMBER.match(self.text, self.at):
            return self._number(match)
        if match := _WORD.match(self.text, self.at):
            if match.end() == len(self.text):
                raise Cut
            if match.group() in _WORDS and not self._goes_on(match.end()):
                self.at = match.end()
                return _WORDS[match.group()]
        if self.at == len(self.text) - 1 and self._peek() == "-":
            raise Cut  # a number of which only the sign arrived
        raise NotJson(f"no value at {self.at}")

    def _bare_text(self, path: Path) -> str:
        """Text without quotes: to the end of the line, or to what ends a value."""
        match = (_BARE_ITEM if _in_array(path) else _BARE_MEMBER).match(self.text, self.at)
        if match is None:
            raise NotJson(f"no value at {self.at}")
        if match.end() >= self._end:
            raise Cut
        self.at = match.end()
        return match.group().strip()

    def _object(self, path: Path) -> dict[str, Any]:
        self._enter(path)
        members: dict[str, Any] = {}
        while True:
            self.space()
            if self._ended() or self._take("}") or (self.mend and self._peek() == "]"):
                return members
            # prose has braces with an equals sign in them, but no quotes around what precedes it
            equals = self.mend or self._peek() in _QUOTES
            try:
                key = self._key()
                if not (self._take(":") or (equals and self._take("="))):
                    self._cut_or_fail()
                self.pairs += 1
                value = self.value((*path, key))
            except Cut:
                self.at = len(self.text)
                return members
            if key in members and members[key] != value:
                raise NotJson(f"two values for {key!r}")
            members[key] = value
            self._separator("}")

    def _array(self, path: Path) -> list[Any]:
        self._enter(path)
        items: list[Any] = []
        while True:
            self.space()
            if self._ended() and not items:
                raise Cut  # an empty list would say that there is nothing
            if self._ended() or self._take("]") or (self.mend and self._peek() == "}"):
                return items
            try:
                items.append(self.value((*path, len(items))))
            except Cut:
                if not items:
                    raise
                self.at = len(self.text)
                return items
            self._separator("]")

    def _string(self, path: Path | None) -> str:
        close = _QUOTES[self._peek()]
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
                pieces.append(self._escape())
            elif self._closes(path):
                return "".join(pieces)
            else:
                pieces.append(char)  # a quote inside the text that should have been escaped
        if path is None or not pieces:
            raise Cut
        self.cut = path
        return "".join(pieces)

    def _escape(self) -> str:
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

    def _number(self, match: re.Match[str]) -> int | float:
        if match.end() == len(self.text):
            raise Cut
        if self._goes_on(match.end()):  # 8/10, 3rd, 50%, 3-4: not a number as it stands
            raise NotJson(f"no number at {self.at}")
        self.at = match.end()
        digits = match.group()
        return integer(digits) if digits.lstrip("+-").isdigit() else float(digits)

    def _key(self) -> str:
        self.space()
        if self._peek() in _QUOTES:
            return self._string(None)
        if match := _WORD.match(self.text, self.at):
            if match.end() == len(self.text):
                raise Cut
            self.at = match.end()
            return match.group()
        raise NotJson(f"no key at {self.at}")

    def _separator(self, close: str) -> None:
        """A comma or the end; anything else means that this is not JSON."""
        ended = self.at
        self.space()
        if self._ended() or self._peek() == close or self._take(","):
            return
        if self.mend:
            if self._peek() in "]}" or _NEXT_KEY.match(self.text, self.at):
                return
            if self._only_prose_follows(ended):
                self.at = len(self.text)
                return
        raise NotJson(f"no comma at {self.at}")

    def _enter(self, path: Path) -> None:
        if len(path) > DEPTH:
            raise NotJson("nested too deeply")
        self.at += 1

    def _cut_or_fail(self) -> NoReturn:
        if self._ended():
            raise Cut
        raise NotJson(f"no colon at {self.at}")

    def _take(self, char: str) -> bool:
        self.space()
        if self._peek() == char:
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

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _ended(self) -> bool:
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


def integer(digits: str) -> int:
    """A whole number, within reason."""
    if len(digits) > _DIGITS:
        raise NotJson("a number with too many digits")
    return int(digits)
