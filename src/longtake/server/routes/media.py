"""Pictures and sound of a film: frames, clips, playback, subtitles."""

from __future__ import annotations

import io
from typing import Annotated

from fastapi import APIRouter, Header, Query
from PIL import Image
from starlette.responses import Response

from longtake.server.state import Shared

router = APIRouter(tags=["media"])

QUALITY = 82
"""JPEG quality of frames."""


@router.get("/films/{film}/frame")
def frame(
    film: str,
    state: Shared,
    t: Annotated[float, Query(ge=0)],
    width: Annotated[int, Query(ge=16, le=3840)] = 640,
    if_none_match: Annotated[str, Header()] = "",
) -> Response:
    """The frame on screen at a time; ``X-Frame-Time`` says when it appeared."""
    opened = state.shelf.open(film)
    # the file's content, the moment and the size decide everything
    tag = f'"{opened.fingerprint[:16]}-{t:g}-{width}"'
    headers = {"ETag": tag, "Cache-Control": "private, max-age=86400"}
    if tag in if_none_match:
        return Response(status_code=304, headers=headers)
    (shown,) = opened.at([min(t, opened.duration)], width=width)
    data = io.BytesIO()
    Image.fromarray(shown.pixels).save(data, "JPEG", quality=QUALITY)
    headers["X-Frame-Time"] = f"{shown.time:.6f}"
    return Response(data.getvalue(), media_type="image/jpeg", headers=headers)
