"""Prompts that fit the model's context, checked before they are sent.

The longest piece of quoted material loses lines from its middle until prompt and reply have room:
notes are in time order, and most questions are about a film's beginning or end. Pictures get what
the text leaves, at least half of the context; of more, an even selection is shown. An event records
what was left out. :class:`LinesByDistance` chooses the lines to drop by distance instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longtake.algorithms import sampling
from longtake.errors import ModelError
from longtake.llm.chat import (
    LABEL,
    PER_MESSAGE,
    Chat,
    Image,
    Message,
    Part,
    Text,
    count,
    estimate_image,
    estimate_messages,
    images,
)
from longtake.prompts import Plain, phrase, words
from longtake.tracing import events
from longtake.types import Line, Question, Segment

Build = Callable[[Mapping[str, Any]], list[Message]]


class LinesByDistance(list[Line]):
    """Lines ranked by distance to the given moments; the farthest are dropped first."""

    def __init__(self, lines: Iterable[Line], times: Sequence[float]) -> None:
        super().__init__(lines)
        self.times = tuple(times)

    def nearest(self, keep: int) -> LinesByDistance:
        """The ``keep`` lines nearest to a moment, in time order."""
        return LinesByDistance(
            (self[number] for number in sorted(self._ranked()[:keep])), self.times
        )

    def within(self, limit: int) -> LinesByDistance:
        """The nearest lines, up to ``limit`` words in total."""
        total = 0
        for keep, number in enumerate(self._ranked()):
            total += len(self[number].text.split())
            if total > limit:
                return self.nearest(keep)
        return self

    def _ranked(self) -> list[int]:
        """The numbers of the lines, the nearest first."""
        distances = []
        for line in self:
            start, end = line.segment.start, line.segment.end
            gaps = [max(0.0, start - time, time - end) for time in self.times]
            distances.append(min(gaps, default=0.0))
        return sorted(range(len(self)), key=distances.__getitem__)


def fit_to_context(
    chat: Chat, prompt: str, build: Build, slots: Mapping[str, Any], reply_tokens: int
) -> list[Message]:
    """The messages that ``build`` makes from the slots, with material trimmed until they fit."""
    messages = build(slots)
    context = chat.card.context
    if context is None:
        return messages
    # chat templates add a few tokens of their own
    limit = context - reply_tokens - 32
    # the estimate errs on the high side; only a prompt that seems too long is counted exactly
    if estimate_messages(messages) <= limit or measure(chat, messages) <= limit:
        return messages
    build = _with_pictures_that_fit(chat, messages, build, limit)
    messages = build(slots)
    if measure(chat, messages) <= limit:
        return messages
    trimming = _Trimming(slots)
    while (name := trimming.longest()) is not None:
        trimming.shorten(name, lambda values: measure(chat, build(values)) <= limit)
        messages = build(trimming.values())
        if measure(chat, messages) <= limit:
            left_out = trimming.left_out()
            events.note(
                "notes_trimmed", prompt=prompt, model=chat.card.name, lines_left_out=left_out
            )
            return messages
    raise ModelError(
        chat.card.name,
        "context",
        f"{prompt} needs about {measure(chat, messages)} tokens and {reply_tokens} for the reply; "
        f"the model holds {context}",
    )


def _with_pictures_that_fit(
    chat: Chat, messages: Sequence[Message], build: Build, limit: int
) -> Build:
    """The same, with no more pictures than there is room for."""
    number = len(images(messages))
    text = measure(chat, thin(messages, 0))
    pictures = measure(chat, messages) - text  # with their labels
    room = max(limit - text, limit // 2)
    if pictures <= room:
        return build
    shown = room * number // pictures
    if not shown:
        detail = f"one picture needs about {pictures // number} tokens; the model holds "
        detail += f"{chat.card.context}: set max_pixels or context in its entry"
        raise ModelError(chat.card.name, "context", detail)
    events.note("pictures_left_out", model=chat.card.name, shown=shown, wanted=number)
    return lambda values: thin(build(values), shown)


def thin(messages: Sequence[Message], limit: int) -> list[Message]:
    """The messages with at most ``limit`` pictures, evenly chosen; the others lose their labels.

    A label is the text right before a picture, such as ``[00:01:10]``.
    """
    shown = images(messages)
    return _keeping(messages, [shown[index] for index in sampling.uniform(len(shown), limit)])


def without_clips(messages: Sequence[Message]) -> list[Message]:
    """The messages with the chosen frames only, for a model that takes no video."""
    return _keeping(messages, [image for image in images(messages) if not image.between])


def _keeping(messages: Sequence[Message], pictures: Sequence[Image]) -> list[Message]:
    kept = {id(image) for image in pictures}
    thinned = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, Text) or id(part) in kept:
                parts.append(part)
            elif parts and isinstance(parts[-1], Text) and LABEL.fullmatch(parts[-1].text):
                parts.pop()
        thinned.append(replace(message, parts=tuple(parts)))
    return thinned


def measure(chat: Chat, messages: Sequence[Message]) -> int:
    """Tokens of a conversation, counted by the endpoint's tokenizer where there is one."""
    pictures = sum(map(estimate_image, images(messages)))
    return pictures + sum(PER_MESSAGE + count(chat, message.text) for message in messages)


def trim(lines: Sequence[str], keep: int) -> list[str]:
    """The first and last lines, ``keep`` in total, and between them a line that counts the rest."""
    if keep >= len(lines):
        return list(lines)
    head = (keep + 1) // 2
    gap = phrase("shared", "lines_left_out", number=len(lines) - keep)
    return [*lines[:head], gap, *lines[len(lines) - (keep - head) :]]


class _Trimming:
    """The slots of a prompt, and how many lines of their material are kept."""

    def __init__(self, slots: Mapping[str, Any]) -> None:
        self._slots = slots
        self._lines: dict[str, list[str]] = {}
        for name, value in slots.items():
            lines = _lines(value)
            if len(lines) > 1:
                self._lines[name] = lines
        self._kept = {name: len(lines) for name, lines in self._lines.items()}

    def longest(self) -> str | None:
        """The slot with the most text among those that can still lose lines."""
        sizes: dict[str, int] = {}
        for name, number in self._kept.items():
            if number > 2:
                sizes[name] = sum(map(len, trim(self._lines[name], number)))
        return max(sizes, key=sizes.__getitem__) if sizes else None

    def shorten(self, name: str, fits: Callable[[Mapping[str, Any]], bool]) -> None:
        """Keep as many lines of a slot as fit, fewer than now; two if no number does."""

        def is_too_long(keep: int) -> bool:
            self._kept[name] = keep
            return not fits(self.values())

        more_than_two = range(3, self._kept[name])
        self._kept[name] = 2 + bisect_left(more_than_two, True, key=is_too_long)

    def values(self) -> dict[str, Any]:
        """The slots with their material trimmed."""
        values = dict(self._slots)
        for name in self.left_out():
            value, keep = values[name], self._kept[name]
            if isinstance(value, LinesByDistance):
                values[name] = value.nearest(keep)
            else:
                values[name] = "\n".join(trim(self._lines[name], keep))
        return values

    def left_out(self) -> dict[str, int]:
        """How many lines each trimmed slot has lost."""
        lost = {name: len(lines) - self._kept[name] for name, lines in self._lines.items()}
        return {name: number for name, number in lost.items() if number}


def _lines(value: Any) -> list[str]:
    """The lines of a slot with material; our own words and the question are never trimmed."""
    if isinstance(value, Plain | Question | Segment | bool | int | float):
        return []
    if isinstance(value, LinesByDistance):
        return [words(line) for line in value]
    if isinstance(value, str | Line | list | tuple | Mapping):
        return words(value).splitlines()
    return []
