"""JSON in what a model wrote: as the standard reads it, or mended by ``json_repair``.

The library closes what was cut off and lets the last of two values win. So a mark is appended to
what it mends, which shows where the text ended (:func:`is_cut`), and a key with two values is
refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

import json_repair

MAX_LENGTH = 400_000
"""Characters of a text that is searched for JSON; no reply to a step of ours is that long."""
MAX_BROKEN = 8_000
"""Characters that are mended: the library takes a second for the worst of that length."""
_END = "\ua66e"
"""A letter that no reply holds, since the library would split a sign from the number before it."""
_BEGINS = {
    "{": re.compile(r"""\{\s*(?:["'“][^"'”\n]{1,60}["'”]|\w{1,40})\s*[:=]"""),
    "[": re.compile(r"""\[\s*["'{]"""),
}
"""What begins JSON, as opposed to a bracket in prose."""
_KEY_WITHOUT_COLON = re.compile(r"""[{,]\s*["'“][\w ]{1,60}["'”]\s*$""")
_CUT_KEY = re.compile(r"""[{,]\s*["'“][\w ]{0,60}$""")
_EQUALS = re.compile(r"""([{,\s]["'“][\w ]{1,40}["'”])\s*=\s*(?=["'“\d[{])""")


class NotJson(ValueError):
    """No JSON, or none that means one thing."""


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON value and where it stands in the text."""

    value: Any
    start: int
    end: int


def values(text: str, bracket: str = "{") -> list[Found]:
    """Every JSON object in a text, or list (``[``), none inside another."""
    if len(text) > MAX_LENGTH:
        raise NotJson(f"longer than {MAX_LENGTH} characters")
    found: list[Found] = []
    at = strays = 0
    while (start := text.find(bracket, at)) >= 0:
        try:
            value, at = _STANDARD.raw_decode(text, start)
            found.append(Found(_clean(value), start, at))
        except NotJson:
            raise
        except (ValueError, RecursionError):
            if _BEGINS[bracket].match(text, start):
                return [*found, _mended(text, start)]
            at, strays = start + 1, strays + 1
            # each is tried once, so the time stays linear in the text
            if strays > 100:
                raise NotJson("too many brackets that begin nothing") from None
    return found


def parse(text: str) -> Any:
    """The text, all of it, as one JSON value."""
    stripped = text.strip()
    if stripped[:1] in _BEGINS:
        found = values(stripped, stripped[0])
        if len(found) != 1 or found[0].start or stripped[found[0].end :].strip():
            raise NotJson("not one JSON value")
        return found[0].value
    try:
        return _clean(_STANDARD.decode(stripped))
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def is_cut(value: Any) -> bool:
    """Whether a value is or holds what the text's end cut off."""
    if isinstance(value, dict):
        return any(map(is_cut, (*value, *value.values())))
    if isinstance(value, list):
        return any(map(is_cut, value))
    return isinstance(value, str) and _END in value


def without_mark(text: str) -> str:
    """A text that was cut off, as far as it came."""
    return text.partition(_END)[0]


def _mended(text: str, start: int) -> Found:
    """The one value that the rest of a text holds, with everything that is broken mended."""
    rest = text[start:]
    if len(rest) > MAX_BROKEN:
        raise NotJson(f"broken, and longer than {MAX_BROKEN} characters")
    # the library reads "key" = as a part of the key
    rest = _EQUALS.sub(r"\1: ", rest)
    try:
        value = json_repair.loads(_marked(rest), skip_json_loads=True)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    if type(value) is not {"{": dict, "[": list}[rest[0]]:
        raise NotJson("several values, or none")
    for key in value if isinstance(value, dict) else ():
        _check_one_value(rest, str(key))
    end = rest.rfind("}" if rest[0] == "{" else "]") + 1
    if is_cut(value) or rest[end:].lstrip().startswith(("]", ",")):
        end = 0  # that was a bracket further inside
    # the library drops words that it cannot place, such as those of {"choice": "A" or
    if not end and not is_cut(value) and rest.rstrip(" \t\r\n`")[-1] not in "\"'”]{},":
        raise NotJson("its end means nothing")
    return Found(_clean(value), start, start + end if end else len(text))


def _marked(text: str) -> str:
    """A text with the mark at its end, where it becomes a part of what was cut off."""
    in_list = text.rfind("[") > max(text.rfind("{"), text.rfind("]"))
    if text.rstrip().endswith("{"):
        return f'{text}"{_END}": {_END}'
    if not in_list and _KEY_WITHOUT_COLON.search(text):
        return f"{text}: {_END}"
    if not in_list and _CUT_KEY.search(text):
        return f'{text}{_END}": {_END}'
    if text.rstrip().endswith("}") and text.count("[") > text.count("]"):
        return f"{text}, {_END}"
    return f"{text} {_END}" if text.rstrip().endswith(",") else text + _END


def _check_one_value(text: str, key: str) -> None:
    """Refuse a text that gives a key twice: the library takes the last value."""
    written = rf"""(?<!\w){re.escape(key)}["'”]?\s{{0,9}}[:=]\s{{0,9}}["'“]?([^"',}}\n]{{0,60}})"""
    if len(set(re.findall(written, text))) > 1:
        raise NotJson(f"two values for {key!r}")


def _clean(value: Any) -> Any:
    """The value without halves of surrogate pairs, which cannot be written down."""
    text = json.dumps(value, ensure_ascii=False)
    if not re.search("[\ud800-\udfff]", text):
        return value
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore"))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if members.setdefault(key, value) != value:
            raise NotJson(f"two values for {key!r}")
    return members


def _not_a_number(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a number")


def _integer(digits: str) -> int:
    # longer ones overflow when they become a float
    if len(digits) > 40:
        raise NotJson("a number with too many digits")
    return int(digits)


_STANDARD = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_not_a_number, parse_int=_integer
)
