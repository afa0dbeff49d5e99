"""What tests run in processes of their own; a spawned process can import this, but not a test module."""

from __future__ import annotations

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

from longtake.footage.captioned import CaptionedFootage
from longtake.index.store import LayerKey, Store
from longtake.index.text import TextStore
from longtake.models.cache import ReplyStore
from longtake.prompts import Plain
from longtake.steps.answer import guess
from longtake.types import Answer, Line, Segment


def hold_film(root, fingerprint, held, release):
    """Hold the right to build a film until told otherwise."""
    with Store(root).film(fingerprint).building():
        held.set()
        release.wait(30)


def write_line(path, number):
    """Add one line to a text store."""
    segment = Segment(number, number + 1)
    TextStore(path).add(LayerKey("speech", 1), [Line(segment, f"line {number}")], [segment])


def fill_reply_cache(folder, start):
    """Write forty replies, twenty of which another process writes too."""
    store = ReplyStore(folder)
    for number in range(start, start + 40):
        store.put(str(number % 60), "m", "p", {"text": str(number % 60)})


class Bags:
    """Sentences as bags of letters: quick, and good enough to run."""

    name = "bags"

    def texts(self, texts):
        rows = np.array(
            [[t.count(chr(97 + i)) for i in range(26)] + [1] for t in texts], np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True)
class Captions:
    """A source of videos that are ten captions long; the video called ``broken`` cannot be opened."""

    def footage(self, video):
        return CaptionedFootage(
            video, [] if video == "broken" else [f"{video} at {s}" for s in range(10)], Bags()
        )


@dataclass(frozen=True)
class FirstOption:
    """Answers A, and notes in a file that it was asked."""

    name: ClassVar[str] = "processes:FirstOption"
    paper: ClassVar[str] = "none"
    roles: ClassVar[tuple[str, ...]] = ()
    presets: ClassVar[dict] = {}

    log: str = ""

    def answer(self, footage, question, run):
        time.sleep(
            float(os.environ.get("TEST_PAUSE", "0"))
        )  # no field: how long it takes is no part of a spec
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{os.getpid()} {footage.name}\n")
        return Answer("A", reason=footage.captions([0.0])[0])


@dataclass(frozen=True)
class Faulty(FirstOption):
    """Asks its model once, then divides by zero on one video and finds the disk full on another."""

    name: ClassVar[str] = "processes:Faulty"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    full: str = ""

    def answer(self, footage, question, run):
        said = guess(run["llm"], "baselines/blind", question, manner=Plain("")).as_answer()
        if footage.name == self.full:
            raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")
        return said if footage.name != "v1" else 1 / 0


def masked(pipe):
    """Tell whether Ctrl-C is kept from this process."""
    pipe.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set()))


SECRET = "s3cr3t-label"
"""What the labels of the firewall test hold; a solver that finds it anywhere has seen a label."""


@dataclass(frozen=True)
class Snoop(FirstOption):
    """Looks for labels wherever a solver could: memory, arguments, environment, frames, the run folder."""

    name: ClassVar[str] = "processes:Snoop"
    folder: str = ""
    whole: bool = field(default=True)

    def answer(self, footage, question, run):
        found = []
        needle = SECRET[::-1][::-1]
        for thing in gc.get_objects():
            if isinstance(thing, dict):
                found += [
                    k
                    for k, v in list(thing.items())
                    if _holds(v) and k != "SECRET" and v is not needle
                ]
            elif isinstance(thing, list | tuple | set):
                found += (
                    ["sequence"]
                    if any(_holds(v) for v in thing if v is not SECRET) and not _own(thing)
                    else []
                )
        found += [k for k, v in os.environ.items() if SECRET in v]
        found += [a for a in sys.argv if SECRET in a]
        for path in Path(self.folder).rglob("*"):
            if path.is_file() and SECRET.encode() in path.read_bytes():
                found.append(str(path))
        return Answer("A" if not found else "B", text=repr(found[:5]))


def _holds(value):
    return isinstance(value, str) and SECRET in value and value is not SECRET


def _own(thing):
    """Constants of this very module's code."""
    return thing is Snoop.answer.__code__.co_consts
