"""How each typed question to a model was read: at once, asked again, or not."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from longtake.errors import ModelError
from longtake.llm.chat import Chat, Message, Options, Reply
from longtake.llm.middleware import Middleware
from longtake.llm.structured.ask import TypedRequest
from longtake.methods.symphony import perception
from longtake.types import Usage

RUNGS = ("first", "again", "unread")


@dataclass
class Step:
    """What came of one step's questions."""

    rungs: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    @property
    def asked(self) -> int:
        """Questions that were asked."""
        return self.rungs.total()

    @property
    def readable(self) -> float:
        """Share that was read on some rung."""
        return 1 - self.rungs["unread"] / self.asked

    def share(self, rung: str) -> float:
        """Share that was read on this rung."""
        return self.rungs[rung] / self.asked


class Ladder:
    """Steps by the name of their prompt; shared by threads."""

    def __init__(self) -> None:
        self.steps: dict[str, Step] = {}
        self.unread: list[tuple[str, str]] = []
        """The prompts and last replies that could not be read."""
        self._lock = threading.Lock()

    def count(self, prompt: str, rung: str, replies: Sequence[Reply]) -> None:
        """Count one question."""
        with self._lock:
            step = self.steps.setdefault(prompt, Step())
            step.rungs[rung] += 1
            for reply in replies:
                step.usage += reply.usage
            if rung == "unread" and replies:
                self.unread.append((prompt, replies[-1].text))


class _Counted(Middleware):
    """Keeps the requests and replies of one question."""

    def __init__(self, inner: Chat) -> None:
        super().__init__(inner)
        self.replies: list[Reply] = []

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        reply = self.inner.complete(messages, options)
        self.replies.append(reply)
        return reply


@contextmanager
def counting() -> Iterator[Ladder]:
    """Count every typed question that is asked in the block, in all threads."""
    ladder = Ladder()
    value_of, use_tools = TypedRequest.value, perception.use_tools
    here = threading.local()

    def counted(request: TypedRequest, default: Any) -> Any:
        inner, options = _Counted(request.chat), request.options
        here.counted = options.prompt
        try:
            value = value_of(replace(request, chat=inner), default)
        except ModelError as error:
            # an unreachable model or a prompt that does not fit says nothing about replies
            if error.problem == "unreadable":
                ladder.count(options.prompt, "unread", inner.replies)
            raise
        rung = "unread" if value is default else RUNGS[len(inner.replies) - 1]
        ladder.count(options.prompt, rung, inner.replies)
        return value

    def tooled(chat: Chat, prompt: str, *rest: Any, **more: Any) -> Any:
        here.counted = ""
        value = use_tools(chat, prompt, *rest, **more)
        # unless it was asked for an answer last, it gave a readable one of its own accord; the
        # tools themselves ask too, under other names
        if here.counted != prompt:
            ladder.count(prompt, "first", ())
        return value

    TypedRequest.value = counted  # type: ignore[method-assign]
    perception.use_tools = tooled
    try:
        yield ladder
    finally:
        TypedRequest.value = value_of  # type: ignore[method-assign]
        perception.use_tools = use_tools
