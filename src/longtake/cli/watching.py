"""What is shown while a question is being answered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from longtake.cli.output import on_terminal
from longtake.display import on_one_line
from longtake.events import ChatCalled, Event, FramesSeen, Noted, RunStarted, Sink, StepBegan
from longtake.sinks.console import ConsoleSink

TOLD = ("loading", "retry", "waiting")
"""Notes that explain why nothing seems to happen."""
WIDEST = 60


@contextmanager
def watching(*, quiet: bool, verbose: bool, most_calls: int | None = None) -> Iterator[list[Sink]]:
    """Yield the sinks that show a run: all of it, one line that changes, or nothing.

    ``most_calls`` is the most that the method can make, if that is known.
    """
    if verbose:
        yield [ConsoleSink(sys.stderr)]
        return
    if quiet or not on_terminal():
        yield []
        return
    # imported late: rich is slow to import, and pipes need none of it
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def show(line: str) -> None:
            bars.update(task, description=line)

        yield [StatusSink(show, most_calls)]


class StatusSink:
    """Tells what is being done in one line: the step, and how much was called and seen."""

    def __init__(self, show: Callable[[str], None], most_calls: int | None = None) -> None:
        self._show = show
        self._most = f" of at most {most_calls}" if most_calls else ""
        self._doing = ""
        self._calls = 0
        self._frames = 0

    def handle(self, event: Event) -> None:
        """Update the line."""
        match event:
            case RunStarted():
                self._doing = event.method
            case StepBegan():
                self._doing = _named(event.name, event.data)
            case ChatCalled():
                self._calls += 1
            case FramesSeen():
                self._frames += len(event.frames)
            case Noted() if event.label in TOLD:
                self._doing = f"{event.label.replace('_', ' ')} {event.data.get('model', '')}"
            case _:
                return
        counted = f"{self._calls}{self._most} calls, {self._frames} frames"
        # brackets would be markup
        doing = on_one_line(self._doing)[:WIDEST].replace("[", "(").replace("]", ")")
        self._show(f"{doing} · {counted}")

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Ignore the picture."""

    def close(self) -> None:
        """Do nothing."""


def _named(name: str, data: Any) -> str:
    number = data.get("round", data.get("number"))
    return f"{name} {number}" if isinstance(number, int) else name
