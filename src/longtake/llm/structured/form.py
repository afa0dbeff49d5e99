"""The form of a reply: how it is asked for, and how what comes back is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from longtake import prompts
from longtake.llm.chat import Reply
from longtake.llm.structured.cleanup import cut_loop
from longtake.llm.structured.reader import (
    UnreadableReply,
    from_fields,
    parse_reply,
    read_known_fields,
)
from longtake.llm.structured.schema import (
    decisive_fields,
    field_in_words,
    in_words,
    letter_fields,
    line_in_words,
    schema_for,
    single_field_type,
)
from longtake.prompts import Plain, phrase
from longtake.tracing import events
from longtake.types import Question


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

    def known(self, reply: Reply) -> dict[str, Any]:
        """The fields of an unreadable reply that can be read."""
        return (
            {}
            if self.schema is None
            else read_known_fields(text_before_loop(reply), self.kind, self.question)
        )

    def lacking(self, known: Mapping[str, Any]) -> Sequence[str]:
        """The decisive fields that are not known; none where they cannot be asked for singly."""
        if self.schema is None:
            return ()
        names = [name for name in decisive_fields(self.kind, self.question) if name not in known]
        askable = all(self._request(name) is not None for name in names)
        # a type that lacks more fields is not worth a call for each
        return names if askable and len(names) <= 4 else ()

    def single(self, name: str) -> tuple[str, ReplyForm]:
        """The words that ask for one field alone, and the form of the reply to them."""
        whole: type[BaseModel] = self.kind
        kind = single_field_type(whole, name)
        form = ReplyForm(kind, self.question, schema_for(kind, self.question))
        return self._request(name) or "", form

    def assemble(self, members: Mapping[str, Any]) -> Any:
        """The reply from its fields, or :class:`UnreadableReply`."""
        return from_fields(members, self.kind, self.question)

    def _request(self, name: str) -> str | None:
        """How one field is asked for; ``None`` where it is too intricate for that."""
        assert self.schema is not None
        if name in letter_fields(self.kind):
            return prompts.load("shared/one_letter").render().user[0]
        # alone, a list needs no JSON: lines are read as well
        line = line_in_words(self.schema, name)
        if line is not None:
            listed = prompts.load("shared/one_list").render(name=Plain(name), line=Plain(line))
            return listed.user[0]
        words = field_in_words(self.schema, name)
        if words is None:
            return None
        return prompts.load("shared/one_field").render(name=Plain(name), kind=Plain(words)).user[0]


def text_before_loop(reply: Reply) -> str:
    """The text of a reply, up to the first round of a loop that it ends in."""
    cut = cut_loop(reply.text)
    return reply.text if cut is None else cut


def is_cut(reply: Reply) -> bool:
    """Whether a reply lost its end, to its limit of tokens or in a loop."""
    return reply.finish == "length" or text_before_loop(reply) != reply.text
