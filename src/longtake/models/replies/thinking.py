"""A reply's thinking, separated from its answer."""

from __future__ import annotations

import re

_OPEN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking and the answer in a reply.

    A block that was never closed is all thinking: the answer never came. A closing tag without an
    opening one ends thinking that the chat template began.
    """
    thoughts: list[str] = []
    opening, closing = _OPEN.search(text), _CLOSE.search(text)
    if closing and (opening is None or closing.start() < opening.start()):
        thoughts.append(text[: closing.start()])
        text = text[closing.end() :]
    answer: list[str] = []
    while opening := _OPEN.search(text):
        answer.append(text[: opening.start()])
        closing = _CLOSE.search(text, opening.end())
        thoughts.append(text[opening.end() : closing.start() if closing else len(text)])
        text = text[closing.end() :] if closing else ""
    answer.append(text)
    return "\n".join(thought.strip() for thought in thoughts), "".join(answer).strip()
