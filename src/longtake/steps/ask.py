"""Asking a model for a typed reply.

::

    guess = ask(run["llm"], "videoagent/predict", Guess, question=question, seen=story, default=Guess())

The prompt's slots are the keyword arguments that are not named below. A reply that cannot be read is asked
for once more, with the reason; after that the step's documented default stands, and an event says so. With
no default the error is raised. Nothing is ever made up in place of a reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from pydantic import BaseModel

from longtake import events, prompts
from longtake.errors import ModelError
from longtake.models.chat import Chat, Image, Message, Options, Reply, say
from longtake.models.layers import Carded
from longtake.models.replies.reading import Unreadable, read, schema_for, told
from longtake.prompts import Plain
from longtake.steps.fit import fit
from longtake.timecode import clock
from longtake.types import Frame, Question

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
REQUIRED: Any = object()
"""Stands for "no default": an unreadable reply raises."""
CUT_OFF = "the reply was cut off before an answer came, because it was too long; think less and answer briefly"
QUOTED = 2000
"""Characters of an unreadable reply that are shown to the model again …"""
CUT_QUOTED = 200
"""… and of one that was cut off."""


@overload
def ask(
    chat: Chat,
    prompt: str,
    reply: type[M],
    *,
    frames: Sequence[Frame] = (),
    default: T = REQUIRED,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    **slots: Any,
) -> M | T: ...
@overload
def ask(
    chat: Chat,
    prompt: str,
    reply: type[str] = str,
    *,
    frames: Sequence[Frame] = (),
    default: T = REQUIRED,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    **slots: Any,
) -> str | T: ...
def ask(
    chat: Chat,
    prompt: str,
    reply: type[Any] = str,
    *,
    frames: Sequence[Frame] = (),
    default: Any = REQUIRED,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    **slots: Any,
) -> Any:
    """The model's reply as ``reply``, a pydantic model or ``str``.

    A :class:`~longtake.types.Question` among the slots decides which letters a
    :data:`~longtake.models.replies.reading.Letter` may be.
    """
    form = Form.of(reply, slots)
    own = chat.card.options
    options = Options(
        temperature=own.temperature if temperature is None else temperature,
        max_tokens=own.max_tokens if max_tokens is None else max_tokens,
        schema=form.schema,
        seed=own.seed if seed is None else seed,
        prompt=prompt,
    )
    messages = compose(chat, prompt, slots, frames, form.instruction, options.max_tokens)
    return converse(chat, messages, options, form, default)


@dataclass(frozen=True)
class Form:
    """What a reply must look like."""

    kind: type[Any]
    question: Question | None
    schema: Mapping[str, Any] | None

    @classmethod
    def of(cls, kind: type[Any], slots: Mapping[str, Any]) -> Form:
        """The form of a reply type, given the slots of the prompt."""
        question = next((value for value in slots.values() if isinstance(value, Question)), None)
        schema = None if kind is str else schema_for(kind, question)
        return cls(kind, question, schema)

    @property
    def instruction(self) -> str:
        """The words that ask for this form; they close the prompt, also where a schema is enforced."""
        if self.schema is None:
            return ""
        text = Plain(json.dumps(told(self.schema), ensure_ascii=False, separators=(",", ":")))
        return prompts.load("shared/form").render(schema=text).user[0]

    def read(self, reply: Reply) -> Any:
        """The reply in this form, or :class:`Unreadable`."""
        if self.schema is not None:
            try:
                return read(reply.text, self.kind, self.question)
            except Unreadable as error:
                if (
                    reply.finish == "length"
                ):  # what its last words lack would not help; that they were too many does
                    raise Unreadable(CUT_OFF) from error
                raise
        if reply.finish == "length" and not reply.text:
            raise Unreadable(CUT_OFF)
        if not reply.text.strip():
            raise Unreadable("the reply was empty")
        return reply.text.strip()


def compose(
    chat: Chat,
    prompt: str,
    slots: Mapping[str, Any],
    frames: Sequence[Frame],
    instruction: str,
    reply_tokens: int,
) -> list[Message]:
    """The messages of a prompt, trimmed to the model's context."""
    card = chat.card
    pictures = [Image(frame, card.max_pixels, card.picture_tokens) for frame in frames]
    if pictures and chat.card.vision is False:
        raise ModelError(
            chat.card.name, "refused", f"takes no pictures, and {prompt} shows {len(pictures)}"
        )

    def build(values: Mapping[str, Any]) -> list[Message]:
        rendered = prompts.load(prompt).render(**values)
        rule = prompts.load("shared/material").text.strip()
        shown: list[str | Image] = []
        for picture in pictures:
            shown += [f"[{clock(picture.time)}]", picture]
        *before, last = rendered.user
        parts = [*before, *shown, f"{last}\n\n{instruction}".strip()]
        system = f"{rule}\n\n{rendered.system}".strip()
        return [say("system", system), say("user", *(part for part in parts if part))]

    messages = fit(chat, prompt, build, slots, reply_tokens)
    if pictures:
        seen = tuple(events.Seen(picture.time, picture.digest) for picture in pictures)
        events.emit(events.FramesSeen(purpose=prompt, frames=seen))
    return messages


def converse(
    chat: Chat, messages: list[Message], options: Options, form: Form, default: Any
) -> Any:
    """Ask, read, ask once more with what was wrong, and then take the default."""
    reply = chat.complete(messages, options)
    try:
        return form.read(reply)
    except Unreadable as error:
        problem = str(error)
    events.note("asked_again", prompt=options.prompt, model=chat.card.name, why=problem)
    again = prompts.load("shared/reask").render(
        problem=problem, form=Plain(form.instruction or "Write plain text.")
    )
    # a model that is shown how it rambled rambles on
    quoted = reply.text[: CUT_QUOTED if reply.finish == "length" else QUOTED]
    said = say("assistant", quoted or "(empty)")
    try:
        reply = chat.complete([*messages, said, say("user", *again.user)], options)
        return form.read(reply)
    except (Unreadable, ModelError) as error:
        # a prompt that just fitted may be too long with the question why
        if isinstance(error, ModelError) and error.problem != "context":
            raise
        if default is REQUIRED:
            raise ModelError(
                chat.card.name,
                "unreadable",
                f"the reply to {options.prompt} cannot be used: {problem}",
            ) from error
        events.note(
            "default_taken",
            prompt=options.prompt,
            model=chat.card.name,
            why=str(error),
            default=plain_data(default),
        )
        return default


def plain_data(value: Any) -> Any:
    """A default as the trace shows it."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def with_options(chat: Chat, **changes: Any) -> Chat:
    """The same model with other standing options: ``with_options(chat, temperature=0.7)``."""
    return Carded(chat, replace(chat.card, options=replace(chat.card.options, **changes)))
