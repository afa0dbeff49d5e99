"""Simulated models of known acuity. They see only what they are shown.

``lab/acuity=0.8,seed=3,onscreen=0.2`` names one. A picture tells by its code which second of which world it
shows; what can be seen there, the model sees with the chance that its acuity gives. Everything else it knows
stands in the prompt. It is stateless, and the same request gives the same reply.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from longtake.errors import ConfigError, unknown
from longtake.lab.eyes import Eyes
from longtake.lab.facts import KINDS
from longtake.lab.faults import spoil
from longtake.lab.forms import Filler
from longtake.lab.mind import Mind
from longtake.lab.planning import pick_tool, wants_tool
from longtake.lab.profile import PROFILE
from longtake.lab.prompt import Shown
from longtake.lab.world import make_script
from longtake.models.chat import (
    Card,
    Image,
    Message,
    Options,
    Reply,
    ToolCall,
    ToolSpec,
    Unsupported,
    request_hash,
)
from longtake.models.prices import Price
from longtake.types import Usage


@dataclass(frozen=True)
class LabModel:
    """The parameters of a simulated model; what is not set is the profile's."""

    seed: int = 0
    acuity: float = PROFILE.model.acuity
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """Blind spots: acuity for ``action``, ``people``, ``onscreen``, ``spoken`` where it differs."""
    reading: float = PROFILE.model.reading
    hallucination: float = PROFILE.model.hallucination
    verbosity: float = PROFILE.model.verbosity
    json_faults: float = PROFILE.model.json_faults
    latency: float = PROFILE.model.latency
    sleep: bool = False
    """Take the time that is reported."""
    tools: bool = True
    """Whether tool calls are offered; without, the JSON protocol in words is used."""
    context: int = PROFILE.model.context
    world: tuple[int, int] | None = None
    """Seed and minutes of the only world it knows; ``None``: every world, by the frame code."""

    @property
    def name(self) -> str:
        """The name that gives this model."""
        parts = []
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name == "by_kind":
                parts += [f"{kind}={chance:g}" for kind, chance in sorted(value.items())]
            elif part.name == "world" and value is not None:
                parts.append(f"world={value[0]}:{value[1]}")
            elif value != part.default and part.name != "world":
                parts.append(
                    f"{part.name}={int(value) if isinstance(value, bool) else f'{value:g}'}"
                )
        return "lab/" + ",".join(parts or [f"acuity={self.acuity:g}"])


def parse(text: str) -> LabModel:
    """The model that a name gives: ``acuity=0.8,seed=3``, with or without ``lab/`` before it."""
    values: dict[str, Any] = {}
    by_kind: dict[str, float] = {}
    known = {part.name: part.type for part in fields(LabModel) if part.name != "by_kind"}
    for piece in filter(None, text.removeprefix("lab/").split(",")):
        key, equals, value = (word.strip() for word in piece.partition("="))
        if key not in known and key not in KINDS.values():
            raise unknown("parameter of a lab model", key, [*known, *KINDS.values()], where=text)
        try:
            if not equals:
                raise ValueError(piece)
            if key == "world":
                seed, _, minutes = value.partition(":")
                values[key] = int(seed), int(minutes)
            elif key in KINDS.values():
                by_kind[key] = float(value)
            elif key in ("seed", "context"):
                values[key] = int(value)
            elif key in ("sleep", "tools"):
                values[key] = bool(int(value))
            else:
                values[key] = float(value)
        except ValueError as error:
            raise ConfigError(f"lab/{text}: {piece!r} is not NAME=NUMBER", key=key) from error
    _check(text, {**values, **by_kind})
    return LabModel(by_kind=by_kind, **values)


def _check(text: str, values: Mapping[str, Any]) -> None:
    for key in ("acuity", "reading", "hallucination", "json_faults", *KINDS.values()):
        if key in values and not 0 <= values[key] <= 1:
            raise ConfigError(f"lab/{text}: {key} is a chance, 0 to 1", key=key)
    for key in ("latency", "verbosity"):
        if key in values and not (values[key] >= 0 and math.isfinite(values[key])):
            raise ConfigError(f"lab/{text}: {key} cannot be negative", key=key)


def make(text: str) -> LabChat:
    """The chat behind a name; what the registry of model families calls."""
    return LabChat(parse(text))


class LabChat:
    """A simulated model as a chat."""

    def __init__(self, model: LabModel | None = None) -> None:
        self.model = model or LabModel()
        if self.model.world is not None:
            make_script(*self.model.world)  # a world that cannot be is refused now
        own = PROFILE.model
        self._card = Card(
            self.model.name,
            context=self.model.context,
            picture_tokens=own.picture_tokens,
            vision=True,
            price=Price(
                own.price_in, own.price_out, own.price_in, source=f"profile {PROFILE.name}"
            ),
            revision=PROFILE.hash,
        )
        self._eyes = Eyes(
            self.model.seed,
            self.model.acuity,
            self.model.by_kind,
            self.model.hallucination,
            self.model.reading,
        )

    @property
    def card(self) -> Card:
        """What is known of it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Look, read, and reply in the form that is asked for."""
        shown = Shown(messages, self._eyes, self.model.world)
        mind = Mind(shown, self.model.seed, self.model.verbosity)
        call: tuple[ToolCall, ...] = ()
        text = ""
        if options.tools and not self.model.tools:
            raise Unsupported(self._card.name, "tools")
        if options.tools and wants_tool(mind):
            call = (self._call(mind, options.tools),)
        elif options.schema is None and shown.worded_tools and wants_tool(mind):
            wanted = self._call(mind, shown.worded_tools)
            text = json.dumps(
                {"tool": wanted.name, "arguments": json.loads(wanted.arguments)}, ensure_ascii=False
            )
        else:
            text = self._text(mind, messages, options)
        usage = self._usage(messages, text, call)
        if self.model.sleep:
            time.sleep(usage.seconds)
        return Reply(text, "", call, usage, "tool_calls" if call else "stop", self._card.name)

    def _text(self, mind: Mind, messages: Sequence[Message], options: Options) -> str:
        schema = options.schema if options.schema is not None else mind.shown.form
        if schema is None:
            return mind.describe() if mind.shown.moments else _plain(mind)
        said = json.dumps(Filler(mind, schema).fill(), ensure_ascii=False)
        if self.model.json_faults == 0:
            return said
        return spoil(
            said,
            self.model.json_faults,
            self.model.seed,
            request_hash(self._card, messages, options),
        )

    def _call(self, mind: Mind, tools: Sequence[ToolSpec]) -> ToolCall:
        tool = pick_tool(mind, tools)
        number = sum(len(message.tool_calls) for message in mind.shown.messages)
        arguments = (
            Filler(mind, tool.parameters).fill() if tool.parameters.get("properties") else {}
        )
        return ToolCall(f"call-{number}", tool.name, json.dumps(arguments, ensure_ascii=False))

    def _usage(self, messages: Sequence[Message], text: str, calls: Sequence[ToolCall]) -> Usage:
        own = PROFILE.model
        pictures = sum(isinstance(part, Image) for message in messages for part in message.parts)
        letters = sum(len(message.text) for message in messages)
        letters += sum(
            len(call.name + call.arguments) for message in messages for call in message.tool_calls
        )
        tokens_in = math.ceil(letters / own.characters_per_token) + pictures * own.picture_tokens
        written = text + "".join(call.name + call.arguments for call in calls)
        tokens_out = max(1, math.ceil(len(written) / own.characters_per_token))
        seconds = self.model.latency + tokens_out * own.seconds_per_token * (self.model.latency > 0)
        assert self._card.price is not None
        cost = self._card.price.of(tokens_in, 0, tokens_out)
        return Usage(1, tokens_in, 0, tokens_out, pictures, round(seconds, 4), cost)


def _plain(mind: Mind) -> str:
    """A reply in plain words to a prompt without pictures and without a form."""
    if mind.letter is not None:
        return f"Answer: {mind.letter}"
    return (
        mind.answer
        if mind.query is not None
        else mind.padded("Nothing was asked that can be answered here.")
    )
