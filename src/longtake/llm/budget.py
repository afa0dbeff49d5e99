"""The budget of a question: reserved before a call, counted after it, on a clock tests control."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from longtake._util.cancellation import check_stop, stopping
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent
from longtake.llm.chat import Card, Message, Options, at_most, estimate_messages, images
from longtake.types import Answer, Usage


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class RealClock:
    """The machine's clock; a sleep ends early if the surrounding work does."""

    def now(self) -> float:
        """Seconds on a clock that never goes backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait, or raise :class:`~longtake._util.cancellation.Cancelled`."""
        stop = stopping.get()
        if stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)


REAL = RealClock()


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is reserved for one call in progress."""

    frames: int
    estimated: int
    """Estimated tokens of the prompt; 0 if no limit needs them."""
    tokens: int
    cost: float


class Ledger:
    """What a question may use, has used and has reserved; shared by the threads of a run."""

    def __init__(self, limits: BudgetSettings | None = None, *, clock: Clock = REAL) -> None:
        self.limits = limits or BudgetSettings()
        self.clock = clock
        self.spent = Usage()
        self.best: Answer | None = None
        """The best answer so far, returned if the budget ends the run."""
        self.complete = False
        """Whether the run could end with it."""
        self._began = clock.now()
        self._reserved: list[Reservation] = []
        self._unexpected = 0
        self._changed = threading.Condition()

    def elapsed(self) -> float:
        """Seconds since the question was asked."""
        return self.clock.now() - self._began

    def remaining_seconds(self) -> float | None:
        """Seconds left, ``None`` without a limit; raises :class:`BudgetSpent` if none are left."""
        limit = self.limits.seconds
        if limit is None:
            return None
        left = limit - self.elapsed()
        if left <= 0:
            raise self.out_of_time()
        return left

    def out_of_time(self) -> BudgetSpent:
        """The error for a question whose time is up."""
        return self._over("seconds", f"{self.elapsed():.1f} of {self.limits.seconds or 0:g}")

    def reserve(
        self,
        card: Card,
        messages: Sequence[Message],
        options: Options,
        count: Callable[[str], int | None] = lambda _: None,
    ) -> tuple[Reservation, Options]:
        """Reserve what a call may need, and limit its reply to what is left.

        ``count`` is the model's own tokenizer, if it offers one. Waits while calls in progress hold
        the remainder, because they may use less than they reserved.
        """
        frames = len(images(messages))
        # estimating encodes nothing, but it is not free, and only these limits need it
        is_counted = self.limits.tokens is not None or self.limits.cost is not None
        estimated = self._prompt_tokens(card, messages, options, count) if is_counted else 0
        prompt = estimated + self._unexpected
        with self._changed:
            while True:
                check_stop()
                left = self.remaining_seconds()
                self._check_counts(frames)
                room = self._room(card, prompt)
                wanted = options.max_tokens if room is None else min(room, options.max_tokens)
                # nobody else holds anything, so waiting cannot make more room
                if not self._reserved or wanted == options.max_tokens:
                    break
                # not forever: the time limit must be noticed while waiting
                self._changed.wait(0.1)
            # a shorter reply could say nothing
            if room is not None and wanted < min(16, options.max_tokens):
                raise self._short()
            cost = card.price.of(prompt, 0, wanted) if card.price else 0.0
            made = Reservation(frames, estimated, prompt + wanted, cost)
            self._reserved.append(made)
        # the stricter of the question's time and the call's own
        deadlines = [limit for limit in (left, options.deadline) if limit is not None]
        return made, replace(options, max_tokens=wanted, deadline=min(deadlines, default=None))

    def _prompt_tokens(
        self,
        card: Card,
        messages: Sequence[Message],
        options: Options,
        count: Callable[[str], int | None],
    ) -> int:
        """Tokens of a prompt: estimated far from a limit, close to it counted or a safe bound."""
        most = estimate_messages(messages, options.tools, count=at_most)
        with self._changed:
            room = self._room(card, most + self._unexpected)
        if room is None or room >= options.max_tokens:
            return estimate_messages(messages, options.tools)

        def exact(text: str) -> int:
            tokens = count(text)
            return at_most(text) if tokens is None else tokens

        return estimate_messages(messages, options.tools, count=exact)

    def book(self, made: Reservation, used: Usage) -> None:
        """Release the reservation and count what was used."""
        with self._changed:
            self._reserved.remove(made)
            self.spent = self.spent + used
            # prompts that were longer than estimated: the next ones may be too
            if made.estimated:
                self._unexpected = max(self._unexpected, used.tokens_in - made.estimated)
            # a call that waits may fit now
            self._changed.notify_all()

    def again(self, used: Usage, why: str) -> None:
        """Count a try that failed; raises :class:`BudgetSpent` if there is none left."""
        # one line of the reason is enough
        why = why[:120]
        with self._changed:
            self.spent = self.spent + used
            limits, spent = self.limits, self.spent
            # what the call in progress holds is the next try
            calls = spent.calls + len(self._reserved)
            failed = f"the last failed: {why}"
            if limits.calls is not None and calls > limits.calls:
                raise self._over("calls", f"{spent.calls} of {limits.calls}; {failed}")
            tokens = self._tokens_spent
            held = sum(each.tokens for each in self._reserved)
            if limits.tokens is not None and tokens + held > limits.tokens:
                raise self._over("tokens", f"{tokens} of {limits.tokens}; {failed}")
            reserved = sum(each.cost for each in self._reserved)
            if limits.cost is not None and (spent.cost or 0.0) + reserved > limits.cost:
                raise self._short()

    @property
    def _tokens_spent(self) -> int:
        return self.spent.tokens_in + self.spent.tokens_out

    def _check_counts(self, frames: int) -> None:
        """Calls and frames are known exactly before a call, so waiting would gain nothing."""
        limits = self.limits
        calls = self.spent.calls + len(self._reserved)
        if limits.calls is not None and calls + 1 > limits.calls:
            raise self._over("calls", f"{calls} of {limits.calls}")
        seen = self.spent.frames + sum(each.frames for each in self._reserved)
        if limits.frames is not None and seen + frames > limits.frames:
            used = f"{seen} of {limits.frames}, and the next call shows {frames}"
            raise self._over("frames", used)

    def _room(self, card: Card, prompt: int) -> int | None:
        """Tokens that the reply may have; ``None`` without a limit."""
        rooms: list[int] = []
        if self.limits.tokens is not None:
            held = sum(each.tokens for each in self._reserved)
            rooms.append(self.limits.tokens - self._tokens_spent - held - prompt)
        if self.limits.cost is not None and card.price is not None:
            reserved = sum(each.cost for each in self._reserved)
            left = self.limits.cost - (self.spent.cost or 0.0) - reserved
            # the prompt is paid in full, as if nothing of it were cached
            left -= card.price.of(prompt, 0, 0)
            # not even the prompt fits
            if left < 0:
                rooms.append(-1)
            elif card.price.reply > 0:
                rooms.append(int(left / card.price.reply * 1_000_000))
        return min(rooms, default=None)

    def _short(self) -> BudgetSpent:
        limits = self.limits
        states = {}
        if limits.tokens is not None:
            states["tokens"] = f"{self._tokens_spent} of {limits.tokens}"
        if limits.cost is not None:
            states["cost"] = f"${self.spent.cost or 0:.4f} of ${limits.cost:g}"
        return self._over(" or ".join(states), ", ".join(states.values()))

    def _over(self, limit: str, spent: str) -> BudgetSpent:
        return BudgetSpent(limit, spent, self.best, complete=self.complete)


class Tries:
    """The tries of one call. Each is counted, and another one must fit into the budget."""

    def __init__(self, ledger: Ledger, cost: float | None) -> None:
        self._ledger = ledger
        self._cost = cost
        self.failed = Usage()
        """What the failed tries used."""
        self.refused = False
        """Whether the next try was not made, because it did not fit."""

    def again(self, why: str, used: Usage | None) -> None:
        """Count a try that failed, before the next one is made."""
        # endpoints do not bill calls that they refuse; a reply that cannot be read they do
        this = Usage(calls=1, cost=self._cost)
        if used is not None:
            # the pictures of a call count once, however often they are sent
            this = replace(used, frames=0)
        self.failed = self.failed + this
        try:
            self._ledger.again(this, why)
        except BudgetSpent:
            self.refused = True
            raise


_tries: ContextVar[Tries | None] = ContextVar("longtake_tries", default=None)


@contextmanager
def counting(tries: Tries) -> Iterator[None]:
    """Inside the block, :func:`another_try` counts with these."""
    # a context variable: layers below cannot be handed the tries of this call
    token = _tries.set(tries)
    try:
        yield
    finally:
        _tries.reset(token)


def another_try(why: str, used: Usage | None = None) -> None:
    """Call this before a call is made again; raises :class:`BudgetSpent` if it does not fit."""
    tries = _tries.get()
    if tries is not None:
        tries.again(why, used)
