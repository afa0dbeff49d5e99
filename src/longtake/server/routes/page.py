"""The files of the page, the facts it needs before a question, and the server's health."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Header, HTTPException, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from longtake import __version__, registry
from longtake.llm.catalog import WEIGHTS, recommended
from longtake.llm.pull import hub_address
from longtake.runner.assignment import BUILT_IN_METHOD, DEFAULT_MODELS
from longtake.server.journal import Ask
from longtake.server.routes.runs import RunHandle, handle
from longtake.server.state import StateParam

router = APIRouter(include_in_schema=False)
about_router = APIRouter(tags=["about"])
"""Routes of the API about what this server offers."""

PAGE = Path(__file__).parent.parent / "page"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_UNREAD = re.compile(rb"^[ \t]*(?://.*)?\n?", re.MULTILINE)
"""Indentation, empty lines and comments, which are not sent."""
ASSETS = frozenset(
    path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.suffix in KINDS
)
"""Names of the files of the page; no other path is read."""


@router.get("/healthz")
def health() -> PlainTextResponse:
    """Whether the server answers."""
    return PlainTextResponse("ok\n")


class Asset(NamedTuple):
    """A file of the page, ready to be sent."""

    plain: bytes
    packed: bytes
    """The same, compressed with gzip."""
    tag: str


# coroutines, because these files are in memory and a thread would cost more than sending them
@router.get("/assets/{name:path}")
async def asset(
    name: str,
    accept_encoding: Annotated[str, Header()] = "",
    if_none_match: Annotated[str, Header()] = "",
) -> Response:
    """A file of the page."""
    if name not in ASSETS:
        raise HTTPException(404, "no such file")
    return _sent(PAGE / name, accept_encoding, if_none_match)


def _sent(path: Path, accepted: str, known: str) -> Response:
    """A file, compressed if the browser accepts that, or status 304 if it has not changed."""
    file = _asset(path)
    # checked with the server every time: versions of scripts must not be mixed
    headers = {"Cache-Control": "no-cache", "ETag": file.tag, "Vary": "Accept-Encoding"}
    if file.tag in known:
        return Response(status_code=304, headers=headers)
    if "gzip" not in accepted:
        return Response(file.plain, media_type=KINDS[path.suffix], headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(file.packed, media_type=KINDS[path.suffix], headers=headers)


@cache
def _asset(path: Path) -> Asset:
    plain = path.read_bytes()
    if path.suffix in (".js", ".css"):
        plain = _UNREAD.sub(b"", plain)
    digest = hashlib.blake2b(plain, digest_size=8).hexdigest()
    return Asset(plain, gzip.compress(plain, mtime=0), f'"{digest}"')


@router.get("/metrics")
def metrics(state: StateParam) -> PlainTextResponse:
    """Figures in Prometheus' text format."""
    pool = state.pool
    # live runs either wait or run
    waiting = sum(run.position > 0 for run in pool.live())
    lines = [
        "# TYPE longtake_runs_waiting gauge",
        f"longtake_runs_waiting {waiting}",
        "# TYPE longtake_runs_running gauge",
        f"longtake_runs_running {len(pool.live()) - waiting}",
        "# TYPE longtake_spent_dollars counter",
        f"longtake_spent_dollars {pool.spent:g}",
        "# TYPE longtake_runs_total counter",
    ]
    for how, count in sorted(pool.finished.items()):
        lines.append(f'longtake_runs_total{{state="{how}"}} {count}')
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


@router.get("/{path:path}")
async def page(
    path: str,
    accept_encoding: Annotated[str, Header()] = "",
    if_none_match: Annotated[str, Header()] = "",
) -> Response:
    """The page itself, at each of its addresses."""
    # a program with a wrong address must get an error, not a page
    if path.startswith(("api/", "v1/")):
        raise HTTPException(404, "no such address")
    return _sent(PAGE / "index.html", accept_encoding, if_none_match)


class MethodCard(BaseModel):
    """A method in a few words."""

    name: str
    summary: str
    roles: tuple[str, ...]
    paper: str


class ModelOffer(BaseModel):
    """A model that can be downloaded."""

    name: str
    size: int
    """Bytes."""
    licence: str
    source: str
    """The address that it comes from."""


class ServerCard(BaseModel):
    """What the page needs to know before a question is asked."""

    version: str
    methods: list[MethodCard]
    default_method: str
    models: list[str]
    """Names of the catalogue."""
    default_models: dict[str, str]
    """By role, for asks that name none."""
    server_models: tuple[str, ...]
    """What the server was started with, as ``--model`` takes it."""
    max_upload: int
    urls: tuple[str, ...]
    """Domains from which films may be downloaded."""
    max_spend: float | None
    spent: float
    vision: ModelOffer | None
    """A model that sees and can be downloaded, if none is there."""


@about_router.get("/about")
def about(state: StateParam) -> ServerCard:
    """Methods, models and limits."""
    options, vision, methods = state.options, None, []
    # only where nobody has chosen a model
    if state.default_method == BUILT_IN_METHOD:
        name = recommended("vision")
        known = WEIGHTS[name]
        vision = ModelOffer(name=name, size=known.size, licence=known.licence, source=hub_address())
    for name in registry.methods.names():
        kind = registry.methods.get(name)
        # the first line of a docstring is what the class is
        summary = (inspect.getdoc(kind) or "").split("\n")[0]
        methods.append(
            MethodCard(name=name, summary=summary, roles=tuple(kind.roles), paper=str(kind.paper))
        )
    return ServerCard(
        version=__version__,
        methods=methods,
        default_method=state.default_method,
        models=sorted(options.settings.models),
        default_models=dict(DEFAULT_MODELS),
        server_models=options.models,
        max_upload=options.max_upload,
        urls=options.allow_url,
        max_spend=options.max_spend,
        spent=state.pool.spent,
        vision=vision,
    )


@about_router.post("/models/vision", status_code=202)
def pull_vision(state: StateParam) -> RunHandle:
    """Download the vision model that suits this machine; the run shows its progress."""
    ask = Ask(film="", question=recommended("vision"))
    return handle(state.pool.start(ask, kind="pull"))


@about_router.post("/session", status_code=204)
def sign_in(state: StateParam, response: Response) -> None:
    """Turn the token, sent as ``Authorization: Bearer``, into the cookie of a browser."""
    # the guard has checked the token already
    state.keys.set_cookie(response)
