"""A handle on one run."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from longtake.errors import LongtakeError
from longtake.server import events
from longtake.server.bell import ChangeNotifier
from longtake.server.journal import ENDED, RunRecord, State
from longtake.server.work import Crash, EngineLost
from longtake.stopping import Cancelled, Stop, stopping
from longtake.types import Result

if TYPE_CHECKING:
    from longtake.server.runs import RunPool

log = logging.getLogger("longtake.serve")


class Run:
    """A handle on one run."""

    def __init__(self, record: RunRecord, pool: RunPool) -> None:
        self.record = record
        self.progress: dict[str, float] = {}
        """Share done of each part of indexing."""
        self.askers = 1
        self._pool = pool
        self.stop = Stop()
        """Ends model calls and decoding in progress."""
        self._over = threading.Event()
        self._result: Result | None = None
        self._error: Exception | None = None
        self._changes = ChangeNotifier()
        self.cancelled = False
        """Whether it was cancelled, even if it has not ended yet."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.record.id

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.record.state in ENDED

    @property
    def position(self) -> int:
        """Place in the queue, from 1; 0 once the run has begun."""
        return self._pool.position(self)

    async def events(self, after: int = 0) -> AsyncGenerator[list[events.Line], None]:
        """Batches of events from the trace; an empty one when only the status changed."""
        path = self._pool.journal.trace(self.id)
        async for batch in events.follow(
            path, after=after, listen=self._changes.listen, ended=lambda: self.ended
        ):
            yield batch

    def result(self, timeout: float | None = None) -> Result:
        """The result; raises the error that ended the run, or ``TimeoutError``."""
        if not self._over.wait(timeout):
            raise TimeoutError(f"run {self.id} is still under way")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    async def finished(self) -> None:
        """Wait for the end without blocking the loop."""
        while not self.ended:
            heard = self._changes.listen()
            if not self.ended:
                await asyncio.wait([heard], timeout=events.HEARTBEAT)

    def cancel(self) -> None:
        """End the run for everyone."""
        self.cancelled = True
        self.stop.set()
        self._pool.drop(self)

    def leave(self) -> None:
        """One asker fewer; the last one to leave ends the run."""
        self.askers -= 1
        if self.askers <= 0:
            self.cancel()

    def work(self, act: Callable[[Run], Result | None]) -> None:
        """Do the work in this thread and record how it ended."""
        # the flag reaches every model call, and every wait, of this run
        stopping.set(self.stop)
        self.change(state="running", started=time.time())
        try:
            self.stop.check()
            self._result = act(self)
        except Cancelled as error:
            self.end("cancelled", error)
        except EngineLost as error:
            self.end("broken", error)
        except LongtakeError as error:
            self.end("failed", error)
        except Exception as error:  # a bug in one run must not end the server
            log.exception("run %s failed", self.id)
            self.end("failed", error)
        else:
            # a run that is cancelled keeps the best answer so far
            ended_early = self.cancelled and self._result is not None
            self.end("cancelled" if ended_early else "done")

    def end(self, state: State, error: Exception | None = None) -> None:
        """Record the end and wake everyone who waits for it."""
        self._error = error
        changes: dict[str, Any] = {"ended": time.time(), "error": _reason(error)}
        if self._result is not None:
            changes |= {"answer": self._result.answer, "usage": self._result.usage}
        self.change(state=state, **changes)
        self._over.set()

    def change(self, **changes: Any) -> None:
        """Change the record, on disk first: nobody is told what a crash could undo."""
        changed = self.record.model_copy(update=changes)
        self._pool.journal.write(changed)
        self.record = changed
        self._changes.notify()

    def news(self) -> None:
        """Wake viewers: the trace, the progress or the place in the queue changed."""
        self._changes.notify()

    def advanced(self, part: str, share: float) -> None:
        """Tell viewers how much of one part of indexing is done."""
        self.progress[part] = share
        self._changes.notify()


def _reason(error: Exception | None) -> str:
    if error is None:
        return ""
    if isinstance(error, LongtakeError):
        return str(error)
    # its text may hold paths or data that are nobody's business
    name = error.args[0] if isinstance(error, Crash) else type(error).__name__
    return f"internal error: {name} (the server's log says more)"
