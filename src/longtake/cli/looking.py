"""What a film needs before it is asked or searched."""

from __future__ import annotations

from longtake.cli.output import progress, say, telling
from longtake.index.film import Film


def look_through(film: Film) -> None:
    """Look at every moment once, with a bar, and say where words will be missing."""
    with telling(), progress("looking through the film once") as advance:
        film.frame_layers(film.looking_layers(), advance)
    if film.unheard:
        say(f"the film's speech is left out: {film.unheard}")
