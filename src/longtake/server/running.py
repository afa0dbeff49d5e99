"""Runs the server until it is interrupted."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from longtake.errors import ConfigError
from longtake.server.app import create_app
from longtake.server.logs import log_as_json
from longtake.server.options import ServeOptions
from longtake.server.security import open_keys, token_file

BACKLOG = 128
"""Connections that may wait while the server starts."""

SWITCH = 0.0005
"""Seconds after which a busy thread lets another run. Each answer to a viewer waits for its turn
behind the threads that decode and search, and Python's own 5 ms add up to a visible delay."""


@contextmanager
def server_process() -> Iterator[None]:
    """Inside the block, this process logs and switches threads as a server does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        with log_as_json():
            yield
    finally:
        sys.setswitchinterval(before)


def serve(options: ServeOptions, ready: Callable[[str, Path | None], None]) -> None:
    """Bind, tell ``ready`` the one-time URL and the token's file, and serve."""
    listener = _bind(options.host, options.port)
    options = replace(options, port=listener.getsockname()[1])
    keys = open_keys(options)
    config = uvicorn.Config(
        create_app(options, keys),
        log_config=None,
        access_log=False,
        server_header=False,
        # streams stay open for as long as a run takes; they must not hold up the exit
        timeout_graceful_shutdown=3,
    )
    server = uvicorn.Server(config)
    name = "127.0.0.1" if options.host in ("0.0.0.0", "::") else options.host
    address = f"[{name}]" if ":" in name else name
    file = None if options.token else token_file(options)
    ready(f"http://{address}:{options.port}/enter?code={keys.code()}", file)
    server.run(sockets=[listener])


@contextmanager
def serving(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve on 127.0.0.1 in a thread until the block ends; yields the base URL."""
    listener = _bind("127.0.0.1", port)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    run = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    run.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        # a reply that still waits must not keep the end of the block waiting
        server.should_exit = server.force_exit = True
        run.join()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # from here on connections wait for the server instead of being refused
        listener.listen(BACKLOG)
    except OSError as error:
        reason = f"cannot listen on {host}:{port} ({error.strerror}); choose --port"
        raise ConfigError(reason, key="port") from error
    return listener
