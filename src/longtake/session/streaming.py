"""A question as a stream of events that ends in its result, for loops and for coroutines.

The work runs on a thread of its own. Leaving the loop early, cancelling the task, or setting a
:class:`~longtake.stopping.Stop` ends it, including calls in flight.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from longtake.events import Event, Sink
from longtake.sinks.calling import CallingSink
from longtake.stopping import Stop, stopping
from longtake.types import Result

R = TypeVar("R")
GRACE = 2.0
"""Seconds for which a caller who leaves early waits for the work to end."""


class _Ended:
    """What the work ended with: its result, or the error to raise."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result, self.error = result, error

    def value(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


def stream(ask: Callable[[Sink], Result], *, stop: Stop | None = None) -> Iterator[Event | Result]:
    """Yield the events of ``ask`` as they happen, then its result.

    ``ask`` gets the sink that receives the events. Closing the iterator ends the work.
    """
    items: queue.SimpleQueue[Event | _Ended] = queue.SimpleQueue()
    with nested(stop) as inner:
        worker = _start(lambda: ask(CallingSink(items.put)), inner, items.put)
        try:
            while True:
                item = items.get()
                if isinstance(item, _Ended):
                    yield item.value()
                    return
                yield item
        finally:
            # also when the caller leaves the loop, or presses Ctrl-C while it waits
            inner.set()
            worker.join(GRACE)


async def in_thread(act: Callable[[], R]) -> R:
    """Await the result of ``act``; cancelling the task ends the work."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Ended] = loop.create_future()

    def settle(ended: _Ended) -> None:
        if not future.done():
            future.set_result(ended)

    with nested(None) as stop:
        _start(act, stop, _across(loop, settle))
        try:
            return (await future).value()  # type: ignore[no-any-return]
        finally:
            stop.set()


async def in_thread_each(items: Callable[[], Iterator[R]]) -> AsyncIterator[R]:
    """Iterate on a thread; leaving the loop or cancelling the task ends the work."""
    arrived: asyncio.Queue[R | _Ended] = asyncio.Queue()
    put = _across(asyncio.get_running_loop(), arrived.put_nowait)

    def pump() -> None:
        for item in items():
            put(item)

    with nested(None) as stop:
        _start(pump, stop, put)
        try:
            while True:
                item = await arrived.get()
                if isinstance(item, _Ended):
                    item.value()
                    return
                yield item
        finally:
            stop.set()


@contextmanager
def nested(stop: Stop | None) -> Iterator[Stop]:
    """A flag for work inside the surrounding work; a given ``stop`` ends it as well."""
    flag = Stop(stopping.get(), stop)
    try:
        yield flag
    finally:
        flag.release()


def _start(act: Callable[[], Any], stop: Stop, ended: Callable[[_Ended], None]) -> threading.Thread:
    """Run ``act`` on a thread that sees the caller's context, and report how it ended."""

    def work() -> None:
        stopping.set(stop)
        try:
            ended(_Ended(act()))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            ended(_Ended(error=error))

    # a daemon: a call that hangs must not keep the process from ending
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    return thread


def _across(loop: asyncio.AbstractEventLoop, act: Callable[[Any], None]) -> Callable[[Any], None]:
    """Call ``act`` in the loop's thread, unless the loop has been closed meanwhile."""

    def call(item: Any) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(act, item)

    return call
