"""The server as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from importlib.util import find_spec

from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from longtake import __version__
from longtake.errors import (
    BudgetSpent,
    ConfigError,
    LongtakeError,
    MediaError,
    MissingExtra,
    ModelError,
)
from longtake.server.films import NoSuchFilm
from longtake.server.openai import routes as openai
from longtake.server.options import ServeOptions
from longtake.server.routes import about, films, library, media, page, runs
from longtake.server.runs import QueueFull
from longtake.server.security import Guard, Keys, open_keys
from longtake.server.state import State, open_state
from longtake.server.streams import EventStreams

API = "/api/v1"
STATUS: tuple[tuple[type[LongtakeError], int], ...] = (
    (NoSuchFilm, 404),
    (QueueFull, 503),
    (BudgetSpent, 402),
    (ConfigError, 422),
    (MediaError, 422),
    (MissingExtra, 501),
    (ModelError, 502),
)
"""HTTP status of each error; the first that fits counts."""


def create_app(options: ServeOptions, keys: Keys | None = None) -> ASGIApp:
    """The whole server behind its guard, ready for an ASGI server such as uvicorn."""
    keys = keys or open_keys(options)
    app = build(options, keys)
    state: State = app.state.longtake
    return Guard(EventStreams(app, state), keys, options.names)


def build(options: ServeOptions, keys: Keys) -> FastAPI:
    """The application without its guard; further endpoints are included here."""
    state = open_state(options, keys)

    tools = _tools(state)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state.pool.warm_up()
        async with tools.router.lifespan_context(tools) if tools else nullcontext():
            yield
        state.close()

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
    app.add_exception_handler(LongtakeError, _refused)
    for module in (about, films, library, media, runs):
        app.include_router(module.router, prefix=API)
    app.include_router(openai.router, prefix="/v1")
    if tools is not None:
        app.router.routes.extend(tools.routes)
    app.include_router(page.router)
    return app


def _tools(state: State) -> Starlette | None:
    """The films as tools, where the extra ``mcp`` is installed."""
    if find_spec("mcp") is None:
        return None
    from mcp.server.transport_security import TransportSecuritySettings

    from longtake.server.mcp.tools import build_mcp

    # the guard checks hosts and origins for every route
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return build_mcp(state).streamable_http_app(
        streamable_http_path="/mcp", stateless_http=True, transport_security=checked
    )


def _refused(_: Request, error: Exception) -> JSONResponse:
    """An error that is meant for users, as JSON."""
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 400)
    return JSONResponse({"detail": str(error), "error": type(error).__name__}, status)
