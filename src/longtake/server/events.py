"""The events of a run, read from its trace while it grows, and sent as Server-Sent Events.

A run writes its trace in a thread; viewers are coroutines, which a :class:`ChangeNotifier` wakes.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starlette.types import Receive


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
            # without those who gave up waiting
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


HEARTBEAT = 15.0
"""Seconds after which a comment keeps an idle connection open."""
CHUNK = 1 << 18
"""Bytes of a trace that are read at once, so that a long one does not hold up other viewers."""
MAX_TEXT = 600
"""Characters of a reply or a result in a brief event."""
# the fields that every event begins with, in the order in which they are written
_START = re.compile(rb'\{"id":(\d+),"parent":(?:\d+|null),"time":[-+.\deE]+,"kind":"(\w+)"')


@dataclass(frozen=True, slots=True)
class TraceLine:
    """An event as it is written in the trace."""

    id: int
    kind: str
    data: bytes


def read_line(data: bytes) -> TraceLine | None:
    """An event from a line of a trace; ``None`` for its header and for pictures."""
    start = _START.match(data)
    if start is not None:
        return TraceLine(int(start[1]), start[2].decode(), data)
    # written by another version, or with a file name that is not valid UTF-8
    try:
        raw = json.loads(data)
    except ValueError:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), int):
        return None
    return TraceLine(raw["id"], str(raw.get("kind", "")), data)


def read_trace(path: Path) -> Generator[TraceLine, None, None]:
    """The events that a trace holds now; none if the run is still waiting."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for data in file:
            # without its end, the last line is still being written
            line = read_line(data[:-1]) if data.endswith(b"\n") else None
            if line is not None:
                yield line


async def follow(
    path: Path,
    *,
    after: int = 0,
    listen: Callable[[], asyncio.Future[None]] | None = None,
    ended: Callable[[], bool] = lambda: True,
) -> AsyncGenerator[list[TraceLine], None]:
    """Batches of events until the run has ended; an empty batch means that nothing happened."""
    with ExitStack() as stack:
        file: BinaryIO | None = None
        rest = b""
        while True:
            # checked before reading, so that everything written before the end is read
            change, over = listen() if listen else None, ended()
            # while the run is waiting, there is no file
            if file is None and path.exists():
                file = stack.enter_context(path.open("rb"))
            chunk = file.read(CHUNK) if file else b""
            # the last piece is a line that is still being written
            *whole, rest = (rest + chunk).split(b"\n")
            lines = filter(None, map(read_line, whole))
            batch = [line for line in lines if line.id > after]
            at_end = len(chunk) < CHUNK
            if batch or at_end:
                yield batch
            if not at_end:
                # let other viewers have their turn
                await asyncio.sleep(0)
            elif over or change is None:
                return
            else:
                await asyncio.wait([change], timeout=HEARTBEAT)


async def disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def sse(kind: str, data: bytes, id: int | None = None) -> bytes:  # noqa: A002
    """One Server-Sent Event; ``data`` is on one line."""
    number = b"" if id is None else b"id: %d\n" % id
    return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), number, data)


def brief(line: TraceLine) -> bytes:
    """An event without what lists of events do not show: prompts, cards, long texts."""
    if line.kind not in ("chat_called", "run_started", "tool_called"):
        return line.data
    # parsed only if there is something to leave out
    event = json.loads(line.data)
    for name in ("messages", "cards", "prompts", "request"):
        event.pop(name, None)
    for name in ("reply", "thinking", "result"):
        text = event.get(name)
        if isinstance(text, str) and len(text) > MAX_TEXT:
            event[name] = text[:MAX_TEXT] + "…"
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
