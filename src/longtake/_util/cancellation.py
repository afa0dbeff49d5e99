"""Ending work early, from any thread.

::

    stop = Stop()
    with stop.in_force():       # in the thread that works
        for frame in frames:
            check_stop()        # raises once somebody has called stop.set()

Decoding, recognition and calls to models check the flag that is in force. Code that waits for a
server cannot check it, and registers a function that ends the wait instead: :meth:`Stop.then`.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from longtake.errors import LongtakeError


class Cancelled(LongtakeError):
    """The work was cancelled, by request or because another part of it failed."""


def _cancelled() -> LongtakeError:
    return Cancelled("cancelled")


class Stop:
    """A flag that ends work in many threads, including the work nested inside it.

    Work may be nested inside several flags, each of which ends it.
    """

    def __init__(self, *parents: Stop | None) -> None:
        self._event = threading.Event()
        self._error: Callable[[], LongtakeError] = _cancelled
        self._inside: list[Stop] = []
        self._acts: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._parents = [parent for parent in parents if parent is not None]
        for parent in self._parents:
            parent._adopt(self)

    def _adopt(self, child: Stop) -> None:
        with self._lock:
            self._inside.append(child)
        # the parent may have been stopped before it knew this child
        if self._event.is_set():
            child.set(self._error)

    def release(self) -> None:
        """Detach from the surrounding work once this work is done."""
        for parent in self._parents:
            with parent._lock:
                if self in parent._inside:
                    parent._inside.remove(self)

    def set(self, error: Callable[[], LongtakeError] = _cancelled) -> None:
        """End the work; ``error`` makes what :meth:`check` raises, :class:`Cancelled` by default.

        Only the first call counts. Safe to call from any thread.
        """
        with self._lock:
            if self._event.is_set():
                return
            self._error = error
            self._event.set()
            # copied, because a child that ends removes itself meanwhile
            inside, acts = list(self._inside), list(self._acts)
        for child in inside:
            child.set(error)
        for act in acts:
            act()

    @property
    def is_set(self) -> bool:
        """Whether the work was ended."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise :class:`Cancelled`, or the error given to :meth:`set`, if the work was ended."""
        if self._event.is_set():
            raise self._error()

    def wait(self, seconds: float) -> None:
        """Sleep, unless the work is ended first."""
        self._event.wait(seconds)
        self.check()

    @contextmanager
    def then(self, act: Callable[[], None]) -> Iterator[None]:
        """Call ``act`` if the work is ended during the block, from the thread that ends it."""
        with self._lock:
            ended = self._event.is_set()
            if not ended:
                self._acts.append(act)
        if ended:
            act()
        try:
            yield
        finally:
            with self._lock:
                if act in self._acts:
                    self._acts.remove(act)

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Make this the flag that :func:`check_stop` checks in this thread."""
        token = stopping.set(self)
        try:
            yield
        finally:
            stopping.reset(token)


stopping: ContextVar[Stop | None] = ContextVar("longtake_stop", default=None)
"""The flag of the work that this thread is part of."""


def check_stop() -> None:
    """Raise if the surrounding work was ended."""
    stop = stopping.get()
    if stop is not None:
        stop.check()


class Ended:
    """What work ended with: its result, or the error to raise."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self._result, self._error = result, error

    def value(self) -> Any:
        """The result; raises the error if there is one."""
        if self._error is not None:
            raise self._error
        return self._result


def in_background(
    act: Callable[[], Any], stop: Stop, ended: Callable[[Ended], None]
) -> threading.Thread:
    """Run ``act`` on a thread with the caller's context and this flag, and report how it ended."""

    def work() -> None:
        stopping.set(stop)
        try:
            ended(Ended(act()))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            ended(Ended(error=error))

    # a daemon: a call that hangs must not keep the process from ending
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    return thread


_left_behind: list[threading.Thread] = []


def leave_behind(thread: threading.Thread) -> None:
    """Remember a thread that will end by itself, at its next check, and is not waited for."""
    _left_behind.append(thread)


def leave(code: int) -> None:
    """End the process at once if threads were left behind; otherwise do nothing.

    Python ends such threads in a way that native code does not survive.
    """
    if any(thread.is_alive() for thread in _left_behind):
        _left_behind.clear()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@atexit.register
def _wait() -> None:
    """Let native code return before Python ends its threads."""
    # native code that takes longer than this is ended with the process
    until = time.monotonic() + 10.0
    for thread in _left_behind:
        thread.join(max(0.0, until - time.monotonic()))
