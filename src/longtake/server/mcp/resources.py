"""Films as resources: overview, transcript, frames, clips; and the page that shows an answer."""

from __future__ import annotations

import json
from pathlib import Path

from mcp.server.apps import Apps
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from longtake.media.clip import clip_bytes
from longtake.media.images import encoded
from longtake.server.mcp.looking import call, opened_film, overview_of
from longtake.server.mcp.records import spoken
from longtake.server.state import State
from longtake.types import Segment

ANSWER_PAGE = "ui://longtake/answer.html"
LONGEST_CLIP = 20.0
"""Seconds of a clip: it travels through the host as base64."""
CLIP_WIDTH = 640


def pages() -> Apps:
    """The page on which hosts that show pages (MCP Apps) show the cited answer."""
    apps = Apps()
    html = Path(__file__).with_name("answer.html").read_text(encoding="utf-8")
    # no domains are declared: it loads nothing, and talks to nobody but the host
    apps.add_html_resource(ANSWER_PAGE, html, name="answer", title="Answer", prefers_border=True)
    return apps


def add_resources(server: MCPServer, state: State) -> None:
    """Offer films as resources."""

    @server.resource("film://{film}", mime_type="application/json")
    def about(film: str) -> str:
        """A film's overview."""
        return json.dumps(
            overview_of(state, *opened_film(state, film)).model_dump(), ensure_ascii=False
        )

    @server.resource("film://{film}/transcript", mime_type="text/plain")
    def text(film: str) -> str:
        """What is said, as quoted material."""
        return spoken(opened_film(state, film)[1].known_lines()[0])

    @server.resource("film://{film}/frame/{time}", mime_type="image/jpeg")
    def frame(film: str, time: str) -> bytes:
        """The frame at a time in seconds."""
        moment = _seconds(time)
        shown = call(lambda: opened_film(state, film)[1].at([moment], width=1280))
        return encoded(shown[0].pixels, "jpeg")

    @server.resource("film://{film}/clip/{start}/{end}", mime_type="video/mp4")
    def clip(film: str, start: str, end: str) -> bytes:
        """A short stretch between two times in seconds."""
        first, last = _seconds(start), _seconds(end)
        if not 0 <= first < last <= first + LONGEST_CLIP:
            raise ToolError(f"a clip lasts up to {LONGEST_CLIP:g} seconds")
        stretch = Segment(first, last)
        video = opened_film(state, film)[1].video
        return call(lambda: clip_bytes(video, stretch, width=CLIP_WIDTH))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ToolError("times are in seconds") from error
