"""Tasks on workers, in processes of this machine or on a cluster.

An engine starts workers and carries messages; everything else is here and the same for every
engine::

    submit ──> waiting ──> a worker ──> Value, Value, … Finished
                              ├─ the task raises, or crashes the worker:  Failed, once
                              └─ the worker is lost with its machine:     waiting, without the
                                                                          values that arrived

A worker computes the next value only when the last one has been dealt with: what a caller has
written to disk is never computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from longtake.cluster.running import Failure, Message, Task
from longtake.errors import LongtakeError
from longtake.stopping import check_stop

T = TypeVar("T", bound=Task[Any])

LOSSES = 3
"""How often a task is started again after the loss of a machine."""
FALSE_STARTS = 3
"""Workers that die before their first task; after these, starting more is pointless."""
POLL = 0.5
"""Seconds between two looks at whether there is room for another worker."""


class WorkerDied(Exception):
    """A worker is gone; ``why`` says whether its task may be to blame."""

    def __init__(self, kind: Literal["crashed", "lost"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["crashed", "lost"] = kind


class Worker(Protocol):
    """One process that runs tasks, one at a time. It says ``ready`` once it can take the first."""

    name: str
    """Identity of the process, known once it is ready."""

    def send(self, task: Task[Any] | None) -> None:
        """Start a task, or with ``None`` ask for the next value of the current one."""

    def receive(self) -> Message:
        """The message that :meth:`Engine.wait` announced; raises :class:`WorkerDied`."""

    def kill(self) -> None:
        """End the process, whatever it is doing."""


class Engine(Protocol):
    """Where workers come from; the end of the ``with`` block ends what it has started."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *error: object) -> None: ...

    def room(self) -> int:
        """How many workers are worth having now."""

    def start(self) -> Worker:
        """Start a worker."""

    def wait(self, workers: Sequence[Any], seconds: float) -> list[Any]:
        """The workers that have sent a message or died, at most ``seconds`` from now."""

    def share(self, make: Callable[..., Any], *args: Any) -> Any:
        """Make one object that all workers can call; the handle returned can be part of tasks."""


@dataclass(frozen=True)
class Value(Generic[T]):
    """A task has computed something."""

    task: T
    value: Any


@dataclass(frozen=True)
class Finished(Generic[T]):
    """A task has computed everything."""

    task: T
    done: int
    """Number of its values."""


@dataclass(frozen=True)
class Failed(Generic[T]):
    """A task cannot go on; the others are not affected."""

    task: T
    done: int
    """Number of values that it computed before."""
    failure: Failure


@dataclass(frozen=True)
class Said:
    """A worker has something to tell the user, such as that a file is damaged."""

    text: str


Report: TypeAlias = Value[T] | Finished[T] | Failed[T] | Said


@dataclass
class _Job(Generic[T]):
    """A task under way."""

    task: T
    done: int = 0
    losses: int = 0


class Executor(Generic[T]):
    """Runs tasks; leaving the ``with`` block ends all workers, also after Ctrl-C."""

    def __init__(self, engine: Engine, *, on_death: Callable[[str], None] | None = None) -> None:
        self._engine, self._on_death = engine, on_death
        self._waiting: deque[_Job[T]] = deque()
        self._starting: list[Worker] = []
        self._idle: list[Worker] = []
        self._busy: dict[Worker, _Job[T]] = {}
        self._false_starts = 0

    def __enter__(self) -> Executor[T]:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in (*self._starting, *self._idle, *self._busy):
            worker.kill()

    def submit(self, *tasks: T, first: bool = False) -> None:
        """Run tasks as soon as there are workers, ``first`` of all or last of all.

        May be called between two reports.
        """
        jobs = [_Job(task) for task in tasks]
        if first:
            self._waiting.extendleft(reversed(jobs))
        else:
            self._waiting.extend(jobs)

    def withdraw(self, unwanted: Callable[[T], bool]) -> int:
        """Drop tasks that have not begun; returns how many."""
        kept = [job for job in self._waiting if not unwanted(job.task)]
        dropped = len(self._waiting) - len(kept)
        self._waiting = deque(kept)
        return dropped

    def reports(self) -> Iterator[Report[T]]:
        """What happens, as it happens; ends when no task is left."""
        while self._waiting or self._busy:
            check_stop()
            self._start_workers()
            while self._waiting and self._idle:
                self._begin(self._idle.pop(), self._waiting.popleft())
            for worker in self._engine.wait([*self._starting, *self._busy], POLL):
                yield from self._attend(worker)

    def _start_workers(self) -> None:
        crew = len(self._starting) + len(self._idle) + len(self._busy)
        idle = len(self._starting) + len(self._idle)
        # fewer tasks than machines need fewer workers
        useful = min(self._engine.room() - crew, len(self._waiting) - idle)
        self._starting += [self._engine.start() for _ in range(useful)]

    def _begin(self, worker: Worker, job: _Job[T]) -> None:
        self._busy[worker] = job
        worker.send(job.task)

    def _attend(self, worker: Worker) -> Iterator[Report[T]]:
        """Deal with one message of a worker, or with its end."""
        try:
            message = worker.receive()
        except WorkerDied as died:
            yield from self._bury(worker, died)
            return
        yield from map(Said, message.notes)
        if worker in self._starting:
            self._starting.remove(worker)
            self._idle.append(worker)
            self._false_starts = 0
            return
        job = self._busy[worker]
        if message.kind == "value":
            job.done += 1
            yield Value(job.task, message.value)
            worker.send(None)
            return
        del self._busy[worker]
        self._idle.append(worker)
        if message.failure is not None:
            yield Failed(job.task, job.done, message.failure)
        else:
            yield Finished(job.task, job.done)

    def _bury(self, worker: Worker, died: WorkerDied) -> Iterator[Report[T]]:
        """Forget a dead worker, and decide what becomes of its task."""
        worker.kill()
        if worker in self._starting:
            self._starting.remove(worker)
            # a lost machine says nothing about the next one
            self._false_starts += died.kind == "crashed"
            if self._false_starts >= FALSE_STARTS:
                raise LongtakeError(f"workers die before they can work: {died}")
            return
        if self._on_death is not None:
            self._on_death(worker.name)
        job = self._busy.pop(worker)
        if died.kind == "lost" and job.losses < LOSSES:
            # first in the queue: others may wait for its result
            rest: Any = job.task.rest(job.done)
            self._waiting.appendleft(_Job(rest, losses=job.losses + 1))
            yield Said(f"{job.task.name}: started again ({died})")
            return
        yield Failed(job.task, job.done, Failure(died.kind, str(died)))
