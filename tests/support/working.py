"""Tasks and an engine for tests of the cluster; worker processes can import this module."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from films import X264, numbered
from processes import FirstOption

from longtake._util.process_pool import (
    TaskFailed,
    TaskFinished,
    TaskRunner,
    TaskValue,
    WorkerDied,
    WorkerMessage,
    WorkerPool,
)
from longtake.cluster.backends import with_notes
from longtake.errors import ConfigError
from longtake.tracing.events import note
from longtake.types import Answer
from longtake.video.clip import Encoding, write_film
from longtake_bench.cluster import Limits, SharedGate
from support.patience import FOREVER, PATIENCE


@dataclass(frozen=True)
class Count:
    """Gives numbers; at ``ends`` it comes to an end in the way that is named."""

    name: str
    numbers: tuple[int, ...] = (0, 1, 2)
    ends: int = -1
    how: str = ""
    pause: float = 0.0
    log: str = ""

    @with_notes
    def run(self):
        for number in self.numbers:
            time.sleep(self.pause)
            if number == self.ends:
                END[self.how]()
            if self.log:
                # one write, so that lines of several processes do not mix
                with Path(self.log).open("a") as file:
                    file.write(f"{self.name} {number} {os.getpid()}\n")
            yield number

    def rest(self, done):
        return replace(self, numbers=self.numbers[done:])


def refuse():
    raise ConfigError("no such thing")


def stumble():
    note("stumbled", over="a stone")
    raise ZeroDivisionError("none left")


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(FOREVER)


END: dict[str, Callable[[], None]] = {"refuse": refuse, "stumble": stumble, "crash": segfault}


def collect(pool: WorkerPool, *tasks) -> tuple[dict[str, list], dict[str, TaskFailed]]:
    """The values and failures of tasks, by name; every task must end exactly once."""
    values: dict[str, list] = {task.name: [] for task in tasks}
    failures: dict[str, TaskFailed] = {}
    ended = []
    pool.submit(*tasks)
    for report in pool.reports():
        if isinstance(report, TaskValue):
            values[report.task.name].append(report.value)
        elif isinstance(report, TaskFailed):
            failures[report.task.name] = report
        if isinstance(report, TaskFailed | TaskFinished):
            ended.append(report.task.name)
    assert sorted(ended) == sorted(values)
    return values, failures


class InlineWorker:
    """Runs tasks in this process; at the steps ``deaths`` it dies, and at ``restarts`` it has been
    restarted, as Ray does, and has forgotten its task."""

    name = "inline"

    def __init__(self, deaths: tuple[int, ...], restarts: tuple[int, ...]) -> None:
        self._runner, self._steps = TaskRunner(), 0
        self._deaths, self._restarts = deaths, restarts
        self._message: WorkerMessage | None = WorkerMessage("ready", "inline")

    def begin(self, task):
        self._task = task
        self._step(lambda: self._runner.begin(task))

    def resume(self, done):
        if self._steps + 1 in self._restarts:
            self._step(lambda: self._runner.begin(self._task.rest(done)))
        else:
            self._step(self._runner.resume)

    def _step(self, act):
        self._steps += 1
        self._message = None if self._steps in self._deaths else act()

    def receive(self):
        if self._message is None:
            raise WorkerDied("it is gone")
        return self._message

    def kill(self):
        pass


class Inline:
    """A backend without processes; every worker dies, or is restarted, at the same steps."""

    scarce = False

    def __init__(
        self, workers: int = 1, deaths: tuple[int, ...] = (), restarts: tuple[int, ...] = ()
    ) -> None:
        self._workers, self._deaths, self._restarts = workers, deaths, restarts
        self.started = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def room(self):
        return self._workers

    def start(self):
        self.started += 1
        return InlineWorker(self._deaths, self._restarts)

    def wait(self, workers, seconds):
        return workers[:1]

    def share(self, make, *args):
        return make(*args)


@dataclass(frozen=True)
class Crashing(FirstOption):
    """Answers, but takes its worker with it on one question."""

    name: ClassVar[str] = "support.working:Crashing"

    def answer(self, footage, question, run):
        if question.text == "Who crashes?":
            segfault()
        return Answer("A")


@dataclass(frozen=True)
class Turn:
    """Enters a gate that all workers share, and logs when it was inside."""

    name: str
    limits: object
    log: str

    def run(self):
        gate = SharedGate(self.limits, "host", 1)
        entered = gate.enter(PATIENCE)
        for what in ("in", "out"):
            with Path(self.log).open("a") as file:
                file.write(f"{self.name} {what}\n")
            time.sleep(0.05)
        gate.leave(entered, overloaded=False, worked=True)
        yield self.name

    def rest(self, done):
        return self


def take_turns(engine, log: Path) -> list[str]:
    """What four tasks on several workers log, each of which must be alone at the gate."""
    limits = engine.share(Limits)
    with WorkerPool(engine) as pool:
        collect(pool, *(Turn(f"t{number}", limits, str(log)) for number in range(4)))
    return log.read_text().splitlines()


def alone_at_the_gate(lines: list[str]) -> bool:
    """Whether each task left the gate before the next one entered."""
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return all(first.split()[0] == second.split()[0] for first, second in pairs)


def make_film(path: Path, seconds: int, *, gop: int = 25) -> Path:
    """A film of two still pictures: reading text takes seconds per shot."""
    if not path.exists():
        count = 25 * seconds
        pictures = (numbered(0 if number < count // 2 else 4095) for number in range(count))
        # the change of picture must not become a keyframe
        options = {**X264, "x264-params": "scenecut=0"}
        write_film(path, pictures, Encoding(options=options, gop=gop, fps=Fraction(25)))
    return path
