"""Runs the server until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvicorn

from longtake.errors import ConfigError
from longtake.server.app import create_app
from longtake.server.options import ServeOptions
from longtake.server.security import open_keys, token_file


def serve(options: ServeOptions, ready: Callable[[str, Path | None], None]) -> None:
    """Bind, tell ``ready`` the one-time URL and the token's file, and serve."""
    listener = _bind(options)
    options = replace(options, port=listener.getsockname()[1])
    keys = open_keys(options)
    config = uvicorn.Config(
        create_app(options, keys),
        log_level="warning",
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


def _bind(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {options.host}:{options.port} ({error.strerror}); choose --port"
        ) from error
    return listener
