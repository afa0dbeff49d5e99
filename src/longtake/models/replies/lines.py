"""Replies that are not JSON: ``key: value`` lines, YAML, XML tags, Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Resolve = Callable[[str], str | None]
"""The field that a key as written stands for."""

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


def labelled_values(text: str, resolve: Resolve) -> dict[str, Any]:
    """The fields that a text gives by name, as text or lists of texts."""
    text = _FENCE.sub("", text)
    members: dict[str, Any] = {}
    for field, value in [*_tags(text, resolve), *_table(text, resolve), *_key_lines(text, resolve)]:
        if value == "":
            continue  # a key with nothing after it says nothing
        if members.setdefault(field, value) != value:
            raise Contradiction(f"two values for {field}")
    return members


def _tags(text: str, resolve: Resolve) -> list[tuple[str, Any]]:
    """``<choice>B</choice>``"""
    found = [(resolve(name), value.strip()) for name, value in _TAG.findall(text)]
    return [(name, value) for name, value in found if name]


def _table(text: str, resolve: Resolve) -> list[tuple[str, Any]]:
    """A Markdown table: field names in its first row, or in its first column."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.count("|") >= 2 and not all(map(_RULE_CELL.fullmatch, cells)):
            rows.append(cells)
    if not rows:
        return []
    header = [resolve(cell.strip("*_` ")) for cell in rows[0]]
    if len(header) > 1 and all(header):
        cells_below = [zip(header, row, strict=False) for row in rows[1:]]
        return [(str(name), cell) for row in cells_below for name, cell in row]
    pairs = [(resolve(row[0].strip("*_` ")), row[1]) for row in rows if len(row) == 2]
    return [(name, cell) for name, cell in pairs if name]


def _key_lines(text: str, resolve: Resolve) -> list[tuple[str, Any]]:
    """``reason: it barks`` and ``choice: B``, each from the start of a line, or YAML."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        match = _KEY_LINE.fullmatch(line)
        field = resolve(match.group(1)) if match else None
        if match and field:
            blocks.append((field, [match.group(2)]))
        elif blocks:
            blocks[-1][1].append(line)
    return [(field, _block(first, rest)) for field, (first, *rest) in blocks]


def _block(first: str, rest: list[str]) -> Any:
    """The value of a key: the rest of its line, the lines below it, or the list below it."""
    first = _without_quotes(first).removeprefix("|").removeprefix(">")
    written = [line for line in rest if line.strip()]
    if not first and written and _BULLET.fullmatch(written[0]):
        return _yaml_list(written)
    kept = [first] if first else []
    for line in rest:
        # a value ends at a blank line: what follows is said about it
        if not line.strip() and kept:
            break
        kept.append(line.strip())
    return " ".join(part for part in kept if part)


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
        return {match.group(1): _without_quotes(match.group(2)) for match in pairs if match}
    return " ".join(line.strip() for line in lines)


def _without_quotes(value: str) -> str:
    """A value without the comma, quotes and emphasis around it."""
    bare = value.strip().rstrip(",").strip().strip("*_`").strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        return bare[1:-1]
    return bare
