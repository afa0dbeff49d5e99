"""``longtake search``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake.cli.looking import look_through
from longtake.cli.options import common
from longtake.cli.output import emit_json, say, telling
from longtake.config import Settings
from longtake.display import visible
from longtake.index.search import Search, check_text, stretch_of
from longtake.index.search import search as find
from longtake.session.films import open_film
from longtake.timecode import clock, parse_range


@click.command()
@click.argument(
    "films", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILM..."
)
@click.argument("text")
@click.option(
    "--within",
    metavar="START-END",
    help="Only this stretch, as in 00:10:00-00:20:00; clipped to the film.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Most hits per film."
)
@common
def search(
    films: tuple[Path, ...],
    text: str,
    within: str | None,
    top: int,
    settings: Settings,
    as_json: bool,
) -> None:
    """Find moments by words: in pictures, on-screen text and speech.

    Looks through the film once if it was not indexed; speech and on-screen text are searched as far as
    'longtake index' has got, and the last line says how far that is. A star marks what a source is sure of.

    \b
    Example:
      longtake search lecture.mp4 "gradient descent" --within 00:10:00-00:40:00
    """
    check_text(text)
    stretch = parse_range(within) if within is not None else None
    reports = []
    for path in films:
        film = open_film(path, settings)
        with telling():
            stretch_of(film, stretch)  # outside the film is said before it is looked through
            look_through(film)
            found = find(film, text, within=stretch, top=top)
        reports.append({"film": str(path), **_plain(found)})
        if not as_json:
            _show(path, found, several=len(films) > 1)
    if as_json:
        emit_json({"text": text, "films": reports})


def _plain(found: Search) -> dict[str, object]:
    return {
        "hits": [
            {
                "time": h.time,
                "start": h.segment.start,
                "end": h.segment.end,
                "score": h.score,
                "sure": h.sure,
                "sources": h.sources,
                "text": h.text,
            }
            for h in found.hits
        ],
        "covered": found.covered,
    }


def _show(path: Path, found: Search, *, several: bool) -> None:
    if several:
        click.echo(visible(f"{path}:"))
    for hit in found.hits:
        sources = ", ".join(f"{source} {score:.2f}" for source, score in hit.sources.items())
        quoted = f"  “{hit.text}”" if hit.text else ""
        click.echo(
            visible(f"{'*' if hit.sure else ' '} [{clock(hit.time)}]  {sources:<34}{quoted}")
        )
    if not any(hit.sure for hit in found.hits):
        say("nothing found with confidence")
    shares = ", ".join(f"{source} {share:.0%}" for source, share in found.covered.items())
    say(f"of the film known to each source: {shares}")
