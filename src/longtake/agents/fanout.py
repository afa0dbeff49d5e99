"""Independent calls in parallel."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from longtake._util.cancellation import Cancelled, Stop, stopping

T = TypeVar("T")
R = TypeVar("R")


def fanout(act: Callable[[T], R], items: Iterable[T], *, limit: int = 32) -> list[R]:
    """Call ``act`` on every item, up to ``limit`` at a time on threads; results keep the order.

    Each call sees the caller's trace, step, budget and prompts. When one call fails, calls that
    have not started are dropped, calls waiting for a retry are cancelled, and the first failure is
    raised.
    """
    todo = list(items)
    if len(todo) <= 1 or limit <= 1:
        return [act(item) for item in todo]
    return _Fan(act, todo).run(min(limit, len(todo)))


class _Fan:
    """One fan-out: its items, their results and the first failure."""

    def __init__(self, act: Callable[[Any], Any], items: list[Any]) -> None:
        self._act, self._items = act, items
        self._stop = Stop(stopping.get())
        self._results: list[Any] = [None] * len(items)
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._order = iter(range(len(items)))
        # one copy per item, since only one thread at a time can enter a context
        self._contexts = [contextvars.copy_context() for _ in items]

    def run(self, threads: int) -> list[Any]:
        # daemon threads, so that Ctrl-C does not wait for calls that hang
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            self._stop.set()
            raise
        finally:
            self._stop.release()
        if self._failure is not None:
            raise self._failure
        return self._results

    def _work(self) -> None:
        while True:
            with self._lock:
                number = next(self._order, None)
                if number is None or self._failure is not None:
                    return
            try:
                self._results[number] = self._contexts[number].run(self._one, self._items[number])
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
                self._fail(error)
                return

    def _one(self, item: Any) -> Any:
        stopping.set(self._stop)
        self._stop.check()
        return self._act(item)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            # a real failure replaces a cancellation, which is only its consequence
            if self._failure is None or isinstance(self._failure, Cancelled):
                self._failure = error
        self._stop.set()
