"""Layers around a model. Each is a model itself; the outermost comes first.

::

    Traced      emits an event for each call
    Budgeted    reserves the maximum a call can use, and refuses calls that do not fit
    Cached      returns the stored reply to the same request
    Retrying    repeats calls that failed for a reason that may pass
    Limited     holds back calls beyond what the endpoint accepts
    Plugin      turns the errors of another package's backend into ours
"""

from __future__ import annotations

import json
import math
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from longtake._util.cancellation import check_stop
from longtake.errors import LongtakeError, ModelError
from longtake.llm.backend import AnyBackend, ModelRequest
from longtake.llm.budget import REAL, Clock, Ledger, Tries, another_try, counting
from longtake.llm.capabilities import Capabilities, capabilities_of, discover_capabilities
from longtake.llm.chat import (
    Card,
    Chat,
    Message,
    Options,
    Reply,
    ToolCall,
    Unavailable,
    counted,
    describe,
    images,
    request_hash,
)
from longtake.tracing import events
from longtake.types import Usage


class Middleware:
    """A model that passes everything on to another; each layer changes one thing about that."""

    def __init__(self, inner: Chat) -> None:
        self.inner = inner

    @property
    def card(self) -> Card:
        """The card of the inner model."""
        return self.inner.card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask the inner model."""
        return self.inner.complete(messages, options)

    def count(self, text: str) -> int | None:
        """The inner model's own token count, if it offers one."""
        return counted(self.inner, text)

    @property
    def capabilities(self) -> Capabilities | None:
        """What was learned about the inner model's endpoint."""
        return capabilities_of(self.inner)

    def discover(self) -> None:
        """Let the inner model ask its endpoint for its context length."""
        discover_capabilities(self.inner)


class Carded(Middleware):
    """The same model under another card: other default options, another name."""

    def __init__(self, inner: Chat, card: Card) -> None:
        super().__init__(inner)
        self._card = card

    @property
    def card(self) -> Card:
        """The given card."""
        return self._card


def with_capabilities(chat: Chat, *, discover: bool = True) -> Chat:
    """The model as its endpoint describes it, under a card that does not change during a run.

    What is learned meanwhile counts from the next run on, so that a recording of this one can be
    repeated.
    """
    if discover:
        discover_capabilities(chat)
    return chat if capabilities_of(chat) is None else Carded(chat, chat.card)


class Traced(Middleware):
    """Emits one event per call, with pictures by digest."""

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask, and emit what was asked and answered."""
        for image in images(messages):
            # the stream encodes it only if a sink wants it
            events.picture(image.digest, partial(getattr, image, "jpeg"))
        called = events.ChatCalled(
            model=self.card.name,
            prompt=options.prompt,
            request=request_hash(self.card, messages, options),
            messages=tuple(describe(message) for message in messages),
        )
        try:
            reply = self.inner.complete(messages, options)
        # failed calls are part of the story of a run
        except LongtakeError as error:
            events.emit(replace(called, error=str(error)))
            raise
        answered = replace(
            called,
            reply=reply.text,
            thinking=reply.thinking,
            tools=tuple(asdict(call) for call in reply.tool_calls),
            usage=reply.usage,
            finish=reply.finish,
            cached=reply.cached,
            odds=reply.odds,
        )
        events.emit(answered)
        return reply


class Budgeted(Middleware):
    """Counts every call against the question's ledger, and makes none that does not fit."""

    def __init__(self, inner: Chat, ledger: Ledger) -> None:
        super().__init__(inner)
        self.ledger = ledger

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask within the remaining budget."""
        reservation, options = self.ledger.reserve(self.card, messages, options, self.count)
        began = self.ledger.clock.now()
        # endpoints do not bill calls that they refuse, but a failed try still counts as a call
        cost = None if self.card.price is None else 0.0
        used = Usage(calls=1, frames=reservation.frames, cost=cost)
        tries = Tries(self.ledger, cost)
        replied = False
        try:
            with counting(tries):
                reply = self.inner.complete(messages, options)
            replied, used = True, reply.usage
            # the tries before it are part of what this reply took
            return replace(reply, usage=reply.usage + tries.failed) if tries.failed.calls else reply
        except Unavailable as error:
            used = error.used or used
            # the question's time limit ended the call, not a slow model
            if error.out_of_time and self.ledger.limits.seconds is not None:
                raise self.ledger.out_of_time() from error
            raise
        finally:
            if tries.refused:
                used = Usage(frames=reservation.frames, cost=cost)
            if not replied:
                used = replace(used, seconds=self.ledger.clock.now() - began)
            self.ledger.book(reservation, used)


LONGEST_PAUSE = 20.0
"""Maximum seconds between two tries, unless the server asks for more."""
PATIENCE = 120.0
"""Seconds of a pause that a server may ask for; a longer one ends the tries."""


class Retrying(Middleware):
    """Repeats calls that failed for a reason that may pass, with growing pauses."""

    def __init__(self, inner: Chat, *, tries: int = 5, clock: Clock = REAL) -> None:
        super().__init__(inner)
        self._tries, self._clock = tries, clock

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask until there is a reply, the tries are used up, or the deadline is near."""
        began = self._clock.now()
        for attempt in range(1, self._tries + 1):
            check_stop()
            left = self._left(began, options.deadline)
            try:
                return self.inner.complete(messages, replace(options, deadline=left))
            except Unavailable as error:
                # doubling, half of it random, never less than requested
                grown = min(LONGEST_PAUSE, 2.0 ** (attempt - 1))
                # jitter spreads the calls that failed together
                pause = max(error.retry_after or 0.0, grown * random.uniform(0.5, 1))
                left = self._left(began, options.deadline)
                too_late = left is not None and pause >= left
                # a pause beyond the patience or the deadline would only delay the failure
                if attempt == self._tries or pause > PATIENCE or too_late:
                    raise self._final(error, attempt, pause, too_late) from error
                events.note(
                    "retry",
                    model=self.card.name,
                    attempt=attempt,
                    wait=round(pause, 2),
                    why=error.detail,
                )
                another_try(error.detail, error.used)
                self._clock.sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def _left(self, began: float, deadline: float | None) -> float | None:
        return None if deadline is None else deadline - (self._clock.now() - began)

    def _final(self, error: Unavailable, attempt: int, pause: float, too_late: bool) -> Unavailable:
        """The error of the last try, which says how often it was tried."""
        detail = f"{error.detail} (tried {attempt} of {self._tries} times"
        if attempt < self._tries:
            detail += f"; the next try would wait {pause:.0f} s"
        return Unavailable(
            error.model,
            detail + ")",
            status=error.status,
            retry_after=error.retry_after,
            out_of_time=error.out_of_time or too_late,
            used=error.used,
        )


class Gate:
    """How many calls an endpoint accepts at once: halved on overload, slowly raised again."""

    def __init__(self, limit: int, *, raise_after: int = 16) -> None:
        self.max_limit = max(1, limit)
        # begins at the maximum, and is lowered when the endpoint is overloaded
        self.limit = self.max_limit
        self.inside = 0
        self._raise_after = raise_after
        self._successes = 0
        self._overloads = 0
        self._free = threading.Condition()

    def enter(self, timeout: float | None) -> int | None:
        """Wait for a place; return the number of overloads so far, or ``None`` on timeout."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        with self._free:
            # in short waits, so that cancelled work does not wait on
            while self.inside >= self.limit:
                check_stop()
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._free.wait(min(left, 0.1))
            self.inside += 1
            return self._overloads

    def leave(self, entered: int, *, overloaded: bool, worked: bool) -> None:
        """Free the place, and adjust the limit to how the call went."""
        with self._free:
            self.inside -= 1
            # calls that ran side by side report the same overload: it halves the limit once
            if overloaded and entered == self._overloads:
                self.limit = max(1, self.limit // 2)
                self._overloads += 1
                self._successes = 0
            # one success says little; a row of them says that the overload is over
            elif worked and self.limit < self.max_limit:
                self._successes += 1
                if self._successes >= self._raise_after:
                    self.limit, self._successes = self.limit + 1, 0
            self._free.notify_all()


sharing_limits: ContextVar[int] = ContextVar("longtake_sharing_limits", default=1)
"""How many processes share the limits of endpoints; each gets an equal part, at least one call."""


class Limited(Middleware):
    """Makes at most as many calls at once as the endpoint's gate allows."""

    def __init__(self, inner: Chat, gate: Gate) -> None:
        super().__init__(inner)
        self.gate = gate

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask as soon as there is a place."""
        entered = self.gate.enter(options.deadline)
        if entered is None:
            detail = "the endpoint had no free place in time"
            raise Unavailable(self.card.name, detail, out_of_time=True)
        overloaded = worked = False
        try:
            check_stop()  # the work may have been cancelled while this call waited
            reply = self.inner.complete(messages, options)
            worked = True
            return reply
        except Unavailable as error:
            overloaded = error.status == 429
            raise
        finally:
            self.gate.leave(entered, overloaded=overloaded, worked=worked)


@contextmanager
def _errors_of_package(model: str, backend: str) -> Iterator[None]:
    """Turn whatever the code of another package raises into an error of ours."""
    try:
        yield
    except LongtakeError:
        raise
    except Exception as error:
        detail = f"backend {backend!r} failed: {type(error).__name__}: {error}"
        if isinstance(error, OSError):  # ConnectionError and TimeoutError among them
            raise Unavailable(model, detail) from error
        raise ModelError(model, "unavailable", detail) from error


def open_plugin(backend: AnyBackend, model: ModelRequest[Any]) -> Plugin:
    """Open a model of another package's backend."""
    with _errors_of_package(model.name, backend.name):
        return Plugin(backend.open(model), name=model.name, backend=backend.name)


class Plugin(Middleware):
    """A model of another package's backend, which may raise anything."""

    def __init__(self, inner: Chat, *, name: str, backend: str) -> None:
        super().__init__(inner)
        self._name, self._backend = name, backend

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask; broken connections become :class:`Unavailable`, which is retried."""
        with _errors_of_package(self._name, self._backend):
            return self.inner.complete(messages, options)


FILE = "replies.sqlite"
COLUMNS = "request TEXT PRIMARY KEY, model TEXT, prompt TEXT, reply TEXT NOT NULL, made REAL"
LOCK_SECONDS = 30.0
"""Seconds to wait while another process writes."""


class ReplyStore:
    """The file, with one connection that one thread uses at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the stored reply, if there is one."""
        query = "SELECT reply FROM replies WHERE request = ?"
        with self._lock:
            row = self._open().execute(query, (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, model: str, prompt: str, reply: dict[str, Any]) -> None:
        """Store a reply; the first one for a request stays, so that repeated reads agree."""
        with self._lock, self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)",
                (key, model, prompt, json.dumps(reply), time.time()),
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        # opened on first use, so that making a store does not create the file
        if self._connection is None:
            connection = sqlite3.connect(self.path, timeout=LOCK_SECONDS, check_same_thread=False)
            # SQLite waits for other processes, except when it switches to a write-ahead log
            with FileLock(f"{self.path}.lock", timeout=LOCK_SECONDS, mode=0o600):
                # with a write-ahead log, a reply need not wait for the disk and survives a crash
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"CREATE TABLE IF NOT EXISTS replies ({COLUMNS})")
            self._connection = connection
        return self._connection


class Cached(Middleware):
    """Returns the stored reply, marked as such and at no cost, or asks and stores.

    If the cache cannot be read or written, an event says so and the model is asked; the run goes
    on.
    """

    def __init__(self, inner: Chat, store: ReplyStore) -> None:
        super().__init__(inner)
        self._store = store

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Look first, ask second."""
        # everything that shapes the reply is in the key, so a stored one is never stale
        key = request_hash(self.card, messages, options)
        stored = self._stored(key)
        if stored is not None:
            calls = tuple(ToolCall(**call) for call in stored["tool_calls"])
            # the pictures count as seen: what a method looks at does not depend on who paid
            seen = Usage(frames=len(images(messages)))
            return Reply(**{**stored, "tool_calls": calls}, usage=seen, cached=True)
        reply = self.inner.complete(messages, options)
        if reply.text or reply.tool_calls:  # an empty reply is a failure, and asking again may help
            self._keep(key, options.prompt, reply)
        return reply

    def _stored(self, key: str) -> dict[str, Any] | None:
        try:
            return self._store.get(key)
        except (sqlite3.Error, OSError, ValueError) as error:
            events.note("cache_failed", file=str(self._store.path), error=str(error))
            return None

    def _keep(self, key: str, prompt: str, reply: Reply) -> None:
        # usage is what the first call cost; a stored reply costs nothing
        kept = asdict(reply)
        del kept["usage"], kept["cached"]
        try:
            self._store.put(key, self.card.name, prompt, kept)
        except (sqlite3.Error, OSError, ValueError) as error:
            events.note("cache_failed", file=str(self._store.path), error=str(error))
