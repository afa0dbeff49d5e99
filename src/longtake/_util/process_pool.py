"""Tasks in worker processes: a pool that survives the death of a worker, and services beside it.

A :class:`WorkerPool` gives tasks to the workers of a :class:`WorkerBackend`; :class:`Processes` is
the backend of this machine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.managers import BaseManager
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from longtake._util import disk_is_full
from longtake._util.cancellation import check_stop, leave
from longtake.errors import LongtakeError


def usable_cores() -> int:
    """Cores that this process may run on: in a container often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


V_co = TypeVar("V_co", covariant=True)

WORKER = "LONGTAKE_WORKER"
"""Environment variable with the name of a worker that outlives its process."""


class WorkerTask(Protocol[V_co]):
    """Work for one worker. It travels pickled, so it names files and ranges and holds no frames.

    A task may be run again after the loss of a machine, so running it twice must be harmless.
    """

    @property
    def name(self) -> str:
        """What a user calls this work, such as the film's path."""

    def run(self) -> Iterator[V_co | Notice]:
        """Compute the values, one after another."""

    def rest(self, done: int) -> WorkerTask[V_co]:
        """The task without the first ``done`` values; the task itself if it can be repeated."""


T = TypeVar("T", bound=WorkerTask[Any])


@dataclass(frozen=True)
class Failure:
    """Why a task failed, as text, since not every exception can be pickled."""

    kind: Literal["refused", "raised", "crashed"]
    """``refused``: an error of ours with a message for the user; ``raised``: any other error;
    ``crashed``: the worker died."""
    message: str
    exit_code: int = 1
    disk_full: bool = False


@dataclass(frozen=True)
class TaskValue(Generic[T]):
    """A task has computed something."""

    task: T
    value: Any


@dataclass(frozen=True)
class TaskFinished(Generic[T]):
    """A task has computed everything."""

    task: T


@dataclass(frozen=True)
class TaskFailed(Generic[T]):
    """A task cannot go on; the others are not affected."""

    task: T
    done: int
    """Number of values that it computed before."""
    failure: Failure


@dataclass(frozen=True)
class Notice:
    """A message of a task to the user, such as that a file is damaged."""

    text: str


Report: TypeAlias = TaskValue[T] | TaskFinished[T] | TaskFailed[T] | Notice


@dataclass(frozen=True)
class WorkerMessage:
    """What a worker sends."""

    kind: Literal["ready", "value", "end"]
    value: Any = None
    failure: Failure | None = None


class WorkerDied(Exception):
    """A worker is gone."""


class WorkerHandle(Protocol):
    """A process that runs tasks, one at a time. It says ``ready`` once it can take the first."""

    name: str
    """Identity of the process, known once it is ready."""

    def begin(self, task: WorkerTask[Any]) -> None:
        """Start a task."""

    def resume(self, done: int) -> None:
        """Ask for the next value of the current task, which has computed ``done`` values."""

    def receive(self) -> WorkerMessage:
        """The message that :meth:`WorkerBackend.wait` announced; raises :class:`WorkerDied`."""

    def kill(self) -> None:
        """End the process, whatever it is doing."""


class WorkerBackend(Protocol):
    """Where workers come from; the end of the ``with`` block ends what it has started."""

    scarce: bool
    """Whether idle workers hold places that others may wait for."""

    def __enter__(self) -> WorkerBackend: ...

    def __exit__(self, *error: object) -> None: ...

    def room(self) -> int:
        """How many workers are worth having now."""

    def start(self) -> WorkerHandle:
        """Start a worker."""

    def wait(self, workers: Sequence[Any], seconds: float) -> list[Any]:
        """The workers that have sent a message or died, at most ``seconds`` from now."""

    def share(self, make: Callable[..., Any], *args: Any) -> Any:
        """Make one object that all workers can call; the handle returned can be part of tasks."""


@dataclass
class _Job(Generic[T]):
    """A task under way."""

    task: T
    done: int = 0


class WorkerPool(Generic[T]):
    """Runs tasks; leaving the ``with`` block ends all workers, also after Ctrl-C."""

    def __init__(
        self, backend: WorkerBackend, *, on_death: Callable[[str], None] | None = None
    ) -> None:
        self._backend, self._on_death = backend, on_death
        self._waiting: deque[T] = deque()
        self._starting: list[WorkerHandle] = []
        self._idle: list[WorkerHandle] = []
        self._busy: dict[WorkerHandle, _Job[T]] = {}
        self._false_starts = 0

    def __enter__(self) -> WorkerPool[T]:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in (*self._starting, *self._idle, *self._busy):
            worker.kill()

    def submit(self, *tasks: T, first: bool = False) -> None:
        """Run tasks as soon as there are workers, ``first`` of all or last of all.

        May be called between two reports.
        """
        if first:
            self._waiting.extendleft(reversed(tasks))
        else:
            self._waiting.extend(tasks)

    def reports(self) -> Iterator[Report[T]]:
        """What happens, as it happens; ends when no task is left."""
        while self._waiting or self._busy:
            check_stop()
            self._start_workers()
            while self._waiting and self._idle:
                worker, task = self._idle.pop(), self._waiting.popleft()
                self._busy[worker] = _Job(task)
                worker.begin(task)
            # twice a second it looks whether there is room for another worker
            announced = self._backend.wait([*self._starting, *self._busy], 0.5)
            if self._backend.scarce and not announced and not self._waiting:
                # a worker that is being restarted may wait for the place of an idle one
                for worker in self._idle:
                    worker.kill()
                self._idle.clear()
            for worker in announced:
                yield from self._attend(worker)

    def _start_workers(self) -> None:
        workers = len(self._starting) + len(self._idle) + len(self._busy)
        idle = len(self._starting) + len(self._idle)
        # fewer tasks than machines need fewer workers
        useful = min(self._backend.room() - workers, len(self._waiting) - idle)
        self._starting += [self._backend.start() for _ in range(useful)]

    def _attend(self, worker: WorkerHandle) -> Iterator[Report[T]]:
        """Deal with one message of a worker, or with its end."""
        try:
            message = worker.receive()
        except WorkerDied as death:
            yield from self._on_worker_death(worker, death)
            return
        if worker in self._starting:
            self._starting.remove(worker)
            self._idle.append(worker)
            self._false_starts = 0
            return
        job = self._busy[worker]
        if message.kind == "value":
            if isinstance(message.value, Notice):
                yield message.value
            else:
                job.done += 1
                yield TaskValue(job.task, message.value)
            worker.resume(job.done)
            return
        del self._busy[worker]
        self._idle.append(worker)
        if message.failure is not None:
            yield TaskFailed(job.task, job.done, message.failure)
        else:
            yield TaskFinished(job.task)

    def _on_worker_death(self, worker: WorkerHandle, death: WorkerDied) -> Iterator[TaskFailed[T]]:
        """Forget a dead worker; its task has failed."""
        worker.kill()
        if worker in self._starting:
            self._starting.remove(worker)
            self._false_starts += 1
            # after three workers that die before their first task, starting more is pointless
            if self._false_starts >= 3:
                raise LongtakeError(f"workers die before they can work: {death}")
            return
        if self._on_death is not None:
            self._on_death(worker.name)
        job = self._busy.pop(worker)
        yield TaskFailed(job.task, job.done, Failure("crashed", str(death)))


class TaskRunner:
    """The worker's side of the conversation: computes the values of a task, one by one."""

    def __init__(self) -> None:
        self._values: Iterator[Any] = iter(())

    def begin(self, task: WorkerTask[Any]) -> WorkerMessage:
        """Begin a task, and compute its first value."""
        self._values = task.run()
        return self.resume()

    def resume(self) -> WorkerMessage:
        """Compute the next value of the current task."""
        try:
            return WorkerMessage("value", next(self._values))
        except StopIteration:
            return WorkerMessage("end")
        # whatever a task does, its worker goes on to the next one
        except Exception as error:  # noqa: BLE001
            return WorkerMessage("end", failure=_failure(error))


def _failure(error: Exception) -> Failure:
    if isinstance(error, LongtakeError):
        return Failure("refused", str(error), error.exit_code)
    message = f"{type(error).__name__}: {error}"
    return Failure("raised", message, disk_full=disk_is_full(error))


def worker_name() -> str:
    """Identity of this worker among all workers of a cluster."""
    return os.environ.get(WORKER) or f"{socket.gethostname()}:{os.getpid()}"


class Processes:
    """Processes of this machine, by default one per core."""

    scarce = False

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or usable_cores()
        self._services: list[BaseManager] = []

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
        manager, shared = start_service(make, *args)
        self._services.append(manager)
        return shared

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        for manager in self._services:
            manager.shutdown()
        self._services.clear()


class ProcessWorker:
    """One process and the pipe to it."""

    name = ""

    def __init__(self, pipe: Connection, process: SpawnProcess) -> None:
        self.pipe, self._process = pipe, process

    def begin(self, task: WorkerTask[Any]) -> None:
        """Start a task."""
        self._send(task)

    def resume(self, done: int) -> None:  # noqa: ARG002 - the process knows
        """Ask for the next value."""
        self._send(None)

    def _send(self, task: WorkerTask[Any] | None) -> None:
        # a worker that has died is noticed by the next wait
        try:
            self.pipe.send(task)
        except ConnectionError:
            return

    def receive(self) -> WorkerMessage:
        """The next message."""
        try:
            message: WorkerMessage = self.pipe.recv()
        # a worker that is killed while it writes resets the pipe
        except (EOFError, ConnectionError):
            self._process.join()
            raise WorkerDied(_cause(self._process.exitcode)) from None
        if message.kind == "ready":
            self.name = message.value
        return message

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(pipe: Connection) -> None:
    """The main function of a worker."""
    runner = TaskRunner()
    pipe.send(WorkerMessage("ready", worker_name()))
    try:
        while True:
            task = pipe.recv()
            pipe.send(runner.resume() if task is None else runner.begin(task))
    except (EOFError, ConnectionError):
        leave(0)  # the parent has closed the pipe: there is nothing left to do


def _cause(code: int | None) -> str:
    """Why a process ended, from its exit code."""
    if code is None or code >= 0:
        return f"its worker ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = "; out of memory?" if -code == signal.SIGKILL else ""
    return f"its worker was ended by {name}{hint}"


class _Services(BaseManager):
    """Starts a process that serves an object."""


def start_service(make: Callable[..., Any], *args: Any) -> tuple[BaseManager, Any]:
    """Make an object in a process of its own; returns the process's manager, and a proxy.

    Each thread that calls the proxy is served by a thread there. Once the process is gone, calls
    raise ``EOFError`` or ``OSError``.
    """
    _Services.register(make.__name__, make)
    manager = _Services(ctx=multiprocessing.get_context("spawn"))
    with _no_ctrl_c():
        manager.start(end_with_parent)
    return manager, getattr(manager, make.__name__)(*args)


def spawn(target: Callable[..., None], *args: Any) -> tuple[Connection, SpawnProcess]:
    """Start a process that runs ``target(pipe, *args)``; returns our end of the pipe."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(target, theirs, *args), daemon=True)
    with _no_ctrl_c():
        process.start()
    # with our copy closed, reading from the pipe ends when the worker dies
    theirs.close()
    return ours, process


def _run(target: Callable[..., None], pipe: Connection, *args: Any) -> None:
    end_with_parent()
    target(pipe, *args)


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Processes started in the block ignore Ctrl-C; their parent receives it and ends them."""
    # the first process would start it, and starting it unblocks the signal
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """End this process when its parent dies, since a killed parent cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    # sys.exit would end this thread only
    os._exit(1)
