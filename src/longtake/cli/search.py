"""``longtake search``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from shlex import quote

import click

from longtake._util import visible
from longtake._util.timecode import clock
from longtake.algorithms.speakers import speakers
from longtake.cli.indexing import LONG, say_languages, show_notes
from longtake.cli.options import COUNT, FILM, common, within_option
from longtake.cli.output import Output, hit_data, prints_json, progress, say
from longtake.config import Settings
from longtake.index.film import Film
from longtake.index.search import SearchHit, SearchResult, check_text, is_apart, stretch_of
from longtake.index.search import search as find
from longtake.index.tasks import (
    IndexTask,
    build_tasks,
    frame_task,
    onscreen_task,
    speech_task,
    spread,
)
from longtake.runner.films import open_film
from longtake.types import Segment

READING = {
    "frames": "indexing pictures",
    "speech": "recognising speech",
    "onscreen": "reading on-screen text",
}
"""Progress messages, by the part of the index that is built."""
NAMES = {"speech": "said", "onscreen": "on screen", "image": "picture"}
"""Names of the sources of hits."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=FILM, metavar="FILM...")
@click.argument("text")
@within_option
@click.option("--top", type=COUNT, default=10, help="Maximum number of hits per film.")
@click.option(
    "--by", default="", show_default=False, metavar="NAME", help="Only what this speaker says."
)
@click.option("--unsure", is_flag=True, help="Also show unsure hits, marked with '?'.")
@common
def search(
    paths: tuple[Path, ...],
    text: str,
    within: Segment | None,
    top: int,
    by: str,
    unsure: bool,
    settings: Settings,
) -> Output:
    """Find moments by words: in speech, pictures and on-screen text.

    The first search of a film reads its subtitles or recognises its speech, and indexes its
    pictures. Hits are shown as soon as they are found; interrupt it when you have seen enough, and
    finished work is kept. If nothing is found in a film of less than five minutes, on-screen text
    is read too; in a longer one, it is searched as far as 'longtake index' has read it.

    Only confident hits are shown: words that are said or shown, or a picture that stands out.

    \b
    Example:
      longtake search lecture.mp4 "gradient descent" --within 00:10:00-00:40:00
    """
    check_text(text)
    films = []
    for path in paths:
        film = open_film(path, settings)
        with show_notes():
            # rejects a part outside the film before the film is indexed
            part = stretch_of(film, within)
            if len(paths) > 1 and not prints_json():
                click.echo(visible(f"{path}:"))
            show = (lambda hit: None) if prints_json() else _show  # noqa: ARG005
            result = search_film(film, text, part, top, by, show)
        hits = [hit_data(hit) for hit in result.hits if hit.sure or unsure]
        films.append({"film": path, "hits": hits, "covered": result.covered})
        if by and by.lower() not in map(str.lower, speakers(film.words.speech())):
            say(f"no speaker is called {by}; list them: longtake speakers {quote(str(path))}")
        # at once, since indexing the next film may take minutes
        if not prints_json():
            _conclude(film, text, result, unsure=unsure)
    return Output({"text": text, "films": films})


def search_film(
    film: Film, text: str, stretch: Segment, top: int, by: str, show: Callable[[SearchHit], None]
) -> SearchResult:
    """Search a film; index its pictures and speech first where that is missing.

    Sure hits are shown as soon as they are found. If a short film has none, its on-screen text is
    read too.
    """
    frames = frame_task(film)
    # before building, which holds a lock that recognising speech would wait for
    looked = frames.done()
    shown: list[SearchHit] = []

    def search_known(*, pictures: bool = True) -> SearchResult:
        result = find(film, text, within=stretch, top=top, pictures=pictures, by=by)
        for hit in result.hits:
            if hit.sure and is_apart(hit, shown) and len(shown) < top:
                shown.append(hit)
                show(hit)
        return result

    def build(*parts: IndexTask) -> None:
        missing = [part for part in parts if not part.done()]
        build_tasks(film, missing, lambda part: progress(READING[part.name]))

    search_known(pictures=looked)
    heard = speech_task(film, stretch, hearing_order(lambda: search_known(pictures=looked).hits))
    build(*([] if by else [frames]), heard)
    if film.words.speech_note:
        say(film.words.speech_note)
    result = search_known()
    if not shown and not by and film.duration < LONG:
        build(onscreen_task(film))
        result = search_known()
    return result


def hearing_order(
    found: Callable[[], Sequence[SearchHit]],
) -> Callable[[list[Segment]], list[Segment]]:
    """Order the parts to recognise: alternately spread over the film, and near the best hit."""
    nearest = cycle((False, True))

    def order(tiles: list[Segment]) -> list[Segment]:
        hits = found()
        if next(nearest) and hits:
            return sorted(tiles, key=lambda tile: abs(tile.start + tile.end - 2 * hits[0].time))
        tiles = sorted(tiles)
        return [tiles[number] for number in spread(len(tiles))]

    return order


def _show(hit: SearchHit) -> None:
    sources = ", ".join(NAMES[source] for source in NAMES if source in hit.sources)
    quoted = f"  “{hit.text}”" if hit.text else ""
    line = visible(f"{' ' if hit.sure else '?'} [{clock(hit.time)}]  {sources}{quoted}")
    # sys.stdout is replaced while a progress bar is shown, and click would bypass it
    click.echo(line, file=sys.stdout)


def _conclude(film: Film, text: str, result: SearchResult, *, unsure: bool) -> None:
    """Show unsure hits if wanted, and print what was not searched."""
    nearest = [hit for hit in result.hits if not hit.sure]
    if len(nearest) == len(result.hits):
        say_languages(film, text)
        hint = "; --unsure shows the nearest moments" if nearest and not unsure else ""
        say(f"nothing found for sure{hint}")
    for hit in nearest if unsure else ():
        _show(hit)
    if film.words.readable is not None and result.covered["onscreen"] < 1:
        command = f"longtake index {quote(str(film.path))}"
        say(f"not all on-screen text is read yet; to read it: {command}")
