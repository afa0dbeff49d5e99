"""The engine of this machine: one process per worker, no dependencies."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.managers import BaseManager
from typing import Any

from longtake.cluster.executor import WorkerDied
from longtake.cluster.running import Message, Runner, Task, worker_name
from longtake.cores import usable_cores
from longtake.spawning import end_with_parent, spawn
from longtake.stopping import leave


class Processes:
    """Worker processes, as many as there are cores unless told otherwise."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or usable_cores()
        self._manager: BaseManager | None = None

    def room(self) -> int:
        """The number of workers given."""
        return self._workers

    def start(self) -> ProcessWorker:
        """Start a process."""
        return ProcessWorker(*spawn(_work))

    def wait(self, workers: Sequence[ProcessWorker], seconds: float) -> list[ProcessWorker]:
        """The workers whose pipes can be read; a pipe ends when its process dies."""
        by_pipe = {worker.pipe: worker for worker in workers}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe), seconds)]  # type: ignore[index]

    def share(self, make: Callable[..., Any], *args: Any) -> Any:
        """One object in a process of its own; each caller is served by a thread there."""
        self.__exit__()
        _Manager.register("make", make)
        self._manager = _Manager(ctx=get_context("spawn"))
        self._manager.start(_serve_quietly)
        return self._manager.make(*args)  # type: ignore[attr-defined]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        if self._manager is not None:
            self._manager.shutdown()
            self._manager = None


class ProcessWorker:
    """One process and the pipe to it."""

    name = ""

    def __init__(self, pipe: Connection, process: SpawnProcess) -> None:
        self.pipe, self._process = pipe, process

    def send(self, task: Task[Any] | None) -> None:
        """Start a task, or ask for the next value."""
        # a worker that has died is noticed by the next wait
        try:
            self.pipe.send(task)
        except ConnectionError:
            return

    def receive(self) -> Message:
        """The next message."""
        try:
            message: Message = self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            raise WorkerDied("crashed", _cause(self._process.exitcode)) from None
        if message.kind == "ready":
            self.name = message.value
        return message

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


class _Manager(BaseManager):
    """Serves a shared object to the workers."""


def _serve_quietly() -> None:
    # our process receives Ctrl-C and ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _work(pipe: Connection) -> None:
    runner = Runner()
    pipe.send(Message("ready", worker_name()))
    try:
        while True:
            pipe.send(runner.step(pipe.recv()))
    except (EOFError, ConnectionError):
        leave(0)  # the parent has closed the pipe: there is nothing left to do


def _cause(code: int | None) -> str:
    """Why a process ended, from its exit code."""
    if code is None or code >= 0:
        return f"its worker ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = "; out of memory?" if -code == signal.SIGKILL else ""
    return f"its worker was ended by {name}{hint}"
