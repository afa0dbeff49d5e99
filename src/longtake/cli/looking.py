"""What a film needs before it is asked or searched."""

from __future__ import annotations

from longtake.cli.output import progress, say, telling
from longtake.index.film import Film


def look_through(film: Film) -> None:
    """Look at every moment once, with a bar, and say where words will be missing."""
    with telling(), progress("looking through the film once") as advance:
        film.pictures.build(film.pictures.layers(), advance)
    if film.words.unheard:
        say(f"the film's speech is left out: {film.words.unheard}")
