"""Simulated models: the chat that replies, how it fills forms, and faults in its JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longtake._util.timecode import clock
from longtake.config.entries import LabEntry
from longtake.llm.backend import HereBackend, ModelRequest
from longtake.llm.budget import REAL
from longtake.llm.chat import (
    Card,
    Chat,
    Image,
    Message,
    Options,
    Price,
    Reply,
    ToolCall,
    ToolSpec,
    Unsupported,
    request_hash,
)
from longtake.llm.middleware import Carded
from longtake.tracing import events
from longtake.types import Usage
from longtake_bench.lab.mind import Mind
from longtake_bench.lab.profile import PROFILE, LabModel, parse, pick, share
from longtake_bench.lab.prompt import Eyes, Shown, form_in, tools_in
from longtake_bench.lab.skills import (
    LISTS,
    VALUES,
    choose_tool,
    next_agent,
    peer_score,
    role_of,
    wants_tool,
)
from longtake_bench.lab.world import make_script


class LabChat:
    """A chat with a simulated model."""

    def __init__(self, model: LabModel | None = None) -> None:
        self.model = model or LabModel()
        if self.model.world is not None:
            make_script(*self.model.world)  # raises for an impossible world now, not mid-run
        defaults = PROFILE.model
        price_in, source = defaults.price_in, f"profile {PROFILE.name}"
        price = Price(price_in, defaults.price_out, price_in, source=source)
        self.card = Card(
            self.model.name,
            context=self.model.context,
            picture_tokens=defaults.picture_tokens,
            vision=True,
            price=price,
            revision=PROFILE.hash,  # cached replies of another profile must not be reused
        )
        self._eyes = Eyes(self.model)

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Look at the pictures, read the text, and reply in the requested form."""
        mind = Mind(Shown(messages, self._eyes))
        calls: tuple[ToolCall, ...] = ()
        text = ""
        # as with endpoints that lack tool calls: the caller describes its tools in words instead
        if options.tools and not self.model.tools:
            raise Unsupported(self.card.name, "tools")
        worded = [] if options.schema is not None else list(tools_in(mind.shown.instructions))
        if options.tools and wants_tool(mind):
            calls = (self._call(mind, options.tools, options),)
        elif worded and wants_tool(mind):
            wanted = self._call(mind, worded, options)
            request = {"tool": wanted.name, "arguments": json.loads(wanted.arguments)}
            text = json.dumps(request, ensure_ascii=False)
        else:
            text = self._text(mind, messages, options)
        usage = self._usage(messages, text, calls)
        if self.model.sleep:
            REAL.sleep(usage.seconds)  # ends with the run
        return Reply(text, "", calls, usage, "tool_calls" if calls else "stop", self.card.name)

    def _text(self, mind: Mind, messages: Sequence[Message], options: Options) -> str:
        schema = options.schema
        if schema is None:
            schema = form_in(mind.shown.instructions)
        if schema is None:
            return mind.describe() if mind.shown.moments else _plain(mind)
        text = json.dumps(_filled(mind, schema, options), ensure_ascii=False)
        if self.model.json_faults == 0:
            return text  # saves hashing the request, which encodes its pictures
        request = request_hash(self.card, messages, options)
        return spoil(text, self.model.json_faults, self.model.seed, request)

    def _call(self, mind: Mind, tools: Sequence[ToolSpec], options: Options) -> ToolCall:
        chosen = choose_tool(mind, [tool.name for tool in tools])
        tool = next(tool for tool in tools if tool.name == chosen)
        number = sum(len(message.tool_calls) for message in mind.shown.messages)
        takes_arguments = bool(tool.parameters.get("properties"))
        arguments = _filled(mind, tool.parameters, options) if takes_arguments else {}
        return ToolCall(f"call-{number}", tool.name, json.dumps(arguments, ensure_ascii=False))

    def _usage(self, messages: Sequence[Message], text: str, calls: Sequence[ToolCall]) -> Usage:
        defaults = PROFILE.model
        pictures, characters = 0, 0
        for message in messages:
            pictures += sum(isinstance(part, Image) for part in message.parts)
            characters += len(message.text) + _length(message.tool_calls)
        tokens_in = math.ceil(characters / defaults.characters_per_token)
        tokens_in += pictures * defaults.picture_tokens
        written = len(text) + _length(calls)
        # no reply is free, not even an empty one
        tokens_out = max(1, math.ceil(written / defaults.characters_per_token))
        # latency=0 switches off all simulated time
        per_token = defaults.seconds_per_token if self.model.latency > 0 else 0.0
        seconds = self.model.latency + tokens_out * per_token
        assert self.card.price is not None
        cost = self.card.price.of(tokens_in, 0, tokens_out)
        return Usage(1, tokens_in, 0, tokens_out, pictures, round(seconds, 4), cost)


def _filled(mind: Mind, schema: Mapping[str, Any], options: Options) -> Any:
    """A reply in the shape of a schema; an event reports each field that no skill could fill."""
    filler = Filler(mind, schema)
    reply = filler.fill()
    for field_name in filler.neutral:
        events.note("neutral_value", field=field_name, prompt=options.prompt)
    return reply


def _length(calls: Sequence[ToolCall]) -> int:
    return sum(len(call.name) + len(call.arguments) for call in calls)


def _plain(mind: Mind) -> str:
    """The reply to a prompt without pictures and without a schema."""
    if mind.letter is not None:
        return f"Answer: {mind.letter}"
    if mind.query is not None:
        return mind.answer
    return mind.padded("Nothing was asked that can be answered here.")


class LabBackend(HereBackend[LabEntry]):
    """The laboratory's models."""

    name = "lab"
    settings = LabEntry

    def open(self, model: ModelRequest[LabEntry]) -> Chat:
        """The model with the entry's parameters."""
        chat = LabChat(parse(model.entry.model))
        if model.name.startswith("lab/"):
            return chat
        # an entry of the configuration has another name
        card = replace(chat.card, name=model.name, model=chat.card.name)
        return Carded(chat, card)

    def from_name(self, rest: str) -> LabEntry:
        """``lab/acuity=0.8`` is the entry with ``model = "acuity=0.8"``."""
        return LabEntry(model=rest)


def _misnamed(text: str) -> str:
    data = json.loads(text)
    if not isinstance(data, dict):
        return text
    return json.dumps({f"my_{name}": value for name, value in data.items()}, ensure_ascii=False)


FAULTS: Mapping[str, Callable[[str], str]] = {
    "prose": "Sure, here is my reply:\n\n{}\n\nLet me know if you need anything else!".format,
    "fence": lambda text: f"```json\n{text}\n```",
    "comma": lambda text: re.sub(r"\}$", ",}", text),
    "quotes": lambda text: text.replace('"', "'"),
    # as if the limit of tokens were reached
    "cut": lambda text: text[: max(1, len(text) * 2 // 3)],
    "words": lambda _: "I have looked at this carefully and cannot put it into that form.",
    "wrong_name": _misnamed,
}
"""What can be wrong with a JSON reply."""


def spoil(text: str, rate: float, *words: object) -> str:
    """Corrupt a JSON reply at the given rate; the words determine whether and how."""
    if share("fault", *words) >= rate:
        return text
    return FAULTS[pick(tuple(FAULTS), "kind of fault", *words)](text)


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
        """Fields that got a neutral value, without repeats."""
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
        return pick(choices, self._mind.model.seed, salt, *choices)

    def _note_neutral(self, name: str) -> None:
        # nobody reads the answer of an unfinished plan, so its value does not matter
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
