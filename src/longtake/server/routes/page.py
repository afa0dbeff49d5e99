"""The page: static files without a build step, and the server's health."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response

from longtake.server.state import Shared

router = APIRouter(include_in_schema=False)

PAGE = Path(__file__).parent.parent / "page"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@router.get("/healthz")
def health() -> PlainTextResponse:
    """Whether the server answers."""
    return PlainTextResponse("ok\n")


@router.get("/assets/{name:path}")
def asset(name: str) -> Response:
    """A file of the page."""
    path = (PAGE / name).resolve()
    if not path.is_relative_to(PAGE) or not path.is_file() or path.suffix not in KINDS:
        raise HTTPException(404, "no such file")
    # checked with the server each time: a new version must not meet old scripts
    headers = {"Cache-Control": "no-cache"}
    return FileResponse(path, media_type=KINDS[path.suffix], headers=headers)


@router.get("/metrics")
def metrics(state: Shared) -> PlainTextResponse:
    """Figures in Prometheus' text format."""
    pool = state.pool
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
def page(path: str) -> FileResponse:
    """The page itself, at each of its addresses."""
    if path.startswith(("api/", "v1/")):
        raise HTTPException(404, "no such address")
    headers = {"Cache-Control": "no-cache"}
    return FileResponse(PAGE / "index.html", media_type=KINDS[".html"], headers=headers)
