"""Prompts that fit: what is too long for a model's context is seen before it is sent.

The longest piece of quoted material loses lines from its middle, since notes are in time order and a film's
beginning and end are asked about most, until the prompt and the reply have room. An event says what was
left out. :class:`Around` is material that knows better what it can do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from longtake import events
from longtake.errors import ModelError
from longtake.models.chat import Chat, Image, Message
from longtake.models.tokens import PER_MESSAGE, count, estimate_image, estimate_messages
from longtake.prompts import Plain, phrase, words
from longtake.types import Line, Question, Segment

ROOM = 32
"""Tokens kept free beyond what was counted: chat templates add some of their own."""

Build = Callable[[Mapping[str, Any]], list[Message]]


class Around(list[Line]):
    """Lines of which those nearest to some moments matter most: when there is no room, the others go first."""

    def __init__(self, lines: Iterable[Line], times: Sequence[float]) -> None:
        super().__init__(lines)
        self.times = tuple(times)

    def nearest(self, keep: int) -> Around:
        """The ``keep`` lines closest to a moment, in time order."""
        return Around((self[number] for number in sorted(self._ranked()[:keep])), self.times)

    def within(self, most: int) -> Around:
        """As many of the nearest lines as hold at most ``most`` words."""
        total = 0
        for keep, number in enumerate(self._ranked()):
            total += len(self[number].text.split())
            if total > most:
                return self.nearest(keep)
        return self

    def _ranked(self) -> list[int]:
        return sorted(range(len(self)), key=lambda number: (self._distance(self[number]), number))

    def _distance(self, line: Line) -> float:
        start, end = line.segment.start, line.segment.end
        return min((max(0.0, start - time, time - end) for time in self.times), default=0.0)


def fit(
    chat: Chat, prompt: str, build: Build, slots: Mapping[str, Any], reply_tokens: int
) -> list[Message]:
    """The messages that ``build`` makes of the slots, with material trimmed until they fit."""
    messages = build(slots)
    context = chat.card.context
    if context is None:
        return messages
    most = context - reply_tokens - ROOM
    # the estimate is too high on purpose: only a prompt that seems too long is counted exactly
    if estimate_messages(messages) <= most or measure(chat, messages) <= most:
        return messages
    pieces = {name: lines for name, value in slots.items() if len(lines := _lines(value)) > 1}
    kept = {name: len(lines) for name, lines in pieces.items()}
    while any(number > 2 for number in kept.values()):
        name = max(
            kept,
            key=lambda slot: (
                sum(map(len, trim(pieces[slot], kept[slot]))) if kept[slot] > 2 else -1
            ),
        )
        kept[name] = _most_that_fits(
            kept[name] - 1,
            lambda number, name=name: (  # type: ignore[misc]
                measure(chat, build(_with(slots, pieces, {**kept, name: number}))) <= most
            ),
        )
        trimmed = _with(slots, pieces, kept)
        messages = build(trimmed)
        if measure(chat, messages) <= most:
            left_out = {
                slot: len(pieces[slot]) - number
                for slot, number in kept.items()
                if number < len(pieces[slot])
            }
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


def measure(chat: Chat, messages: Sequence[Message]) -> int:
    """Tokens of a conversation, its words counted by the endpoint's tokenizer where it offers one."""
    pictures = sum(estimate_image(p) for m in messages for p in m.parts if isinstance(p, Image))
    return pictures + sum(PER_MESSAGE + count(chat, message.text) for message in messages)


def trim(lines: Sequence[str], keep: int) -> list[str]:
    """The first and last of the lines, ``keep`` in all, with a line between that says how many are gone."""
    if keep >= len(lines):
        return list(lines)
    head = (keep + 1) // 2
    gap = phrase("shared", "lines_left_out", number=len(lines) - keep)
    return [*lines[:head], gap, *lines[len(lines) - (keep - head) :]]


def _most_that_fits(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number of lines, from two to ``most``, that fits; two where none does."""
    low, high = 2, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _with(
    slots: Mapping[str, Any], pieces: Mapping[str, Sequence[str]], kept: Mapping[str, int]
) -> dict[str, Any]:
    short = {name: number for name, number in kept.items() if number < len(pieces[name])}
    return {
        **slots,
        **{name: _shortened(slots[name], pieces[name], number) for name, number in short.items()},
    }


def _shortened(value: Any, lines: Sequence[str], keep: int) -> Any:
    return value.nearest(keep) if isinstance(value, Around) else "\n".join(trim(lines, keep))


def _lines(value: Any) -> list[str]:
    """The lines of a slot that holds material; our own words and the question are never trimmed."""
    if isinstance(value, Plain | Question | Segment | bool | int | float):
        return []
    if isinstance(value, Around):
        return [words(line) for line in value]
    if isinstance(value, str | Line | list | tuple | Mapping):
        return words(value).splitlines()
    return []
