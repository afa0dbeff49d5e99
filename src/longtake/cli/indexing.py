"""Indexing from the command line, with a progress bar and notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longtake.algorithms.lexical import language_of
from longtake.cli.output import on_terminal, progress, say
from longtake.errors import MediaError
from longtake.index.film import Film
from longtake.index.layers import GLIMPSES
from longtake.index.search import covered
from longtake.tracing.events import Stream
from longtake.tracing.sinks import NoteSink
from longtake.video.container import films_in

LONG = 300.0
"""Seconds; indexing a longer film takes too long for a first answer."""


def is_unread(film: Film) -> bool:
    """Whether a film is long and its speech or on-screen text is not completely indexed."""
    if film.duration < LONG:
        return False
    known = covered(film)
    return min(known["speech"] if film.video.info.audio else 1.0, known["onscreen"]) < 1.0


@contextmanager
def show_notes() -> Iterator[None]:
    """Print notes, for example about a damaged file, for work outside a run."""
    with Stream(NoteSink(say)).active():
        yield


def say_languages(film: Film, text: str) -> None:
    """Warn if a question is in another language than the film, since few words will match."""
    asked = language_of(text)
    spoken = language_of(" ".join(line.text for line in film.known_lines()[0][:50]))
    if asked and spoken and asked != spoken:
        say(f"the question is in {asked} and the film in {spoken}: ask in {spoken}")


def files_at(path: Path) -> list[Path]:
    """A film, or the films below a folder."""
    if not path.is_dir():
        return [path]
    files = [found.path for found in films_in([path])]
    if not files:
        raise MediaError(path, "not_found", "no films in this folder")
    return files


def look_through(film: Film) -> None:
    """Index the pictures of a film, and warn if its speech cannot be used."""
    if not on_terminal() and not film.pictures.has(GLIMPSES):
        say(f"indexing {film.name}, once")  # where no bar is shown
    with show_notes(), progress("indexing the film's pictures") as advance:
        film.pictures.build(film.pictures.layers(), advance)
    if film.words.unheard:
        say(film.words.speech_note)
