"""Replies that are not JSON: ``key: value`` lines, YAML, XML tags, Markdown tables.

Each layout gives the fields it names, as text or lists of texts, under the keys as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Resolve: TypeAlias = Callable[[str], str | None]
"""The field that a key as written stands for."""
Members: TypeAlias = dict[str, Any]

_KEY_LINE = re.compile(
    r"""[ \t]*(?:[-*+>#•]{1,4}[ \t]+|\d{1,2}[.)][ \t]+)?  # a bullet or a heading
        [*_`"']{0,3}([A-Za-z][A-Za-z_ -]{0,30}?)[*_`"']{0,3}
        [ \t]*[:=][ \t]*[*_`]{0,3}(.*)""",
    re.VERBOSE,
)
_BULLET = re.compile(r"[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(.*)")
_TAG = re.compile(r"<([A-Za-z][\w-]{0,40})>([^<]*)</\1>")
_RULE_CELL = re.compile(r":?-{2,}:?")
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)


class Contradiction(ValueError):
    """One field with two values."""


def layouts(text: str, resolve: Resolve) -> Iterator[Members]:
    """The fields of a text in every layout that names at least one."""
    body = _FENCE.sub("", text)
    for read in (_tags, _table, _lines):
        members = read(body, resolve)
        if members:
            yield members


def _tags(text: str, resolve: Resolve) -> Members:
    """``<choice>B</choice>``"""
    members: Members = {}
    for name, value in _TAG.findall(text):
        if field := resolve(name):
            _put(members, field, value.strip())
    return members


def _table(text: str, resolve: Resolve) -> Members:
    """A Markdown table: field names in its first row, or in its first column."""
    rows = [_cells(line) for line in text.splitlines() if line.count("|") >= 2]
    rows = [row for row in rows if row and not all(map(_RULE_CELL.fullmatch, row))]
    members: Members = {}
    if not rows:
        return members
    header = [resolve(cell.strip("*_` ")) for cell in rows[0]]
    if len(header) > 1 and all(header):
        for row in rows[1:]:
            for name, cell in zip(header, row, strict=False):
                _put(members, str(name), cell)
        return members
    for row in rows:
        name = resolve(row[0].strip("*_` "))
        if len(row) == 2 and name:
            _put(members, name, row[1])
    return members


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _lines(text: str, resolve: Resolve) -> Members:
    """``reason: it barks`` and ``choice: B``, each from the start of a line, or YAML."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        match = _KEY_LINE.fullmatch(line)
        field = resolve(match.group(1)) if match else None
        if match and field:
            blocks.append((field, [match.group(2)]))
        elif blocks:
            blocks[-1][1].append(line)
    members: Members = {}
    for field, lines in blocks:
        _put(members, field, _block(lines))
    return members


def _block(lines: list[str]) -> Any:
    """The value of a key: the rest of its line, the lines below it, or the list below it."""
    first, rest = _unquoted(lines[0]), lines[1:]
    written = [line for line in rest if line.strip()]
    if first in ("", "|", ">") and written and _BULLET.fullmatch(written[0]):
        return _yaml_list(written)
    if first in ("", "|", ">"):
        first = ""
    # a value on the key's own line ends at a blank line: what follows is said about it
    kept: list[str] = []
    for line in rest:
        if not line.strip() and (first or kept):
            break
        kept.append(line.strip())
    return " ".join(part for part in (first, *kept) if part)


def _yaml_list(lines: list[str]) -> list[Any]:
    items: list[list[str]] = []
    for line in lines:
        match = _BULLET.fullmatch(line)
        if match:
            items.append([match.group(1)])
        elif items:
            items[-1].append(line)
    return [_yaml_item(item) for item in items]


def _yaml_item(lines: list[str]) -> Any:
    pairs = [_KEY_LINE.fullmatch(line) for line in lines]
    if all(pairs):
        return {match.group(1): _unquoted(match.group(2)) for match in pairs if match}
    return " ".join(line.strip() for line in lines)


def _unquoted(value: str) -> str:
    """A value without the comma, quotes and emphasis around it."""
    bare = value.strip().rstrip(",").strip().strip("*_`").strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        return bare[1:-1]
    return bare


def _put(members: Members, field: str, value: Any) -> None:
    if value == "":
        return  # a key with nothing after it says nothing
    if field in members and members[field] != value:
        raise Contradiction(f"two values for {field}")
    members[field] = value
