"""What ``longtake serve`` is started with, and how it logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from longtake.config import Settings, cache_folder
from longtake.errors import check_limit

PORT = 8750
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Host names under which a server on this machine is reached."""


@dataclass(frozen=True)
class ServeOptions:
    """Films, limits and addresses of one server."""

    settings: Settings = field(default_factory=Settings)
    films: tuple[Path, ...] = ()
    """Folders whose films are shown; nothing outside them is ever opened."""
    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = PORT
    hosts: tuple[str, ...] = ()
    """Further host names that requests may be addressed to."""
    models: tuple[str, ...] = ()
    """Models for asks that name none, as ``--model`` takes them."""
    at_once: int = 2
    """Runs at once; the others wait."""
    own_process: bool = False
    """Compute runs in a process beside the server, which then answers while they do."""
    max_waiting: int = 64
    """Runs that may wait."""
    max_spend: float | None = None
    """US dollars that all runs of this server may cost together."""
    max_upload: int = 16_000_000_000
    """Bytes of an uploaded film."""
    allow_url: tuple[str, ...] = ()
    """Domains from which films may be downloaded."""
    folder: Path | None = None
    """Where runs, uploads and the token are kept; ``None``: ``serve`` in the cache."""
    otlp: str = ""
    """Base URL of an OpenTelemetry collector; empty: nothing is sent."""
    token: str = ""
    """The user's own token; empty: one is made and kept in a file."""

    def __post_init__(self) -> None:
        check_limit("--max-spend", self.max_spend)

    @property
    def data(self) -> Path:
        """The folder of runs, uploads and the token."""
        return self.folder or cache_folder(self.settings) / "serve"

    @property
    def uploads(self) -> Path:
        """Where uploaded films are kept."""
        return self.data / "films"

    @property
    def names(self) -> tuple[str, ...]:
        """Values of ``Host`` that are accepted."""
        # browsers send the name that the user typed
        names = [*LOOPBACK, *self.hosts]
        with_port = [f"{name}:{self.port}" for name in names]
        # browsers leave out the default port
        return (*with_port, *names) if self.port == 80 else tuple(with_port)


class _JsonFormatter(logging.Formatter):
    """One JSON object per line, with figures but without questions."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        line = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line |= {"message": record.getMessage(), **fields}
        # on one line, like everything else
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime"}
"""Attributes that every record has."""


@contextmanager
def log_as_json() -> Iterator[None]:
    """Write the logs of this process as JSON while the block lasts."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter())
    # the root logger too: its own handler imports a module to write a traceback, which fails
    # when there are no file descriptors left
    levels = {"longtake.serve": logging.INFO, "uvicorn": logging.WARNING, "root": logging.WARNING}
    loggers = [logging.getLogger(name) for name in levels]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers[:] = [handler]
        logger.setLevel(levels[logger.name])
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate
