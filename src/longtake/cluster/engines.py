"""Engines by name: ``processes``, ``ray``, ``ray://head:6379?gpus=0.25``."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from longtake.cluster.ray import Ray
from longtake.cores import usable_cores
from longtake.errors import ConfigError, unknown
from longtake.process_pool import Processes, WorkerBackend

ENGINES = ("processes", "ray")


@dataclass(frozen=True)
class Where:
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


def parse(text: str) -> Where:
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
    return Where(name, url if host else "", **shares)


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
