"""Replies in the shape that a JSON schema asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longtake.lab.chance import pick
from longtake.lab.mind import Mind
from longtake.lab.planning import choose_tool, next_agent, role_of
from longtake.lab.skills import LISTS, VALUES, peer_score
from longtake.timecode import clock

NEUTRAL = "There is nothing to add."
_PEER = re.compile(r"(?:agent|peer|score)_(\d+)")


class Filler:
    """Fills one schema for one call."""

    def __init__(self, mind: Mind, schema: Mapping[str, Any]) -> None:
        self._mind = mind
        self._schema = schema
        self._agent = ""

    def fill(self) -> Any:
        """The whole reply."""
        return self._node(self._schema, "", {})

    def _node(self, node: Mapping[str, Any], name: str, given: Mapping[str, Any]) -> Any:
        node = self._resolve(node)
        if name in given:
            return self._fit(given[name], node, name)
        kind = _type(node)
        if "properties" in node:
            return self._object(node, given)
        if kind == "array":
            return self._list(node, name)
        return self._fit(self._value(name, node), node, name)

    def _object(self, node: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        properties: Mapping[str, Any] = node["properties"]
        if (
            "agent" in properties and "agent" not in given
        ):  # decided first: the other fields depend on it
            self._agent = str(self._node(properties["agent"], "agent", {}))
        return {name: self._node(inner, name, given) for name, inner in properties.items()}

    def _list(self, node: Mapping[str, Any], name: str) -> list[Any]:
        inner = self._resolve(node.get("items") or node.get("prefixItems", [{}])[0])
        if name not in LISTS:
            return [] if node.get("minItems", 0) == 0 else [self._node(inner, name, {})]
        items = LISTS[name](self._mind)
        return [self._item(item, inner) for item in items[: node.get("maxItems", len(items))]]

    def _item(self, item: Any, inner: Mapping[str, Any]) -> Any:
        """One item of a list, in the shape its own schema has: an object, a pair, or a text."""
        if isinstance(item, dict) and "properties" in inner:
            return self._object(inner, item)
        if isinstance(item, dict):
            values = list(item.values())
            return (
                [self._fit(v, {}, "") for v in values]
                if _type(inner) == "array"
                else _spelt(values)
            )
        return item if isinstance(item, list) else self._fit(item, inner, "")

    def _value(self, name: str, node: Mapping[str, Any]) -> Any:
        mind, choices = self._mind, [str(value) for value in node.get("enum", [])]
        if name == "agent" and choices:
            return next_agent(mind, choices)
        if name == "tool" and choices:
            return choose_tool(mind, choices)
        if match := _PEER.fullmatch(name):
            return self._peer(int(match[1]) - 1, str(node.get("description", "")))
        if (
            self._agent
            and name in ("answer", "choice", "final_answer")
            and role_of(self._agent) != "finish"
        ):
            return None if _nullable(node) else ""  # a plan that goes on answers nothing yet
        if name in ("answer", "final_answer") and choices:
            return mind.letter
        if name in VALUES:
            return VALUES[name](mind)
        return NEUTRAL

    def _peer(self, number: int, described: str) -> int:
        """The score of one peer: of whom the field's description names, else of the line with its number."""
        lines = self._mind.shown.named_lines()
        named = [said for name, said in lines if described.endswith(f" {name}")]
        if named:
            return peer_score(self._mind, named[-1])
        return peer_score(self._mind, lines[number][1]) if number < len(lines) else 1

    def _fit(self, value: Any, node: Mapping[str, Any], name: str) -> Any:
        """A value as its schema admits it."""
        if value is None and _nullable(node):
            return None
        node = self._resolve(node)
        if "enum" in node:
            choices = node["enum"]
            exact = next((c for c in choices if str(c).lower() == str(value).lower()), None)
            return exact if exact is not None else pick(choices, self._mind.seed, name, *choices)
        if "const" in node:
            return node["const"]
        kind = _type(node)
        if kind == "boolean":
            return bool(value) if isinstance(value, bool | int) else False
        if kind in ("integer", "number"):
            return _number(value, node, whole=kind == "integer")
        if kind == "string" and not isinstance(value, str):
            return (
                clock(value)
                if isinstance(value, float)
                else str(value if value is not None else "")
            )
        if isinstance(value, str) and "maxLength" in node:
            return value[: node["maxLength"]]
        if kind == "object" and not isinstance(value, dict):
            return {}
        return value

    def _resolve(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """A node with references followed and the first branch taken that is not null."""
        while "$ref" in node or "anyOf" in node or "oneOf" in node:
            if "$ref" in node:
                node = self._schema["$defs"][str(node["$ref"]).rpartition("/")[2]]
            else:
                branches: Sequence[Mapping[str, Any]] = node.get("anyOf") or node["oneOf"]
                node = next((b for b in branches if b.get("type") != "null"), branches[0])
        return node


def _type(node: Mapping[str, Any]) -> str:
    kind = node.get("type", "string" if "enum" not in node else "")
    return next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else str(kind)


def _nullable(node: Mapping[str, Any]) -> bool:
    kinds = node.get("type", [])
    branches = [*node.get("anyOf", []), *node.get("oneOf", [])]
    return (
        "null" in kinds
        if isinstance(kinds, list)
        else any(b.get("type") == "null" for b in branches)
    )


def _number(value: Any, node: Mapping[str, Any], *, whole: bool) -> int | float:
    number = float(value) if isinstance(value, int | float) else 1.0
    least = node.get("minimum", node.get("exclusiveMinimum"))
    most = node.get("maximum", node.get("exclusiveMaximum"))
    if least is not None:
        number = max(number, float(least))
    if most is not None:
        number = min(number, float(most))
    return round(number) if whole else number


def _spelt(values: Sequence[Any]) -> str:
    return " to ".join(clock(value) if isinstance(value, float) else str(value) for value in values)
