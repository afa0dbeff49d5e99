"""Where work is done: in processes of this machine, or in tasks of a Ray cluster (``--on``)."""

from __future__ import annotations

import importlib
import os
import secrets
import socket
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from longtake import __version__
from longtake._util.process_pool import Failure, Processes, Workers, attempt, usable_cores
from longtake.errors import ConfigError, MissingExtra, unknown

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    # Ray prints the death of a worker to our standard output; we report it ourselves
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""Set before Ray is imported, where the user has not set them."""
RETRIES = 3
"""How often Ray repeats a task whose process or machine was lost; then the task has failed."""


class Ray:
    """Tasks of a Ray cluster: that at ``address``, that of ``$RAY_ADDRESS``, or one made here."""

    def __init__(
        self, address: str = "", *, workers: int | None = None, cpus: float = 1.0, gpus: float = 0.0
    ) -> None:
        self._workers, self._shares = workers, {"CPU": cpus, "GPU": gpus}
        self._own = not (address or os.environ.get("RAY_ADDRESS"))
        self._ray = _connected(address, own=self._own)
        remote = self._ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)
        self._attempt = remote(_attempt_there)

    def room(self) -> int:
        """As many tasks as fit; one more on a cluster that could grow for it."""
        if self._workers is not None:
            return self._workers
        resources = self._ray.cluster_resources()
        fits = [
            int(resources.get(name, 0) / share) for name, share in self._shares.items() if share
        ]
        fitting = min(fits, default=1)
        if not self._own:
            # a task that waits for a place is how an autoscaler learns that more is wanted
            return fitting + 1
        if not fitting:
            raise ConfigError(f"this machine has no room for a worker that needs {self._shares}")
        return fitting

    def submit(self, function: bytes, item: Any) -> Future[Any]:
        """Call a function in a task; the future raises Ray's error if its process is lost."""
        task = self._attempt.remote(str(Path.cwd()), __version__, function, item)
        future: Future[Any] = task.future()
        return future

    def __enter__(self) -> Ray:
        return self

    def __exit__(self, *error: object) -> None:
        # leaving the cluster ends our tasks; a cluster that was made here ends too
        self._ray.shutdown()


def _attempt_there(folder: str, version: str, function: bytes, item: Any) -> Any:
    """Call a function in a process of the cluster, if that runs the same code."""
    if version != __version__:
        here = socket.gethostname()
        reason = f"{here} has longtake {__version__}, and the driver has {version}"
        return Failure("refused", reason)
    # paths on the command line may be relative to the driver's folder
    if Path(folder).is_dir():
        os.chdir(folder)
    return attempt(function, item)


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

    def open(self, workers: int | None = None) -> Workers:
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
