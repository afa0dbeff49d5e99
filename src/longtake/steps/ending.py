"""Ends work on time, whatever it is doing.

Work checks its flag in every loop, but one loaded model or one minute of speech takes seconds of
native code. Work that can be ended therefore has a thread of its own. If it has not ended shortly
after its time, the thread is left behind: it ends by itself at its next check.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from longtake.models.budget import Ledger
from longtake.stopping import Stop, leave_behind

R = TypeVar("R")
POLL = 0.05
"""Seconds between two looks at the clock."""
GRACE = 0.4
"""Seconds that work has to end by itself, with an answer of its own."""


def on_time(act: Callable[[], R], ledger: Ledger, stop: Stop, *, apart: bool) -> R:
    """The result of ``act``; raises the error of ``stop`` if it is set or the time is up.

    ``apart`` says whether the work gets a thread of its own, without which it ends only where it
    checks its flag.
    """
    if not apart:
        with stop.in_force():
            return act()
    work = _Work(act, stop)
    try:
        while not work.done.wait(POLL):
            limit = ledger.limits.seconds
            if limit is not None and ledger.elapsed() >= limit:
                stop.set(ledger.out_of_time)
            if stop.is_set:
                break
        if not work.done.wait(GRACE):
            leave_behind(work.thread)
            stop.check()
    except BaseException:
        # Ctrl-C, for one: what the thread does is no longer wanted
        stop.set()
        raise
    return work.result()


class _Work(Generic[R]):
    """A function on a thread of its own, with the caller's trace, prompts and step."""

    def __init__(self, act: Callable[[], R], stop: Stop) -> None:
        self.done = threading.Event()
        self._act, self._stop = act, stop
        self._results: list[R] = []
        self._failure: BaseException | None = None
        context = contextvars.copy_context()
        # a daemon, so that the process can end before it does
        self.thread = threading.Thread(
            target=context.run, args=(self._run,), name="longtake-run", daemon=True
        )
        self.thread.start()

    def _run(self) -> None:
        try:
            with self._stop.in_force():
                self._results.append(self._act())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            self._failure = error
        finally:
            self.done.set()

    def result(self) -> R:
        """What the function returned; raises what it raised."""
        if self._failure is not None:
            raise self._failure
        return self._results[0]
