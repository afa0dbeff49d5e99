"""Work in other processes, which goes on when one of them dies.

:func:`run_groups` calls a function for many items on :class:`Workers`; :class:`Processes` are those
of this machine.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Literal, Protocol, TypeVar

from longtake._util import disk_is_full
from longtake._util.cancellation import check_stop, leave
from longtake.errors import LongtakeError

T = TypeVar("T")
V = TypeVar("V")


def usable_cores() -> int:
    """Cores that this process may run on: in a container often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Failure:
    """Why a task failed, as text, since not every exception can be pickled."""

    kind: Literal["refused", "raised", "crashed"]
    """``refused``: an error of ours with a message for the user; ``raised``: any other error;
    ``crashed``: the worker died."""
    message: str
    exit_code: int = 1
    disk_full: bool = False


class Workers(Protocol):
    """Processes that call functions; leaving the ``with`` block ends them, also after Ctrl-C."""

    def __enter__(self) -> Workers: ...

    def __exit__(self, *error: object) -> None: ...

    def room(self) -> int:
        """How many calls are worth having under way now."""

    def submit(self, function: bytes, item: Any) -> Future[Any]:
        """Have a worker :func:`attempt` to call a pickled function with an item."""


def run_groups(
    workers: Workers, act: Callable[[T], V], groups: Iterable[Iterable[T]]
) -> Iterator[tuple[T, V | Failure]]:
    """Call ``act`` for every item: groups side by side, the items of a group one after another.

    The function and the items travel pickled. A call may be made again after the loss of a machine,
    so making it twice must be harmless.

    Yields each item with its value, or with why there is none, which affects no other item. The
    next item of a group is only asked for once the value of the last one was taken.
    """
    function = pickle.dumps(act)
    waiting = deque(iter(group) for group in groups)
    running: dict[Future[V | Failure], tuple[T, Iterator[T]]] = {}

    def begin(group: Iterator[T]) -> None:
        for item in group:
            running[workers.submit(function, item)] = item, group
            return

    while waiting or running:
        check_stop()
        while waiting and len(running) < workers.room():
            begin(waiting.popleft())
        # twice a second it looks whether there is room for another worker
        for future in wait_for(running, timeout=0.5, return_when=FIRST_COMPLETED).done:
            item, group = running.pop(future)
            error = future.exception()
            yield item, future.result() if error is None else Failure("crashed", str(error))
            begin(group)


def attempt(function: bytes, item: Any) -> Any:
    """What a pickled function returns, or a :class:`Failure`."""
    try:
        return _unpickled(function)(item)
    # whatever happens, the worker goes on to the next item
    except Exception as error:  # noqa: BLE001
        return _failure(error)


@lru_cache(maxsize=1)
def _unpickled(function: bytes) -> Callable[[Any], Any]:
    """The function, which keeps between calls what it has loaded."""
    act: Callable[[Any], Any] = pickle.loads(function)
    return act


def _failure(error: Exception) -> Failure:
    if isinstance(error, LongtakeError):
        return Failure("refused", str(error), error.exit_code)
    message = f"{type(error).__name__}: {error}"
    return Failure("raised", message, disk_full=disk_is_full(error))


class WorkerDied(Exception):
    """A worker is gone."""


class Processes:
    """Processes of this machine, by default one per core."""

    def __init__(self, workers: int | None = None) -> None:
        self._room = workers or usable_cores()
        # each thread waits for the process that does its call
        self._threads = ThreadPoolExecutor(self._room)
        self._lock = threading.Lock()
        self._idle: list[tuple[Connection, SpawnProcess]] = []
        self._started: list[SpawnProcess] = []
        self._closed = False

    def room(self) -> int:
        """The number of workers given."""
        return self._room

    def submit(self, function: bytes, item: Any) -> Future[Any]:
        """Call a function in a process; the future raises :class:`WorkerDied` if that dies."""
        return self._threads.submit(self._call, function, item)

    def _call(self, function: bytes, item: Any) -> Any:
        pipe, process = self._worker()
        try:
            pipe.send((function, item))
            value = pipe.recv()
        # a worker that is killed while it writes resets the pipe
        except (EOFError, ConnectionError):
            process.join()
            pipe.close()
            raise WorkerDied(_cause(process.exitcode)) from None
        self._idle.append((pipe, process))
        return value

    def _worker(self) -> tuple[Connection, SpawnProcess]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._closed:
                raise WorkerDied("the workers were ended")
            worker = spawn(_work)
            self._started.append(worker[1])
            return worker

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._closed = True
            for process in self._started:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._started:
            process.join()


def _work(pipe: Connection) -> None:
    """The main function of a worker."""
    try:
        while True:
            pipe.send(attempt(*pipe.recv()))
    except (EOFError, ConnectionError):
        leave(0)  # the parent has closed the pipe: there is nothing left to do


def _cause(code: int | None) -> str:
    """Why a process ended, from its exit code."""
    if code is None or code >= 0:
        return f"its worker ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = "; out of memory?" if -code == signal.SIGKILL else ""
    return f"its worker was ended by {name}{hint}"


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
