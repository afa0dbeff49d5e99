"""Asking a model for a typed reply.

::

    guess = ask(run["llm"], "videoagent/predict", Guess, question=question, seen=story)

Keyword arguments other than those below fill the prompt's slots. A reply that cannot be read is
asked for once more, with the reason; after that the step's documented default stands. An event
notes each of these. Without a default an error is raised. Nothing is ever made up in place of a
reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from longtake import prompts
from longtake._util.timecode import clock
from longtake.errors import ModelError
from longtake.llm.chat import Chat, Image, Message, Options, Reply, images, say
from longtake.llm.media import PER_SHEET, scaled
from longtake.llm.middleware import Carded
from longtake.llm.structured.fit import fit_to_context
from longtake.llm.structured.reader import UnreadableReply, clean_text, cut_loop, parse_reply
from longtake.llm.structured.schema import in_words, schema_for
from longtake.prompts import Plain, phrase
from longtake.tracing import events
from longtake.types import Frame, Question, Segment

R = TypeVar("R", bound=BaseModel | str)
T = TypeVar("T")
REQUIRED: Any = object()
"""No default: an unreadable reply raises an error."""
ALL = "*"
"""The whole reply is a draft of the answer."""


def ask(
    chat: Chat,
    prompt: str,
    reply: type[R] = str,  # type: ignore[assignment]
    *,
    frames: Sequence[Frame] = (),
    default: T = REQUIRED,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    draft: str = "",
    **slots: Any,
) -> R | T:
    """The model's reply as ``reply``, a pydantic model or ``str``.

    ``draft`` names the field that people may read while it is written; :data:`ALL`: the reply.

    A :class:`~longtake.types.Question` among the slots decides which letters a
    :data:`~longtake.llm.structured.schema.Letter` may be.
    """
    # the question among the slots decides which letters are valid
    form = ReplyForm.of(reply, slots)
    is_prose = draft == ALL or draft in (form.schema or {}).get("properties", {})
    defaults = chat.card.options
    options = Options(
        temperature=defaults.temperature if temperature is None else temperature,
        max_tokens=defaults.max_tokens if max_tokens is None else max_tokens,
        schema=form.schema,
        seed=defaults.seed if seed is None else seed,
        prompt=prompt,
        on_text=AnswerDraft(draft) if is_prose and events.shows_drafts() else None,
    )
    messages = compose(chat, prompt, slots, frames, form.instruction, options.max_tokens)
    value: R | T = TypedRequest(chat, messages, options, form).value(default)
    return value


class AnswerDraft:
    """Emits what a model writes of an answer, never the form around it."""

    def __init__(self, field: str) -> None:
        # an escape that is not complete is left out
        written = r'((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt])*)'
        pattern = rf'"{re.escape(field)}"\s*:\s*"{written}'
        self._field = None if field == ALL else re.compile(pattern)
        self._text = ""

    def __call__(self, text: str) -> None:
        """Emit what is new in the text of a reply so far."""
        if self._field is not None:
            found = self._field.search(text)
            text = json.loads(f'"{found[1]}"', strict=False) if found else ""
        text = clean_text(text)
        if text != self._text:
            anew = not (self._text and text.startswith(self._text))
            events.emit(events.Drafted(text=text if anew else text[len(self._text) :], anew=anew))
            self._text = text


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
    # frames of a sheet share its pixels, and what is known of one picture's tokens is no guide
    sheets = card.show == "sheets" and len(frames) > 1
    size = card.max_pixels // PER_SHEET if sheets else card.max_pixels
    pictures = [Image(frame, size, None if sheets else card.picture_tokens) for frame in frames]
    if card.show == "video" and card.clip_frames and len(frames) > 1:
        pictures = _with_frames_between(pictures, card.clip_frames)
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
        # pictures stand between the material and the last words, which ask
        *before, last = rendered.user
        parts = [*before, *shown, f"{last}\n\n{instruction}".strip()]
        system = f"{rule}\n\n{rendered.system}".strip()
        return [say("system", system), say("user", *(part for part in parts if part))]

    messages = fit_to_context(chat, prompt, build, slots, reply_tokens)
    if pictures:
        shown = images(messages)  # fewer, where not all of them fit
        seen = tuple(events.Seen(picture.time, picture.digest) for picture in shown)
        events.emit(events.FramesSeen(purpose=prompt, frames=seen))
    return messages


def _with_frames_between(chosen: list[Image], max_frames: int) -> list[Image]:
    """The chosen frames and all that the film has between them, if these are not too many."""
    frame, times = chosen[0].frame, [image.time for image in chosen]
    if frame.film is None:
        return chosen
    height, width = frame.pixels.shape[:2]
    # no wider than they are sent
    width, _ = scaled(width, height, chosen[0].max_pixels)
    pictures = {image.time: image for image in chosen}
    # a damaged frame repeats the one before it, with its time
    for each in frame.film.between(Segment(min(times), max(times)), max_frames, width):
        pictures.setdefault(each.time, replace(chosen[0], frame=each, between=True))
    return [pictures[time] for time in sorted(pictures)]


@dataclass(frozen=True)
class TypedRequest:
    """A typed request to a model, made once more where its reply cannot be read."""

    chat: Chat
    messages: Sequence[Message]
    options: Options
    form: ReplyForm

    def value(self, default: Any) -> Any:
        """What the model replied, or the default."""
        reply = self.chat.complete(self.messages, self.options)
        value, problem = self._read(reply)
        if problem:
            value, problem = self._again(reply, problem)
        return self._default(default, problem) if problem else value

    def _read(self, reply: Reply) -> tuple[Any, str]:
        """The value of a reply, or what is wrong with it."""
        try:
            return self.form.read(reply), ""
        except UnreadableReply as error:
            return None, str(error)

    def _again(self, reply: Reply, problem: str) -> tuple[Any, str]:
        """Put the same request once more with what was wrong, and read the reply to that."""
        prompt, model = self.options.prompt, self.chat.card.name
        events.note("asked_again", prompt=prompt, model=model, why=problem)
        instruction = Plain(self.form.instruction or prompts.phrase("shared", "plain_text"))
        again = prompts.load("shared/reask").render(problem=problem, form=instruction)
        asked = [*self.messages, _quoted(reply), say("user", *again.user)]
        try:
            return self._read(self.chat.complete(asked, self.options))
        except ModelError as error:
            # a prompt that just fitted may be too long with another turn
            if error.problem != "context":
                raise
            return None, problem

    def _default(self, default: Any, problem: str) -> Any:
        prompt, name = self.options.prompt, self.chat.card.name
        if default is REQUIRED:
            detail = f"the reply to {prompt} cannot be used: {problem}"
            raise ModelError(name, "unreadable", detail)
        plain = default.model_dump(mode="json") if isinstance(default, BaseModel) else default
        events.note("default_taken", prompt=prompt, model=name, why=problem, default=plain)
        return default


def _quoted(reply: Reply) -> Message:
    """An unreadable reply as the model's own turn, shortened."""
    # quoting a long cut reply makes the model repeat it
    text = text_before_loop(reply)[: 200 if is_cut(reply) else 2000]
    return say("assistant", text or prompts.phrase("shared", "empty"))


def with_options(chat: Chat, **changes: Any) -> Chat:
    """The same model with other standing options: ``with_options(chat, temperature=0.7)``."""
    return Carded(chat, replace(chat.card, options=replace(chat.card.options, **changes)))


@dataclass(frozen=True)
class ReplyForm:
    """What a reply must look like."""

    kind: type[Any]
    question: Question | None
    schema: Mapping[str, Any] | None

    @classmethod
    def of(cls, kind: type[Any], slots: Mapping[str, Any]) -> ReplyForm:
        """The form of a reply type, given the slots of the prompt."""
        # prompts have one question at most
        question = next((value for value in slots.values() if isinstance(value, Question)), None)
        schema = None if kind is str else schema_for(kind, question)
        return cls(kind, question, schema)

    @property
    def instruction(self) -> str:
        """The words that ask for this form; they close the prompt, also where a schema is sent."""
        if self.schema is None:
            return ""
        return prompts.load("shared/form").render(fields=Plain(in_words(self.schema))).user[0]

    def read(self, reply: Reply) -> Any:
        """The reply in this form, or :class:`UnreadableReply`."""
        text = text_before_loop(reply)
        if text != reply.text:
            events.note("reply_looped", model=reply.model, characters=len(reply.text) - len(text))
        if not text.strip():
            cut_off, empty = phrase("shared", "cut_off"), phrase("shared", "empty_reply")
            raise UnreadableReply(cut_off if reply.finish == "length" else empty)
        if self.schema is None:
            return text.strip()
        cut = is_cut(reply)
        try:
            return parse_reply(text, self.kind, self.question, cut=cut)
        except UnreadableReply as error:
            # what its last words lack would not help the model; that they were too many does
            raise UnreadableReply(phrase("shared", "cut_off") if cut else str(error)) from error


def text_before_loop(reply: Reply) -> str:
    """The text of a reply, up to the first round of a loop that it ends in."""
    cut = cut_loop(reply.text)
    return reply.text if cut is None else cut


def is_cut(reply: Reply) -> bool:
    """Whether a reply lost its end, to its limit of tokens or in a loop."""
    return reply.finish == "length" or text_before_loop(reply) != reply.text
