"""Opening films for tools and resources, with errors in the words of a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from longtake.errors import LongtakeError
from longtake.index.film import Film
from longtake.index.tasks import tasks
from longtake.media.container import open_container
from longtake.prompts.material import quote
from longtake.server.mcp.records import Overview
from longtake.server.state import State
from longtake.timecode import clock

R = TypeVar("R")
MOST_CHAPTERS = 200


def call(act: Callable[[], R]) -> R:
    """The result of ``act``; our errors become the tool's, in the same words."""
    try:
        return act()
    except (LongtakeError, ValidationError) as error:
        raise ToolError(str(error)) from error


def opened_film(state: State, film: str) -> tuple[str, Film]:
    """A film's id and the film; a tool's error if this server has none of that id."""
    return film, call(lambda: state.catalog.open(film))


def overview_of(state: State, film: str, opened: Film) -> Overview:
    """What is known about a film."""
    info = opened.video.info
    return Overview(
        id=film,
        name=state.catalog.path(film).name,
        seconds=round(opened.duration, 3),
        length=clock(opened.duration),
        width=info.width,
        height=info.height,
        has_sound=bool(info.audio),
        indexed={task.name: task.done() for task in tasks(opened)},
        chapters=_chapters(opened),
    )


def _chapters(film: Film) -> list[str]:
    """The chapters that the file names, quoted, with their times."""
    chapters = []
    with open_container(film.path, film.settings.media) as container:
        for chapter in container.chapters()[:MOST_CHAPTERS]:
            start = float(chapter["start"] * (chapter["time_base"] or 0))
            title = chapter["metadata"].get("title", "")
            chapters.append(quote(f"[{clock(start)}] {title}", "film"))
    return chapters
