"""Exports of a film's chapters and summary, and overviews of films that are not open."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict

from longtake._util.timecode import clock
from longtake.agents.overview import KEY, Chapter, CitedSentence, FilmOverview, restored
from longtake.index.film import kept_key
from longtake.library.catalog import Entry
from longtake.library.collection import Library
from longtake.runner.films import open_store
from longtake.video.subtitles import escaped


def known_overview(library: Library, entry: Entry) -> FilmOverview | None:
    """A film's overview if one was made before; the film itself is not opened."""
    stored = open_store(library.settings).film(entry.fingerprint).read(kept_key(KEY))
    return None if stored is None else restored(stored[1])


def cited(statement: CitedSentence) -> str:
    """A sentence with its moment: ``It is yellow. [00:01:05]``"""
    return f"{_line(statement.text)} [{clock(statement.start)}]"


SHORTEST = 10.0
"""YouTube ignores a list with a chapter shorter than this."""


def markdown(name: str, overview: FilmOverview) -> str:
    """A heading, the summary, and a list of chapters."""
    lines = [f"# {_line(name)}", ""]
    if overview.summary:
        lines += [" ".join(map(cited, overview.summary)), ""]
    for chapter in overview.chapters:
        lines.append(f"- **{clock(chapter.start)}** {_line(chapter.title)}")
        lines += [f"  - {cited(each)}" for each in chapter.sentences]
    return "\n".join(lines) + "\n"


def as_json(name: str, overview: FilmOverview) -> str:
    """The overview as an object."""
    return json.dumps({"film": name, **asdict(overview)}, ensure_ascii=False, indent=2) + "\n"


def youtube(name: str, overview: FilmOverview) -> str:  # noqa: ARG001
    """Lines for the description of a video: the first at 0:00, none shorter than ten seconds."""
    kept = _long_enough(overview.chapters)
    width = (kept[-1].end if kept else 0) >= 3600
    lines = [
        f"{_short_clock(chapter.start, hours=width)} {_line(chapter.title)}" for chapter in kept
    ]
    return "\n".join(lines) + "\n"


def ffmetadata(name: str, overview: FilmOverview) -> str:
    """A metadata file for ``ffmpeg -i film.mp4 -i chapters.txt -map_metadata 1``."""
    parts = [";FFMETADATA1", f"title={_escaped(name)}"]
    for chapter in overview.chapters:
        start, end = round(chapter.start * 1000), round(chapter.end * 1000)
        parts += ["[CHAPTER]", "TIMEBASE=1/1000", f"START={start}", f"END={end}"]
        parts.append(f"title={_escaped(chapter.title)}")
    return "\n".join(parts) + "\n"


def webvtt(name: str, overview: FilmOverview) -> str:  # noqa: ARG001
    """A chapters track for ``<track kind="chapters">``."""
    cues = ["WEBVTT"]
    for number, chapter in enumerate(overview.chapters, start=1):
        start, end = clock(chapter.start, millis=True), clock(chapter.end, millis=True)
        # "-->" inside a title would begin another cue
        title = escaped(_line(chapter.title))
        cues.append(f"{number}\n{start} --> {end}\n{title}")
    return "\n\n".join(cues) + "\n"


FORMATS: Mapping[str, Callable[[str, FilmOverview], str]] = {
    "markdown": markdown,
    "json": as_json,
    "youtube": youtube,
    "ffmetadata": ffmetadata,
    "webvtt": webvtt,
}
"""Formats by name."""


def _long_enough(chapters: tuple[Chapter, ...]) -> list[Chapter]:
    """Chapters with short ones joined to the one before; the first begins at zero."""
    kept: list[Chapter] = []
    for chapter in chapters:
        if kept and (
            chapter.end - chapter.start < SHORTEST or kept[-1].end - kept[-1].start < SHORTEST
        ):
            kept[-1] = Chapter(kept[-1].start, chapter.end, kept[-1].title)
        else:
            start = chapter.start if kept else 0.0
            kept.append(Chapter(start, chapter.end, chapter.title))
    return kept


def _short_clock(seconds: float, *, hours: bool) -> str:
    whole = int(seconds)
    if hours:
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return re.sub(r"([=;#\\\n])", r"\\\1", _line(text))
