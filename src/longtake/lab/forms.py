"""Builds replies in the shape that a JSON schema asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longtake._util.timecode import clock
from longtake.lab.mind import Mind
from longtake.lab.profile import pick
from longtake.lab.skills import LISTS, VALUES, choose_tool, next_agent, peer_score, role_of

NEUTRAL = "There is nothing to add."
ANSWERS = ("answer", "choice", "final_answer")
"""Fields that hold no answer while a plan goes on."""
_PEER = re.compile(r"(?:agent|peer|score)_(\d+)")


class Filler:
    """Fills one schema for one call. The name of a field decides which skill fills it.

    A field that no skill knows, or whose type the skill's value does not fit, gets a neutral value
    of its type. Such a value says nothing about the film, so :attr:`neutral` names the field.
    """

    def __init__(self, mind: Mind, schema: Mapping[str, Any]) -> None:
        self.neutral: list[str] = []
        """Fields that got a neutral value, each once."""
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
        if "properties" in node:
            return self._object(node, given)
        if _type(node) == "array":
            return self._list(node, name)
        return self._fit(self._value(name, node), node, name)

    def _object(self, node: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        properties: Mapping[str, Any] = node["properties"]
        if "agent" in properties and "agent" not in given:
            # decided first, because the other fields depend on it
            self._agent = str(self._node(properties["agent"], "agent", {}))
        return {name: self._node(inner, name, given) for name, inner in properties.items()}

    def _list(self, node: Mapping[str, Any], name: str) -> list[Any]:
        inner = self._resolve(node.get("items") or node.get("prefixItems", [{}])[0])
        if name not in LISTS:
            self._note_neutral(name)
            return [] if node.get("minItems", 0) == 0 else [self._node(inner, name, {})]
        items = LISTS[name](self._mind)
        max_items = node.get("maxItems", len(items))
        return [self._item(item, inner, name) for item in items[:max_items]]

    def _item(self, item: Any, inner: Mapping[str, Any], name: str) -> Any:
        """One item of a list in the shape that its schema asks for: object, pair or text."""
        if isinstance(item, dict):
            if "properties" in inner:
                return self._object(inner, item)
            values = list(item.values())
            if _type(inner) == "array":
                return [self._fit(value, {}, name) for value in values]
            return _spelt(values)
        # the profile's replies depend on items being drawn without the name of their list
        return item if isinstance(item, list) else self._fit(item, inner, name, salt="")

    def _value(self, name: str, node: Mapping[str, Any]) -> Any:
        mind, choices = self._mind, [str(value) for value in node.get("enum", [])]
        if name == "agent" and choices:
            return next_agent(mind, choices)
        if name == "tool" and choices:
            return choose_tool(mind, choices)
        if match := _PEER.fullmatch(name):
            return self._peer(int(match[1]) - 1, str(node.get("description", "")))
        if self._unfinished and name in ANSWERS:
            return None if _nullable(node) else ""
        if name in ("answer", "final_answer") and choices:
            return mind.letter
        if name in VALUES:
            return VALUES[name](mind)
        if "const" not in node:  # a constant needs no skill
            self._note_neutral(name)
        return NEUTRAL

    @property
    def _unfinished(self) -> bool:
        """Whether this is a plan that goes on, and so has no answer yet."""
        return bool(self._agent) and role_of(self._agent) != "finish"

    def _peer(self, number: int, described: str) -> int:
        """The score of the peer that the field's description names, or else of the numbered line.

        A peer that said nothing gets the lowest score.
        """
        lines = self._mind.shown.named_lines()
        named = [statement for name, statement in lines if described.endswith(f" {name}")]
        if named:
            return peer_score(self._mind, named[-1])
        return peer_score(self._mind, lines[number][1]) if number < len(lines) else 1

    def _fit(self, value: Any, node: Mapping[str, Any], name: str, salt: str | None = None) -> Any:
        """A value converted to what its schema accepts; ``salt`` seeds a random choice."""
        if value is None and _nullable(node):
            return None
        node = self._resolve(node)
        if "enum" in node:
            return self._choice(value, node["enum"], name, name if salt is None else salt)
        if "const" in node:
            return node["const"]
        kind = _type(node)
        if kind == "boolean":
            if isinstance(value, bool | int):
                return bool(value)
            self._note_neutral(name)
            return False
        if kind in ("integer", "number"):
            if not isinstance(value, int | float):
                self._note_neutral(name)
                value = 1.0
            return _bounded(float(value), node, whole=kind == "integer")
        if kind == "string" and not isinstance(value, str):
            if isinstance(value, float):  # times are the only floats that skills give
                return clock(value)
            return "" if value is None else str(value)
        if isinstance(value, str) and "maxLength" in node:
            return value[: node["maxLength"]]
        if kind == "object" and not isinstance(value, dict):
            self._note_neutral(name)
            return {}
        return value

    def _choice(self, value: Any, choices: Sequence[Any], name: str, salt: str) -> Any:
        """The choice that equals a value, ignoring case; otherwise one at random."""
        wanted = str(value).lower()
        for choice in choices:
            if str(choice).lower() == wanted:
                return choice
        self._note_neutral(name)
        return pick(choices, self._mind.seed, salt, *choices)

    def _note_neutral(self, name: str) -> None:
        # nobody reads the answer of an unfinished plan, so what it holds does not matter
        ignored = self._unfinished and name in ANSWERS
        if not ignored and name not in self.neutral:
            self.neutral.append(name)

    def _resolve(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """A node with references followed and the first branch taken that is not ``null``."""
        while "$ref" in node or "anyOf" in node or "oneOf" in node:
            if "$ref" in node:
                node = self._schema["$defs"][str(node["$ref"]).rpartition("/")[2]]
            else:
                branches: Sequence[Mapping[str, Any]] = node.get("anyOf") or node["oneOf"]
                node = next((b for b in branches if b.get("type") != "null"), branches[0])
        return node


def _type(node: Mapping[str, Any]) -> str:
    kind = node.get("type", "" if "enum" in node else "string")
    if isinstance(kind, list):
        return next((one for one in kind if one != "null"), "null")
    return str(kind)


def _nullable(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return isinstance(kind, list) and "null" in kind


def _bounded(number: float, node: Mapping[str, Any], *, whole: bool) -> int | float:
    minimum = node.get("minimum", node.get("exclusiveMinimum"))
    maximum = node.get("maximum", node.get("exclusiveMaximum"))
    if minimum is not None:
        number = max(number, float(minimum))
    if maximum is not None:
        number = min(number, float(maximum))
    return round(number) if whole else number


def _spelt(values: Sequence[Any]) -> str:
    return " to ".join(clock(value) if isinstance(value, float) else str(value) for value in values)
