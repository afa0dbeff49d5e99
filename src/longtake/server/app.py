"""The server: its routes as one ASGI application, and the process that serves them.

Anybody can open a connection without a token. A connection holds a file descriptor, and a process
without free descriptors can neither accept another connection nor open a film. So the number of
connections is limited, one that sends its request too slowly is closed, and one whose request is
not being answered gives way to a new one.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import h11
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from longtake import __version__
from longtake.errors import ConfigError, LongtakeError
from longtake.server.films import film_id, public_message
from longtake.server.openai import routes as openai
from longtake.server.openai.replies import status_of
from longtake.server.options import ServeOptions, log_as_json
from longtake.server.routes import films, media, page, runs
from longtake.server.security import AccessKeys, Guard, open_keys, token_file
from longtake.server.state import ServerState, open_state, owned_folder

API = "/api/v1"


def create_app(options: ServeOptions, keys: AccessKeys | None = None) -> ASGIApp:
    """The whole server behind its guard, ready for an ASGI server such as uvicorn."""
    keys = keys or open_keys(options)
    app = build(options, keys)
    # the page opens at the film if a single one is served
    alone = len(options.films) == 1 and options.films[0].is_file()
    home = f"/film/{film_id(options.films[0])}" if alone else "/"
    return Guard(app, keys, options.names, home)


def build(options: ServeOptions, keys: AccessKeys) -> FastAPI:
    """The application without its guard."""
    state = open_state(options, keys)
    tools = _tools(state)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # before anybody waits for the engine's process
        state.pool.warm_up()
        # after a second Ctrl-C, the server does not wait for this end, but cancels it
        with suppress(asyncio.CancelledError), closing(state):
            async with tools.router.lifespan_context(tools) if tools else nullcontext():
                yield

    app = FastAPI(
        title="longtake",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        # its documentation pages load scripts from elsewhere
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.longtake = state
    app.add_exception_handler(LongtakeError, _error_response)
    app.add_exception_handler(RequestValidationError, _validation_error)
    # the page and programs use the same routes
    routers = (page.about_router, films.router, films.library_router, media.router, runs.router)
    for router in routers:
        app.include_router(router, prefix=API)
    app.include_router(openai.router, prefix="/v1")
    if tools is not None:
        app.router.routes.extend(tools.routes)
    # last, because its route matches every address
    app.include_router(page.router)
    return app


def _tools(state: ServerState) -> Starlette | None:
    """The films as tools, where the extra ``mcp`` is installed."""
    if find_spec("mcp") is None:
        return None
    from mcp.server.transport_security import TransportSecuritySettings

    from longtake.server.mcp import build_mcp

    # the guard checks hosts and origins for every route
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return build_mcp(state).streamable_http_app(
        streamable_http_path="/mcp", stateless_http=True, transport_security=checked
    )


def _error_response(_: Request, error: Exception) -> Response:
    """An error of ours as JSON."""
    assert isinstance(error, LongtakeError)
    status, code = status_of(error)
    # the status that FastAPI itself gives invalid values
    status = 422 if code in ("invalid_request", "invalid_film") else status
    return _error_reply({"detail": public_message(error), "error": type(error).__name__}, status)


def _validation_error(_: Request, error: Exception) -> Response:
    """Validation errors without the values, which JSON may be unable to represent."""
    assert isinstance(error, RequestValidationError)
    problems = [{name: each[name] for name in ("type", "loc", "msg")} for each in error.errors()]
    return _error_reply({"detail": problems}, 422)


def _error_reply(content: dict[str, Any], status: int) -> Response:
    # escaped: a message may repeat a name that is not valid Unicode
    return Response(json.dumps(content), status, media_type="application/json")


SWITCH = 0.0005
"""Seconds after which a busy thread lets another run. Replies to viewers wait for the threads that
decode and search, and with Python's default of 5 ms these waits add up to a visible delay."""


@contextmanager
def server_process() -> Iterator[None]:
    """Log as JSON and switch threads often while the block lasts."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        with log_as_json():
            yield
    finally:
        sys.setswitchinterval(before)


def serve(options: ServeOptions, ready: Callable[[str, Path | None], None]) -> None:
    """Bind, call ``ready`` with the one-time URL and the token's file, and serve."""
    with owned_folder(options.data), _bind(options.host, options.port) as listener:
        options = replace(options, port=listener.getsockname()[1])
        keys = open_keys(options)
        config = uvicorn.Config(
            create_app(options, keys),
            http=BoundedProtocol,
            backlog=connection_limits().waiting,
            log_config=None,
            access_log=False,
            server_header=False,
            # streams stay open for as long as a run takes; they must not hold up the exit
            timeout_graceful_shutdown=3,
        )
        name = "127.0.0.1" if options.host in ("0.0.0.0", "::") else options.host
        address = f"[{name}]" if ":" in name else name
        file = None if options.token else token_file(options)
        ready(f"http://{address}:{options.port}/enter?code={keys.code()}", file)
        Server(config).run(sockets=[listener])


class Server(uvicorn.Server):
    """uvicorn's server, which leaves signals ignored that were ignored when it was started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        stops = (signal.SIGINT, signal.SIGTERM)
        self._ignored = {each for each in stops if signal.getsignal(each) is signal.SIG_IGN}

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server, unless the signal is ignored."""
        if sig not in self._ignored:
            super().handle_exit(sig, frame)


@contextmanager
def serving(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve on 127.0.0.1 in a thread until the block ends; yields the base URL."""
    listener = _bind("127.0.0.1", port)
    config = uvicorn.Config(
        app, http=BoundedProtocol, log_config=None, access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    run = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    run.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        # without waiting for replies that are under way
        server.should_exit = server.force_exit = True
        run.join()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # connections inherit it; otherwise a response's body waits up to 40 ms until the client has
    # acknowledged its headers
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
        # from here on connections wait for the server instead of being refused
        listener.listen(connection_limits().waiting)
    except OSError as error:
        reason = f"cannot listen on {host}:{port} ({error.strerror}); choose --port"
        raise ConfigError(reason, key="port") from error
    return listener


HEADER_SECONDS = 10.0
"""Seconds for the headers of a request. Clients send them in one packet; nginx waits 60 s, but it
has more connections to spare."""
BODY_SECONDS = 30.0
"""Seconds after which it is checked how much of a body has arrived."""
BODY_RATE = 10_000
"""Bytes per second of a body at least: the largest question takes 100 s."""
MAX_CONNECTIONS = 1000
"""Upper bound, however many descriptors there are: more viewers than one process can serve."""
BACKLOG = 128
"""Connections that may wait to be accepted."""


class ConnectionLimits(NamedTuple):
    """How many connections may be open, and how many may wait to be accepted."""

    open: int = MAX_CONNECTIONS
    waiting: int = BACKLOG


def connection_limits() -> ConnectionLimits:
    """The limits that the file descriptors of this process allow."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return ConnectionLimits()
    # a viewer needs two, for the connection and for the trace or film that is sent; the rest is
    # for the server's own films, databases and pipes
    return ConnectionLimits(min(MAX_CONNECTIONS, descriptors // 3), min(BACKLOG, descriptors // 8))


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with limits on connections and on the time for their requests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened = self.loop.time()
        self._phase: object = None
        self._received = 0
        self._due: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; if there are too many connections, one is closed."""
        # adds the connection to those that are counted
        super().connection_made(transport)
        others = self.connections - {self}
        open_ones = [each for each in others if not each.transport.is_closing()]
        if len(open_ones) >= connection_limits().open and not _close_oldest_idle(open_ones):
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n")
            transport.close()
        else:
            self._limit_request()

    def data_received(self, data: bytes) -> None:
        """Read a request, or the next part of it."""
        self._received += len(data)
        super().data_received(data)
        self._limit_request()

    def on_response_complete(self) -> None:
        """Read the next request, of which a part may have arrived."""
        super().on_response_complete()
        self._limit_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget_limit()
        super().connection_lost(exc)

    def _limit_request(self) -> None:
        phase = self.conn.their_state
        if phase is self._phase:
            return
        self._forget_limit()
        self._phase, self._received = phase, 0
        if phase is h11.IDLE:
            self._due = self.loop.call_later(HEADER_SECONDS, self.transport.close)
        elif phase is h11.SEND_BODY:
            self._due = self.loop.call_later(BODY_SECONDS, self._check_body)

    def _check_body(self) -> None:
        # the server itself may be slow: it reads no more until a film was written to disk
        arrives = self.flow.read_paused or self._received >= BODY_RATE * BODY_SECONDS
        # what follows the response is of no use
        if self.idle or not arrives:
            self.transport.abort()
        else:
            self._received = 0
            self._due = self.loop.call_later(BODY_SECONDS, self._check_body)

    def _forget_limit(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def _close_oldest_idle(connections: list[Any]) -> bool:
    """Close one of these connections; ``False`` if the requests of all are being answered."""
    idle = [each for each in connections if each.idle]
    if idle:
        # the newest may be about to send its headers
        min(idle, key=lambda each: each.opened).transport.abort()
    return bool(idle)
