"""Where tasks run: processes of this machine, or actors of a Ray cluster (``--on``)."""

from __future__ import annotations

import functools
import importlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from longtake import __version__
from longtake._util.process_pool import (
    WORKER,
    Notice,
    Processes,
    TaskRunner,
    WorkerBackend,
    WorkerDied,
    WorkerMessage,
    WorkerTask,
    usable_cores,
    worker_name,
)
from longtake.errors import ConfigError, LongtakeError, MissingExtra, unknown
from longtake.tracing.events import Stream
from longtake.tracing.sinks import NoteSink

S = TypeVar("S")
V = TypeVar("V")


def with_notes(run: Callable[[S], Iterator[V]]) -> Callable[[S], Iterator[V | Notice]]:
    """Decorates the ``run`` of a task: notes are yielded before the value that follows them."""

    @functools.wraps(run)
    def values(self: S) -> Iterator[V | Notice]:
        notes: list[str] = []
        stream, computed = Stream(NoteSink(notes.append)), run(self)
        while True:
            try:
                with stream.active():
                    value = next(computed)
            except StopIteration:
                return
            finally:
                # also before an error or the end
                yield from map(Notice, notes)
                notes.clear()
            yield value

    return values


ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    # Ray prints the death of a worker to our standard output; we report it ourselves
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""Set before Ray is imported, where the user has not set them."""
LOST = 60.0
"""Seconds in which Ray notices by its health checks that a machine is lost, and restarts actors."""
RETRIES = 3
"""How often Ray repeats a call whose actor was lost; then the task counts as having crashed it."""


class Ray:
    """Actors of a Ray cluster: that at ``address``, that of ``$RAY_ADDRESS``, or one made here."""

    scarce = True

    def __init__(
        self, address: str = "", *, workers: int | None = None, cpus: float = 1.0, gpus: float = 0.0
    ) -> None:
        self._max_workers, self._shares = workers, {"CPU": cpus, "GPU": gpus}
        self._own = not (address or os.environ.get("RAY_ADDRESS"))
        self._ray = _connected(address, own=self._own)
        retries = {"max_restarts": -1, "max_task_retries": RETRIES}
        self._actor = self._ray.remote(num_cpus=cpus, num_gpus=gpus, **retries)(_Actor)
        self._room, self._looked = 0, float("-inf")

    def room(self) -> int:
        """As many workers as fit; one more on a cluster that could grow for it."""
        # asking takes a call to the head of the cluster, and the answer changes slowly
        if time.monotonic() - self._looked > 2.0:
            self._looked = time.monotonic()
            self._room = self._fitting()
        return self._room if self._max_workers is None else min(self._room, self._max_workers)

    def _fitting(self) -> int:
        resources = self._ray.cluster_resources()
        rooms = [
            int(resources.get(name, 0) / share) for name, share in self._shares.items() if share
        ]
        fitting = min(rooms, default=1)
        if not self._own:
            # an actor that waits for a place is how an autoscaler learns that more is wanted
            return fitting + 1
        if not fitting:
            raise ConfigError(f"this machine has no room for a worker that needs {self._shares}")
        return fitting

    def start(self) -> RayWorker:
        """Ask for an actor; it is ready once the cluster has room for it."""
        return RayWorker(self._ray, self._actor.remote(str(Path.cwd())))

    def wait(self, workers: Sequence[RayWorker], seconds: float) -> list[RayWorker]:
        """The workers whose call has ended."""
        by_call = {worker.call: worker for worker in workers}
        ended, _ = self._ray.wait(list(by_call), timeout=seconds, fetch_local=False)
        return [by_call[call] for call in ended]

    def share(self, make: Callable[..., Any], *args: Any) -> Any:
        """An object in an actor, beside the driver: the run ends with that machine anyway."""
        here = self._ray.get_runtime_context().get_node_id()
        affinity = importlib.import_module("ray.util.scheduling_strategies")
        strategy = affinity.NodeAffinitySchedulingStrategy(here, soft=False)
        # many workers wait at its gates at the same time
        options = {"num_cpus": 0, "max_concurrency": 200, "scheduling_strategy": strategy}
        return RayShared(self._ray.remote(**options)(make).remote(*args))

    def __enter__(self) -> Ray:
        return self

    def __exit__(self, *error: object) -> None:
        # leaving the cluster ends our actors; a cluster that was made here ends too
        self._ray.shutdown()


class RayWorker:
    """One actor and the call that it is working on."""

    name = ""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self._task: Any = None
        self._number = 0
        self._lost_since = 0.0
        self.call = actor.ready.remote(__version__)

    def begin(self, task: WorkerTask[Any]) -> None:
        """Start a task."""
        self._number += 1
        # stored once, since every call names it: an actor that was restarted has forgotten it
        self._task = self._ray.put(task)
        self.resume(0)

    def resume(self, done: int) -> None:
        """Ask for the next value."""
        self.call = self._actor.step.remote(self._number, self._task, done)

    def receive(self) -> WorkerMessage:
        """The result of the call."""
        errors = self._ray.exceptions
        try:
            message: WorkerMessage = self._ray.get(self.call)
        except errors.RayTaskError as error:
            raise WorkerDied(str(error.cause)) from None
        except errors.ActorUnavailableError as error:
            # Ray uses up its retries before it knows that a machine is lost, and restarts then
            self._lost_since = self._lost_since or time.monotonic()
            if not self.name or time.monotonic() - self._lost_since > LOST:
                raise WorkerDied(str(error)) from error
            return WorkerMessage("value", Notice("a worker cannot be reached; trying again"))
        except errors.RayError as error:
            crashed = f"its worker crashed {RETRIES + 1} times ({self.name})"
            raise WorkerDied(crashed if self.name else str(error)) from error
        self._lost_since = 0.0
        if message.kind == "ready":
            self.name = message.value
        return message

    def kill(self) -> None:
        """End the actor."""
        self._ray.kill(self._actor)


@dataclass(frozen=True)
class RayShared:
    """Calls the methods of an object in an actor as if it were here."""

    actor: Any

    def __getattr__(self, method: str) -> Any:
        # unpickling asks for such names before there is an actor
        if method.startswith("_"):
            raise AttributeError(method)
        ray = importlib.import_module("ray")
        return lambda *args: ray.get(getattr(self.actor, method).remote(*args))


class _Actor:
    """A worker process of the cluster."""

    def __init__(self, folder: str) -> None:
        # paths on the command line may be relative to the driver's folder
        if Path(folder).is_dir():
            os.chdir(folder)
        # an actor keeps its name when it is restarted in another process
        ray = importlib.import_module("ray")
        os.environ[WORKER] = ray.get_runtime_context().get_actor_id()
        self._runner = TaskRunner()
        self._position = (0, 0)

    def ready(self, version: str) -> WorkerMessage:
        """Say who this is, if it runs the same code."""
        if version != __version__:
            reason = f"{worker_name()} has longtake {__version__}, and the driver has {version}"
            raise LongtakeError(reason)
        return WorkerMessage("ready", worker_name())

    def step(self, number: int, task: WorkerTask[Any], done: int) -> WorkerMessage:
        """The value of a numbered task that follows the first ``done`` ones."""
        if self._position == (number, done):
            message = self._runner.resume()
        else:
            message = self._runner.begin(task.rest(done) if done else task)
        counts = message.kind == "value" and not isinstance(message.value, Notice)
        self._position = (number, done + counts)
        return message


def _connected(address: str, *, own: bool) -> Any:
    """The module ``ray``, connected."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if own and "RAY_AUTH_TOKEN" not in os.environ:
        # nobody else needs to connect to a cluster that lives as long as this process
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise MissingExtra("ray", "--on ray") from None
    # not Ray's own client: a driver on a machine of the cluster survives a broken connection
    where = "local" if own else address.removeprefix("ray://") or os.environ["RAY_ADDRESS"]
    options = {"include_dashboard": False} if own else {}
    try:
        host, _, port = where.rpartition(":")
        if host and port.isdigit():
            # raises at once if nothing listens there; Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=10.0).close()
        ray.init(where, log_to_driver=False, logging_level="ERROR", **options)
    # Ray, gRPC and the operating system raise different errors
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        advice = "run on a machine of the cluster, and give its head's address and token"
        raise ConfigError(f"cannot connect to Ray at {where} ({error}); {advice}") from error
    return ray


ENGINES = ("processes", "ray")


@dataclass(frozen=True)
class BackendAddress:
    """Where tasks run."""

    engine: str = "processes"
    address: str = ""
    """Of a Ray cluster; empty: that of ``$RAY_ADDRESS``, or one that is made for this run."""
    cpus: float = 1.0
    """CPUs that each worker holds on a cluster."""
    gpus: float = 0.0
    """Share of a GPU that each worker holds on a cluster."""

    def open(self, workers: int | None = None) -> WorkerBackend:
        """The engine, with at most so many workers."""
        if self.engine == "ray":
            return Ray(self.address, workers=workers, cpus=self.cpus, gpus=self.gpus)
        return Processes(workers)

    def threads(self, workers: int | None = None) -> int:
        """Threads for each worker, so that all of them together fill the machine."""
        if self.engine == "ray":
            return max(1, int(self.cpus))
        cores = usable_cores()
        return max(1, cores // (workers or cores))


def parse_backend(text: str) -> BackendAddress:
    """Read what ``--on`` was given."""
    url, _, query = text.partition("?")
    name, _, host = url.partition("://")
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES, where=f"--on {text}")
    if name != "ray" and (host or query):
        raise ConfigError(f"--on {text}: only Ray has an address and shares; write --on {name}")
    if "://" in url and not urlsplit(url).hostname:
        raise ConfigError(f"--on {text}: the address is missing; write ray://HOST:PORT")
    shares = {key: _share(text, key, value) for key, value in parse_qsl(query)}
    return BackendAddress(name, url if host else "", **shares)


def _share(text: str, key: str, value: str) -> float:
    if key not in ("cpus", "gpus"):
        raise unknown("share", key, ("cpus", "gpus"), where=f"--on {text}")
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise ConfigError(f"--on {text}: {key} must be a number, 0 or more")
    return share
