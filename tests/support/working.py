"""Work and workers for tests of the pool and the cluster; worker processes can import this."""

import os
import signal
import time
from concurrent.futures import Future
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from films import X264, numbered
from processes import FirstOption

from longtake._util.process_pool import attempt
from longtake.errors import ConfigError
from longtake.types import Answer
from longtake.video.clip import Encoding, write_film
from support.patience import FOREVER


@dataclass(frozen=True)
class Act:
    """Returns its item, slowly, and ends in the way that an item names."""

    log: str = ""
    pause: float = 0.0

    def __call__(self, item):
        time.sleep(self.pause)
        if self.log:
            # one write, so that lines of several processes do not mix
            with Path(self.log).open("a") as file:
                file.write(f"{item} {os.getpid()}\n")
        if item == "refuse":
            raise ConfigError("no such thing")
        if item == "stumble":
            raise ZeroDivisionError("none left")
        if item == "crash":
            segfault()
        return item


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(FOREVER)


class Inline:
    """Workers in this process, which die at the calls whose numbers are given."""

    def __init__(self, workers: int | None = None, deaths: tuple[int, ...] = ()) -> None:
        self._workers, self._deaths, self._calls = workers or 1, deaths, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def room(self):
        return self._workers

    def submit(self, function, item):
        self._calls += 1
        future = Future()
        if self._calls in self._deaths:
            future.set_exception(RuntimeError("it is gone"))
        else:
            future.set_result(attempt(function, item))
        return future


@dataclass(frozen=True)
class Crashing(FirstOption):
    """Answers, but takes its worker with it on one question."""

    name: ClassVar[str] = "support.working:Crashing"

    def answer(self, footage, question, run):
        if question.text == "Who crashes?":
            segfault()
        return Answer("A")


def make_film(path: Path, seconds: int, *, gop: int = 25) -> Path:
    """A film of two still pictures: reading text takes seconds per shot."""
    if not path.exists():
        count = 25 * seconds
        pictures = (numbered(0 if number < count // 2 else 4095) for number in range(count))
        # the change of picture must not become a keyframe
        options = {**X264, "x264-params": "scenecut=0"}
        write_film(path, pictures, Encoding(options=options, gop=gop, fps=Fraction(25)))
    return path
