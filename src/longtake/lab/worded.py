"""Forms and tools as prompts describe them in words, read back into schemas.

A simulated model fills in schemas. Where a request carries none, as between the uses of tools, it
goes by the words, as a real model would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from longtake.models.chat import ToolSpec

_MEMBER = re.compile(r'(?:^|, | and |\n)"([^"\n]+)": ')
_TOOL = re.compile(r"^(\w+): (.*) Arguments: (.*)$", re.MULTILINE)
_FORM = re.compile(r'Its fields:\n((?:"[^"\n]+": .*(?:\n|$))+)')
_ITEMS = {"texts": "string", "whole numbers": "integer", "numbers": "number"}


def form_in(text: str) -> dict[str, Any] | None:
    """The form that a prompt asks for last."""
    forms = _FORM.findall(text)
    return {"type": "object", "properties": _members(forms[-1])} if forms else None


def tools_in(text: str) -> Iterator[ToolSpec]:
    """The tools that a prompt tells of, one a line."""
    for name, description, arguments in _TOOL.findall(text):
        schema = {"type": "object", "properties": _members(arguments)}
        yield ToolSpec(name, description, schema)


def is_form(line: str) -> bool:
    """Whether a line describes a field of the reply or a tool, and so is no material."""
    return _TOOL.match(line) is not None or re.match(r'"[^"]+": ', line) is not None


def _members(text: str) -> dict[str, Any]:
    """``"name": words`` pairs, up to the next name each."""
    text = text.strip()
    # what an object inside a list holds belongs to that list's words
    lines = text.split("\n")
    if len(lines) > 1:
        return {name: node for line in lines for name, node in _members(line).items()}
    starts = list(_MEMBER.finditer(text))
    members: dict[str, Any] = {}
    for number, match in enumerate(starts):
        if match.group(1) in members:
            continue
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        words = text[match.end() : end]
        if words.endswith(("each with", "an object with")) or "each with " in words:
            members[match.group(1)] = _node(text[match.end() :])
            break
        members[match.group(1)] = _node(words)
    return members


def _node(words: str) -> dict[str, Any]:
    """The schema of one field."""
    kind, _, described = words.partition(" (")
    node = {"description": described.removesuffix(")")} if described else {}
    if kind.startswith("one of "):
        return node | {"type": "string", "enum": re.findall(r'"([^"]*)"', kind)}
    if kind.startswith("a list of "):
        return node | _list(words.removeprefix("a list of "))
    if kind.startswith("an object with "):
        return {"type": "object", "properties": _members(words.removeprefix("an object with "))}
    if kind.startswith("true or false"):
        return node | {"type": "boolean"}
    if kind.startswith(("a whole number", "a number")):
        whole = kind.startswith("a whole")
        return node | {"type": "integer" if whole else "number"} | _bounds(kind)
    return node | {"type": "string"}


def _list(words: str) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "array"}
    if most := re.match(r"(?:at most |\d+ to )(\d+) ", words):
        node["maxItems"] = int(most[1])
        words = words[most.end() :]
    words = re.sub(r"^at least \d+ ", "", words)
    if "each with " in words:
        inside = words.partition("each with ")[2]
        return node | {"items": {"type": "object", "properties": _members(inside)}}
    if words.startswith("lists of "):
        return node | {"items": _list(words.removeprefix("lists of "))}
    for plural, kind in _ITEMS.items():
        if words.startswith(plural):
            return node | {"items": {"type": kind} | _bounds(words)}
    return node | {"items": {"type": "string"}}


def _bounds(words: str) -> dict[str, Any]:
    if between := re.search(r"from (-?[\d.]+) to (-?[\d.]+)", words):
        return {"minimum": float(between[1]), "maximum": float(between[2])}
    return {}
