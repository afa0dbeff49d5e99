"""Layers around a model, each a model itself, outermost first.

::

    Traced      says what was asked and answered
    Budgeted    sets the most a call can use aside, and refuses what does not fit
    Cached      gives the reply that the same request got before  (cache.py)
    Retrying    tries again what may work the second time
    Limited     holds back calls beyond what the endpoint takes
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import replace

from longtake import events
from longtake.errors import LongtakeError
from longtake.models.budget import Ledger
from longtake.models.chat import (
    Card,
    Chat,
    Message,
    Options,
    Reply,
    Unavailable,
    describe,
    images,
    request_hash,
)
from longtake.models.clock import REAL, Clock, check_stop
from longtake.models.tokens import Counts
from longtake.types import Usage


class Layer:
    """A model that passes everything on to another; layers change one thing about that."""

    def __init__(self, inner: Chat) -> None:
        self.inner = inner

    @property
    def card(self) -> Card:
        """The card of the model inside."""
        return self.inner.card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask the model inside."""
        return self.inner.complete(messages, options)

    def count(self, text: str) -> int | None:
        """The inner endpoint's own count of tokens, where it offers one."""
        return self.inner.count(text) if isinstance(self.inner, Counts) else None


class Carded(Layer):
    """The same model under another card: other standing options, another name."""

    def __init__(self, inner: Chat, card: Card) -> None:
        super().__init__(inner)
        self._card = card

    @property
    def card(self) -> Card:
        """The card that was given."""
        return self._card


class Traced(Layer):
    """Emits one event per call, with the pictures by digest."""

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask, and tell the stream what was asked and answered."""
        for image in images(messages):
            events.picture(image.digest, lambda image=image: image.jpeg)  # type: ignore[misc]
        called = events.ChatCalled(
            model=self.card.name,
            prompt=options.prompt,
            request=request_hash(self.card, messages, options),
            messages=tuple(describe(message) for message in messages),
        )
        try:
            reply = self.inner.complete(messages, options)
        except LongtakeError as error:
            events.emit(replace(called, error=str(error)))
            raise
        tools = tuple(
            {"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls
        )
        events.emit(
            replace(
                called,
                reply=reply.text,
                thinking=reply.thinking,
                tools=tools,
                finish=reply.finish,
                usage=reply.usage,
                cached=reply.cached,
            )
        )
        return reply


class Budgeted(Layer):
    """Counts every call against the question's ledger and makes none that does not fit."""

    def __init__(self, inner: Chat, ledger: Ledger) -> None:
        super().__init__(inner)
        self.ledger = ledger

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask within what is left."""
        hold, options = self.ledger.hold(self.card, messages, options)
        began = self.ledger.clock.now()
        # endpoints do not bill what they refuse; that it was tried still counts as a call
        failed = Usage(calls=1, frames=hold.frames, cost=None if self.card.price is None else 0.0)
        used = failed
        try:
            reply = self.inner.complete(messages, options)
            used = reply.usage
            return reply
        except Unavailable as error:
            if error.out_of_time and self.ledger.limits.seconds is not None:
                raise self.ledger.out_of_time() from error
            raise
        finally:
            if used is failed:
                used = replace(failed, seconds=self.ledger.clock.now() - began)
            self.ledger.book(hold, used)


class Retrying(Layer):
    """Tries again, with growing pauses, what failed for a reason that may pass."""

    def __init__(
        self,
        inner: Chat,
        *,
        tries: int = 5,
        base: float = 1.0,
        cap: float = 20.0,
        patience: float = 120.0,
        clock: Clock = REAL,
        jitter: random.Random | None = None,
    ) -> None:
        super().__init__(inner)
        self._tries, self._base, self._cap, self._patience = tries, base, cap, patience
        self._clock = clock
        self._jitter = jitter or random.Random()

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask until there is a reply, the tries are used up, or the deadline is near."""
        began = self._clock.now()
        for attempt in range(1, self._tries + 1):
            check_stop()
            left = (
                None if options.deadline is None else options.deadline - (self._clock.now() - began)
            )
            try:
                return self.inner.complete(messages, replace(options, deadline=left))
            except Unavailable as error:
                pause = self._pause(attempt, error.retry_after)
                left = (
                    None
                    if options.deadline is None
                    else options.deadline - (self._clock.now() - began)
                )
                if (
                    attempt == self._tries
                    or pause > self._patience
                    or (left is not None and pause >= left)
                ):
                    raise self._last(error, attempt, pause, left) from error
                events.note(
                    "retry",
                    model=self.card.name,
                    attempt=attempt,
                    wait=round(pause, 2),
                    why=error.detail,
                )
                self._clock.sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def _pause(self, attempt: int, asked: float | None) -> float:
        """Seconds before the next try: doubling, half of it by chance, never sooner than the server asked."""
        grown = min(self._cap, self._base * 2.0 ** (attempt - 1))
        return max(asked or 0.0, grown * (0.5 + 0.5 * self._jitter.random()))

    def _last(
        self, error: Unavailable, attempt: int, pause: float, left: float | None
    ) -> Unavailable:
        detail = f"{error.detail} (tried {attempt} of {self._tries} times"
        if attempt < self._tries:
            detail += f"; the next try would wait {pause:.0f} s"
        return Unavailable(
            error.model,
            detail + ")",
            status=error.status,
            retry_after=error.retry_after,
            out_of_time=error.out_of_time or (left is not None and pause >= left),
        )


class Gate:
    """How many calls an endpoint takes at once: halved when it is overloaded, slowly raised again."""

    def __init__(self, limit: int, *, raise_after: int = 16) -> None:
        self.most = max(1, limit)
        self.limit = self.most
        self.inside = 0
        self._raise_after = raise_after
        self._successes = 0
        self._overloads = 0
        self._free = threading.Condition()

    def enter(self, timeout: float | None) -> int | None:
        """Wait for a place; gives the number of overloads so far, or ``None`` when none came free in time."""
        with self._free:
            if not self._free.wait_for(lambda: self.inside < self.limit, timeout):
                return None
            self.inside += 1
            return self._overloads

    def leave(self, entered: int, *, overloaded: bool, worked: bool) -> None:
        """Free the place and learn from how the call went."""
        with self._free:
            self.inside -= 1
            # calls that were under way together report one overload together: it halves the limit once
            if overloaded and entered == self._overloads:
                self.limit = max(1, self.limit // 2)
                self._overloads += 1
                self._successes = 0
            elif worked and self.limit < self.most:
                self._successes += 1
                if self._successes >= self._raise_after:
                    self.limit, self._successes = self.limit + 1, 0
            self._free.notify_all()


class Limited(Layer):
    """Lets through as many calls at once as the endpoint's gate allows."""

    def __init__(self, inner: Chat, gate: Gate) -> None:
        super().__init__(inner)
        self.gate = gate

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask when there is a place."""
        entered = self.gate.enter(options.deadline)
        if entered is None:
            raise Unavailable(
                self.card.name, "the endpoint had no free place in time", out_of_time=True
            )
        overloaded = worked = False
        try:
            check_stop()
            reply = self.inner.complete(messages, options)
            worked = True
            return reply
        except Unavailable as error:
            overloaded = error.status == 429
            raise
        finally:
            self.gate.leave(entered, overloaded=overloaded, worked=worked)
