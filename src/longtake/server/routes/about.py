"""What this server offers: methods, models, limits; and how it is doing."""

from __future__ import annotations

import inspect

from fastapi import APIRouter, Response
from pydantic import BaseModel

from longtake import __version__, registry
from longtake.runner.assignment import DEFAULT_MODELS, ModelAssignment
from longtake.server.state import StateParam

router = APIRouter(tags=["about"])


class MethodCard(BaseModel):
    """A method in a few words."""

    name: str
    summary: str
    roles: tuple[str, ...]
    paper: str


class ServerCard(BaseModel):
    """What a page needs to know before it asks."""

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


@router.get("/about")
def about(state: StateParam) -> ServerCard:
    """Methods, models and limits."""
    options = state.options
    # as a run without models of its own would be assigned
    casting = ModelAssignment(options.models).or_else(options.settings.answers.model)
    return ServerCard(
        version=__version__,
        methods=[_card(name) for name in registry.methods.names()],
        default_method=casting.default_method,
        models=sorted(options.settings.models),
        default_models=dict(DEFAULT_MODELS),
        server_models=options.models,
        max_upload=options.max_upload,
        urls=options.allow_url,
        max_spend=options.max_spend,
        spent=state.pool.spent,
    )


def _card(name: str) -> MethodCard:
    kind = registry.methods.get(name)
    # the first line of a docstring is what the class is
    summary = (inspect.getdoc(kind) or "").split("\n")[0]
    return MethodCard(name=name, summary=summary, roles=tuple(kind.roles), paper=str(kind.paper))


@router.post("/session", status_code=204)
def sign_in(state: StateParam, response: Response) -> None:
    """Turn the token, sent as ``Authorization: Bearer``, into the cookie of a browser."""
    # the guard has checked the token already
    state.keys.set_cookie(response)
