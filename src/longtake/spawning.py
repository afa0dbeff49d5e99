"""Worker processes that end with their parent.

Workers are spawned, not forked: a fork would inherit the parent's memory. Parent and worker talk
through a pipe, and each notices when the other dies.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any


def spawn(target: Callable[..., None], *args: Any) -> tuple[Connection, SpawnProcess]:
    """Start a process that runs ``target(pipe, *args)``; returns our end of the pipe.

    The process ignores Ctrl-C, which its parent receives, and ends when its parent does.
    """
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
    """End this process when its parent dies: a killed parent cannot tell its workers to stop.

    A model can be busy for minutes with a reply that nobody would read.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    # sys.exit would end this thread only
    os._exit(1)
