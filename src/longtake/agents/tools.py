"""Functions that a model may call.

A function's signature becomes the tool's parameters, its docstring the description. Endpoints with
tool calls get them natively; for others the prompt describes the tools and the model replies in
JSON. A tool's result is quoted as film material. After ``turns`` calls the model must answer, and
an unreadable answer becomes the default, as in :func:`~longtake.llm.structured.ask.ask`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from longtake import prompts
from longtake._util.timecode import clock, parse_time
from longtake.errors import ConfigError, LongtakeError
from longtake.llm.chat import (
    Chat,
    Message,
    Options,
    Reply,
    Text,
    ToolCall,
    ToolSpec,
    Unsupported,
    say,
)
from longtake.llm.structured.ask import REQUIRED, ReplyForm, TypedRequest, compose
from longtake.llm.structured.json_text import NotJson, is_cut, parse, values
from longtake.llm.structured.reader import explain
from longtake.llm.structured.schema import in_words
from longtake.prompts import Plain, phrase, quote
from longtake.tracing import events
from longtake.types import Frame, Segment

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)


class ToolError(LongtakeError):
    """Raised inside a tool; its text goes to the model, which may then try something else."""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call."""

    name: str
    description: str
    run: Callable[..., Any]
    parameters: type[BaseModel]

    @property
    def spec(self) -> ToolSpec:
        """The tool's description for the model."""
        schema = self.parameters.model_json_schema()
        schema.pop("title", None)
        return ToolSpec(self.name, self.description, schema)

    def use(self, arguments: str) -> str:
        """Run the tool on JSON arguments; raises :class:`ToolError` if they are invalid."""
        try:
            given = parse(arguments or "{}")
        except NotJson as error:
            raise ToolError(prompts.phrase("shared", "not_json", why=str(error))) from error
        if not isinstance(given, dict) or is_cut(given):
            raise ToolError(prompts.phrase("shared", "not_one_object"))
        try:
            checked = self.parameters.model_validate(given)
        except ValidationError as error:
            raise ToolError(prompts.phrase("shared", "do_not_fit", why=explain(error))) from error
        result = self.run(**{name: getattr(checked, name) for name in self.parameters.model_fields})
        return result if isinstance(result, str) else prompts.words(result)


def tool(function: Callable[..., Any]) -> Tool:
    """A tool from a function with type hints; ``Annotated[…, "…"]`` describes a parameter."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        words = next(
            (note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)), None
        )
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[name] = (hint, Field(default, description=words))
    model: type[BaseModel] = create_model(
        function.__name__, __config__=ConfigDict(extra="forbid"), **fields
    )
    return Tool(function.__name__, inspect.getdoc(function) or "", function, model)


def use_tools(
    chat: Chat,
    prompt: str,
    tools: Sequence[Tool],
    reply: type[M],
    *,
    turns: int = 5,
    frames: Sequence[Frame] = (),
    default: T = REQUIRED,
    max_tokens: int | None = None,
    **slots: Any,
) -> M | T:
    """The model's typed reply after at most ``turns`` tool calls, one at a time."""
    form = ReplyForm.of(reply, slots)
    defaults = chat.card.options
    tokens = defaults.max_tokens if max_tokens is None else max_tokens
    options = replace(defaults, max_tokens=tokens, prompt=prompt, schema=None, tools=())
    messages = compose(chat, prompt, slots, frames, form.instruction, tokens)
    loop = _Loop(chat, {one.name: one for one in tools}, options, turns)
    try:
        conversation = loop.native(list(messages))
    except Unsupported:
        conversation = loop.in_words(list(messages))
    messages, last = conversation
    if last is not None:
        try:
            return form.read(last)  # type: ignore[no-any-return]
        except ValueError as error:
            events.note("answer_unread", prompt=prompt, why=str(error))
    now = say("user", *prompts.load("shared/answer_now").render().user)
    last_request = TypedRequest(chat, [*messages, now], replace(options, schema=form.schema), form)
    result: M | T = last_request.value(default)
    return result


@dataclass(frozen=True)
class _Loop:
    """Turns of a model and its tools.

    Both ways return the conversation and, if the model answered, its reply.
    """

    chat: Chat
    tools: Mapping[str, Tool]
    options: Options
    turns: int

    def native(self, messages: list[Message]) -> tuple[list[Message], Reply | None]:
        options = replace(self.options, tools=tuple(one.spec for one in self.tools.values()))
        for _ in range(self.turns):
            reply = self.chat.complete(messages, options)
            if not reply.tool_calls:
                return self._answered(messages, reply)
            call = reply.tool_calls[0]
            if len(reply.tool_calls) > 1:
                events.note("tools_dropped", kept=call.name, dropped=len(reply.tool_calls) - 1)
            messages.append(
                Message("assistant", (Text(reply.text),) if reply.text else (), (call,))
            )
            messages.append(Message("tool", (Text(self._use(call)),), answers=call.id))
        return messages, None

    def in_words(self, messages: list[Message]) -> tuple[list[Message], Reply | None]:
        listed = "\n".join(_in_words(one.spec) for one in self.tools.values())
        described = prompts.load("shared/tools").render(tools=Plain(listed), turns=self.turns)
        messages[0] = say("system", f"{messages[0].text}\n\n{described.user[0]}")
        for _ in range(self.turns):
            reply = self.chat.complete(messages, self.options)
            call = _call_in(reply.text)
            if call is None:
                return self._answered(messages, reply)
            messages.append(say("assistant", reply.text))
            only_object = prompts.phrase("shared", "only_the_object")
            messages.append(say("user", self._use(call) if call.name else only_object))
        return messages, None

    def _answered(self, messages: list[Message], reply: Reply) -> tuple[list[Message], Reply]:
        return [*messages, say("assistant", reply.text or prompts.phrase("shared", "empty"))], reply

    def _use(self, call: ToolCall) -> str:
        """The tool's result, quoted, or what was wrong with the call."""
        try:
            if call.name not in self.tools:
                known = ", ".join(self.tools)
                raise ToolError(
                    prompts.phrase("shared", "no_such_tool", name=call.name, known=known)
                )
            result = self.tools[call.name].use(call.arguments)
        except ToolError as error:
            self._note(call, error=str(error))
            return quote(prompts.phrase("shared", "tool_failed", why=str(error)), "tool error")
        self._note(call, result=result)
        return quote(result, call.name)

    def _note(self, call: ToolCall, *, result: str = "", error: str | None = None) -> None:
        try:
            arguments = parse(call.arguments)
        except NotJson:
            arguments = None
        if not isinstance(arguments, dict):
            arguments = {"unread": call.arguments}
        events.emit(
            events.ToolCalled(name=call.name, arguments=arguments, result=result, error=error)
        )


def _in_words(spec: ToolSpec) -> str:
    """A tool on one line: what it does, and its arguments as replies' fields are described."""
    described = " ".join(spec.description.split())
    arguments = in_words(spec.parameters).replace("\n", ", ") or "none"
    return f"{spec.name}: {described} Arguments: {arguments}"


def _call_in(text: str) -> ToolCall | None:
    """The tool call that a reply consists of; a nameless one if the reply merely contains a call.

    A reply may quote a call that the film shows, so the reply must consist of the call alone.
    """
    try:
        calls = [one for one in values(text) if isinstance(one.value.get("tool"), str)]
    except NotJson:
        return None
    if not calls:
        return None
    fenced = _FENCED.fullmatch(text.strip())
    try:
        call = parse(fenced.group(1) if fenced else text.strip())
    except NotJson:
        return ToolCall("", "", "")
    if is_cut(call) or not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        return ToolCall("", "", "")
    return ToolCall("", call["tool"], json.dumps(call.get("arguments") or {}))


Written = str | float
"""A time in a model's reply: a clock, or seconds."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of film, and how the times written for it were repaired."""

    segment: Segment
    repaired: str = ""


def read_stretch(start: Written, end: Written, duration: float) -> Stretch:
    """The stretch that two times name.

    ::

        "00:03:21", "3:21", "201 s", 201      the same moment
        00:05:00 to 00:04:00                  reversed: swapped
        03:21:00 in a film of an hour         minutes written as hours: 00:03:21
        00:59:00 to 01:10:00                  past the end: cut at the end
        02:00:00 to 02:10:00                  entirely outside: rejected
    """
    a, shifted_a = _moment(start, duration)
    b, shifted_b = _moment(end, duration)
    done = []
    if shifted_a or shifted_b:
        done.append(phrase("shared", "hours_for_minutes"))
    if b < a:
        a, b = b, a
        done.append(phrase("shared", "wrong_way_round"))
    if a >= duration:
        length = Plain(clock(duration))
        raise ToolError(phrase("shared", "beyond_the_end", time=Plain(clock(a)), length=length))
    if b > duration:
        b = duration
        done.append(phrase("shared", "film_ends", time=Plain(clock(duration))))
    return Stretch(Segment(a, b), "; ".join(done))


def _moment(written: Written, duration: float) -> tuple[float, bool]:
    """Seconds, and whether the hours were read as minutes to fall inside the film."""
    try:
        seconds = parse_time(str(written))
    except ConfigError as error:
        raise ToolError(phrase("shared", "write_times", why=str(error))) from error
    parts = str(written).strip().split(":")
    # a model may round the end of the film up by a second
    beyond = seconds > duration + 1.0
    if beyond and len(parts) == 3 and float(parts[2]) == 0 and seconds / 60 < duration:
        return seconds / 60, True
    return seconds, False


def at_least(segment: Segment, seconds: float, duration: float) -> Segment:
    """The segment widened on both sides to last ``seconds``, within the film."""
    if segment.duration >= seconds:
        return segment
    start = max(0.0, min(segment.middle - seconds / 2, duration - seconds))
    return Segment(start, min(duration, start + seconds))
