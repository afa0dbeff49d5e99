"""What is noted while a task runs, such as that a file is damaged, reaches the user."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TypeVar

from longtake.events import Stream
from longtake.process_pool import Notice
from longtake.sinks.notes import NoteSink

S = TypeVar("S")
V = TypeVar("V")


def with_notes(run: Callable[[S], Iterator[V]]) -> Callable[[S], Iterator[V | Notice]]:
    """Decorates the ``run`` of a task: each value comes after what was noted meanwhile."""

    @functools.wraps(run)
    def values(self: S) -> Iterator[V | Notice]:
        notes: list[str] = []
        stream, computed = Stream(NoteSink(notes.append)), run(self)
        while True:
            error, value = None, None
            try:
                with stream.active():
                    value = next(computed)
            except StopIteration:
                yield from map(Notice, notes)
                return
            except Exception as raised:  # noqa: BLE001 - raised again after the notes
                error = raised
            yield from map(Notice, notes)
            notes.clear()
            if error is not None:
                raise error
            yield value  # type: ignore[misc]

    return values
