"""What runs in a worker: a task, one value at a time, with everything it has to say."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from longtake.errors import LongtakeError
from longtake.events import Stream
from longtake.sinks.notes import NoteSink

V_co = TypeVar("V_co", covariant=True)

FailureKind: TypeAlias = Literal["refused", "raised", "crashed", "lost"]


class Task(Protocol[V_co]):
    """Work for one worker. It travels pickled, so it names files and ranges and holds no frames.

    A task may be run again after the loss of a machine, so running it twice must be harmless.
    """

    @property
    def name(self) -> str:
        """What a user calls this work, such as the film's path."""

    def run(self) -> Iterator[V_co]:
        """Compute the values, one after another."""

    def rest(self, done: int) -> Task[V_co]:
        """The task without the first ``done`` values; the task itself if it can be repeated."""


@dataclass(frozen=True)
class Failure:
    """Why a task failed, in words: not every exception survives the journey between processes."""

    kind: FailureKind
    """``refused``: an error of ours with a message for the user; ``raised``: any other error;
    ``crashed``: the worker died; ``lost``: machines were lost too often."""
    message: str
    exit_code: int = 1
    errno: int | None = None


@dataclass(frozen=True)
class Message:
    """What a worker sends."""

    kind: Literal["ready", "value", "end"]
    value: Any = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


class Runner:
    """The worker's side of the conversation; engines call :meth:`step`."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._stream = Stream(NoteSink(self._notes.append))
        self._values: Iterator[Any] = iter(())

    def step(self, task: Task[Any] | None) -> Message:
        """Begin a task, or go on with the current one, and compute the next value."""
        if task is not None:
            self._values = task.run()
        try:
            with self._stream.active():
                value = next(self._values)
        except StopIteration:
            return Message("end", notes=self._said())
        # whatever a task does, its worker goes on to the next one
        except Exception as error:  # noqa: BLE001
            return Message("end", failure=_failure(error), notes=self._said())
        return Message("value", value, notes=self._said())

    def _said(self) -> tuple[str, ...]:
        notes = tuple(self._notes)
        self._notes.clear()
        return notes


def _failure(error: Exception) -> Failure:
    if isinstance(error, LongtakeError):
        return Failure("refused", str(error), error.exit_code)
    number = error.errno if isinstance(error, OSError) else None
    return Failure("raised", f"{type(error).__name__}: {error}", errno=number)


def worker_name() -> str:
    """Identity of this process among all processes of a cluster."""
    return f"{socket.gethostname()}:{os.getpid()}"
