"""Fails the test that leaves the process changed: the next one would fail for its sake."""

import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import longtake.llm.http  # noqa: F401 - sets the levels of loggers when it is imported
from longtake import registry

REGISTRIES = [each for each in vars(registry).values() if isinstance(each, registry.Registry)]
FUNCTIONS = {
    "os._exit": lambda: os._exit,
    "socket.create_connection": lambda: socket.create_connection,
    "socket.getaddrinfo": lambda: socket.getaddrinfo,
    "socket.socket": lambda: socket.socket,
    "socket.socket.connect": lambda: socket.socket.connect,
    "sys.excepthook": lambda: sys.excepthook,
    "time.monotonic": lambda: time.monotonic,
    "time.sleep": lambda: time.sleep,
}
"""What tests like to replace."""
OTHERS = ("PYTEST_CURRENT_TEST", "LD_LIBRARY_PATH")
"""Variables that pytest sets, and OpenCV when it is imported."""
SILENCED = "RapidOCR"
"""The logger that reading text silences for good, perhaps in a thread that one test leaves to the
next."""

_hooks: list[Callable[..., Any]] = []
_told: set[str] = set()
_seen: set[str] = set()
_temporary: set[str] = set()
_folders: list[str] = []
_add_hook = sys.addaudithook


def _count_hook(hook: Callable[..., Any]) -> None:
    _hooks.append(hook)
    _add_hook(hook)


# hooks cannot be listed, only counted as they are added
sys.addaudithook = _count_hook


@pytest.fixture(autouse=True)
def nothing_left_by_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check the process after a test and its fixtures; every other fixture depends on this one."""
    yield from _checked(request.node.nodeid, set())


@pytest.fixture(autouse=True, scope="module")
def nothing_left_by_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check the process after the fixtures that the tests of a file share."""
    yield from _checked(request.node.nodeid, _told)


@pytest.fixture(autouse=True, scope="session")
def nothing_left_by_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Check the process after the fixtures that files share."""
    _folders.append(str(tmp_path_factory.getbasetemp()))
    yield from _checked("a fixture that files share", _told)


def _checked(name: str, told: set[str]) -> Iterator[None]:
    """Fail for what was changed meanwhile, unless a test was already blamed for it."""
    before = process_state()
    yield
    changed = changes(before, process_state())
    new = [f"{what}: {how}" for what, how in changed.items() if what not in told]
    _told.update(changed)
    if new:
        pytest.fail("\n".join([f"{name} left behind:", *new]), pytrace=False)


def process_state() -> dict[str, Mapping[str, object]]:
    """What tests share without wanting to, by kind and name."""
    loggers = {"root": logging.root, **logging.root.manager.loggerDict}
    return {
        "logger": {
            name: (logger.disabled, logger.level, logger.propagate, *_handlers(logger))
            for name, logger in loggers.items()
            if isinstance(logger, logging.Logger) and name != SILENCED
        },
        "environment": {k: v for k, v in os.environ.items() if k not in OTHERS},
        "signal": {each.name: signal.getsignal(each) for each in signal.Signals},
        "audit hook": dict.fromkeys(map(repr, _hooks)),
        "function": {name: function() for name, function in FUNCTIONS.items()},
        "registry": dict.fromkeys(
            f"{each.kind} {name}" for each in REGISTRIES for name in [*each, *each.modules()]
        ),
        "import path": dict.fromkeys(sys.path),
        "module": _modules_of_tests(),
        "process": {
            "working folder": Path.cwd(),
            "switch interval": sys.getswitchinterval(),
            "recursion limit": sys.getrecursionlimit(),
            "garbage collection": gc.isenabled(),
            # of this thread, which those that it starts inherit
            "scheduling": os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None,
        },
    }


def _handlers(logger: logging.Logger) -> list[logging.Handler]:
    """Handlers other than those by which pytest captures."""
    return [each for each in logger.handlers if not type(each).__module__.startswith("_pytest")]


def _modules_of_tests() -> dict[str, object]:
    """Modules that lie in the folders of tests: another test's module of that name is not found."""
    # each is looked at once, since thousands are imported
    if not _seen.issuperset(sys.modules):
        for name in sys.modules.keys() - _seen:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(tuple(_folders)):
                _temporary.add(name)
        _seen.update(sys.modules)
    return {name: sys.modules[name] for name in _temporary if name in sys.modules}


def changes(
    before: dict[str, Mapping[str, object]], after: dict[str, Mapping[str, object]]
) -> dict[str, str]:
    """What differs, and how."""
    changed = {}
    for kind, was in before.items():
        now = after[kind]
        # modules make their own loggers when they are imported
        for name in was if kind == "logger" else {**was, **now}:
            one, other = was.get(name, "nothing"), now.get(name, "nothing")
            if one != other:
                changed[f"{kind} {name}"] = f"{one} -> {other}"
    return changed
