"""Code that tests run in other processes: these can import this module, but not a test module."""

import errno
import gc
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from support.patience import PATIENCE

from longtake.agents.answer import guess
from longtake.footage.plain import CaptionedFootage
from longtake.index.store import LayerKey, Store
from longtake.index.text import TextStore
from longtake.library.fts_index import SegmentIndex
from longtake.library.segments import FilmRows, Row
from longtake.llm.middleware import ReplyStore
from longtake.prompts import Plain
from longtake.types import Answer, Line, Segment


def hold_film(root, fingerprint, held, release):
    """Hold the lock on building a film until told to release it."""
    with Store(root).film(fingerprint).building():
        held.set()
        release.wait(PATIENCE)


def write_line(path, number):
    """Add one line to a text store."""
    segment = Segment(number, number + 1)
    TextStore(path).add(LayerKey("speech", 1), [Line(segment, f"line {number}")], [segment])


def fill_reply_cache(folder, start):
    """Write forty replies; another process writes twenty of them too."""
    store = ReplyStore(folder)
    for number in range(start, start + 40):
        store.put(str(number % 60), "m", "p", {"text": str(number % 60)})


class Bags:
    """Encodes sentences as bags of letters, which is quick and good enough here."""

    name = "bags"

    def texts(self, texts):
        rows = np.array(
            [[t.count(chr(97 + i)) for i in range(26)] + [1] for t in texts], np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True)
class Captions:
    """A source of videos with ten captions each; the video ``broken`` cannot be opened."""

    def footage(self, video):
        captions = [f"{video} at {second}" for second in range(10)]
        return CaptionedFootage(video, [] if video == "broken" else captions, Bags())


@dataclass(frozen=True)
class FirstOption:
    """Answers A, and logs that it was asked."""

    name: ClassVar[str] = "processes:FirstOption"
    paper: ClassVar[str] = "none"
    roles: ClassVar[tuple[str, ...]] = ()
    presets: ClassVar[dict] = {}

    log: str = ""

    def answer(self, footage, question, run):
        # not a field: fields are part of a run's spec, and how long it takes is not
        time.sleep(float(os.environ.get("TEST_PAUSE", "0")))
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{os.getpid()} {footage.name}\n")
        return Answer("A", reason=footage.captions([0.0])[0])


@dataclass(frozen=True)
class Faulty(FirstOption):
    """Asks its model once, then divides by zero on one video and runs out of disk on another."""

    name: ClassVar[str] = "processes:Faulty"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    full: str = ""

    def answer(self, footage, question, run):
        said = guess(run["llm"], "baselines/blind", question, manner=Plain("")).as_answer()
        if footage.name == self.full:
            raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")
        return said if footage.name != "v1" else 1 / 0


def masked(pipe):
    """Report whether SIGINT is blocked in this process."""
    pipe.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set()))


SECRET = "s3cr3t-label"
"""Text in the labels of the firewall test; a solver that finds it anywhere has seen a label."""


@dataclass(frozen=True)
class Snoop(FirstOption):
    """Looks for labels wherever a solver could: memory, arguments, environment, the run folder."""

    name: ClassVar[str] = "processes:Snoop"
    folder: str = ""
    whole: bool = field(default=True)

    def answer(self, footage, question, run):
        found = []
        needle = SECRET[::-1][::-1]
        for thing in gc.get_objects():
            if isinstance(thing, dict):
                for key, value in list(thing.items()):
                    if _holds(value) and key != "SECRET" and value is not needle:
                        found.append(key)
            elif isinstance(thing, list | tuple | set):
                leaked = any(_holds(value) for value in thing)
                if leaked and not _own(thing):
                    found.append("sequence")
        found += [k for k, v in os.environ.items() if SECRET in v]
        found += [a for a in sys.argv if SECRET in a]
        for path in Path(self.folder).rglob("*"):
            if path.is_file() and SECRET.encode() in path.read_bytes():
                found.append(str(path))
        return Answer("A" if not found else "B", text=repr(found[:5]))


def _holds(value):
    return isinstance(value, str) and SECRET in value and value is not SECRET


def _own(thing):
    """Whether these are the constants of this module's own code."""
    return thing is Snoop.answer.__code__.co_consts


def fill_segments(folder, films, ready):
    """Write films into a library's index, skipping those that are there."""
    index = SegmentIndex(folder, {"picture": 4, "meaning": 4})
    ready.set()
    for number in range(films):
        if f"film{number}" not in index.films():
            index.replace([FilmRows(f"film{number}", {}, segment_rows(number))])


def segment_rows(number):
    """The rows of a film: one that says its number, and some that do not."""
    vector = np.array([1, number + 1, 0, 0], np.float32)
    unit = vector / np.linalg.norm(vector)
    return [
        Row(
            Segment(10.0 * place, 10.0 * place + 10),
            f"number{number} part{place}",
            times=f'{{"said": [{10.0 * place}]}}',
            picture=unit,
            meaning=unit,
        )
        for place in range(1 + number % 7)
    ]
