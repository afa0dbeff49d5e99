"""Wakes coroutines from threads."""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop, Future


class ChangeNotifier:
    """Notified by a thread whenever something changed; any number of coroutines may listen.

    ::

        changed = notifier.listen()     # before looking, so that no change is missed
        look()
        await changed
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: list[tuple[AbstractEventLoop, Future[None]]] = []

    def listen(self) -> Future[None]:
        """A future that is done at the next change."""
        loop = asyncio.get_running_loop()
        future: Future[None] = loop.create_future()
        with self._lock:
            # those who gave up waiting
            self._listening = [entry for entry in self._listening if not entry[1].done()]
            self._listening.append((loop, future))
        return future

    def notify(self) -> None:
        """Wake everyone who listens."""
        with self._lock:
            listening, self._listening = self._listening, []
        for loop, future in listening:
            # a loop may have been closed while a run was still under way
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)


def _wake(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)
