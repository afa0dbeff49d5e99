"""``longtake search``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtake._util import visible
from longtake._util.timecode import clock, parse_range
from longtake.cli.indexing import is_unread, look_through, show_notes
from longtake.cli.options import COUNT, PATH, common
from longtake.cli.output import emit_json, say
from longtake.config import Settings
from longtake.index.film import Film
from longtake.index.layers import Glimpses
from longtake.index.search import SearchHit, SearchResult, check_text, stretch_of
from longtake.index.search import search as find
from longtake.index.tasks import SECONDS, glance
from longtake.runner.films import open_film

SOURCES = {"speech": "speech", "onscreen": "on-screen text", "image": "pictures"}
"""The sources that 'longtake index' reads, as they are called."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="FILM...")
@click.argument("text")
@click.option(
    "--within",
    metavar="START-END",
    help="Search only this part, as in 00:10:00-00:20:00; clipped to the film.",
)
@click.option("--top", type=COUNT, default=10, show_default=True, help="Most hits per film.")
@common
def search(
    paths: tuple[Path, ...],
    text: str,
    within: str | None,
    top: int,
    settings: Settings,
    as_json: bool,
) -> None:
    """Find moments by words: in pictures, on-screen text and speech.

    A long film that is new gets a first look of some seconds at what is said and shown. If that
    does not find the words, its pictures are indexed, which is kept if you interrupt it. Speech and
    on-screen text are searched as far as 'longtake index' has got; the first line says what has not
    been read yet. A star marks hits that a source is sure of; the others are the nearest that there
    is.

    \b
    Example:
      longtake search lecture.mp4 "gradient descent" --within 00:10:00-00:40:00
    """
    check_text(text)
    stretch = parse_range(within) if within is not None else None
    reports = []
    for path in paths:
        film = open_film(path, settings)
        with show_notes():
            # rejects a part outside the film before the film is indexed
            stretch_of(film, stretch)
            result = _glanced(film, text, top) if stretch is None else None
            if result is None:
                look_through(film)
                result = find(film, text, within=stretch, top=top)
        hits = [_plain(hit) for hit in result.hits]
        reports.append({"film": str(path), "hits": hits, "covered": result.covered})
        # each film is shown as soon as it is searched: the next may take minutes to index
        if not as_json:
            _show(path, result, several=len(paths) > 1)
    if as_json:
        emit_json({"text": text, "films": reports})


def _glanced(film: Film, text: str, top: int) -> SearchResult | None:
    """What a first look at a long new film finds; ``None`` if nothing for sure, or not needed."""
    if not is_unread(film) or film.pictures.has(Glimpses()):
        return None
    glance(film)
    result = find(film, text, top=top, glanced=True)
    if any(hit.sure for hit in result.hits):
        return result
    say(f"not found in a first look of {SECONDS:.0f} s; now indexing the film's pictures")
    return None


def _plain(hit: SearchHit) -> dict[str, Any]:
    return {
        "time": hit.time,
        "start": hit.segment.start,
        "end": hit.segment.end,
        "score": hit.score,
        "sure": hit.sure,
        "sources": hit.sources,
        "text": hit.text,
    }


def _show(path: Path, result: SearchResult, *, several: bool) -> None:
    if several:
        click.echo(visible(f"{path}:"))
    unread = [
        f"{name} ({result.covered[source]:.0%} known)"
        for source, name in SOURCES.items()
        if result.covered[source] < 1
    ]
    if unread:
        say(f"not fully read yet: {', '.join(unread)}; 'longtake index {path}' reads the rest")
    # said before the list: what comes nearest may be far
    if not any(hit.sure for hit in result.hits):
        say("nothing found with confidence" + ("; the nearest are:" if result.hits else ""))
    for hit in result.hits:
        star = "*" if hit.sure else " "
        sources = ", ".join(f"{source} {score:.2f}" for source, score in hit.sources.items())
        quoted = f"  “{hit.text}”" if hit.text else ""
        click.echo(visible(f"{star} [{clock(hit.time)}]  {sources:<34}{quoted}"))
