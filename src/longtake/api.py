"""longtake from Python::

import longtake

film = longtake.open("film.mp4")
result = film.ask("Why does the man hold up the cup?", method="videoagent")
print(result.answer.text, result.answer.evidence)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from longtake import config, registry
from longtake.config import BudgetSettings, Settings
from longtake.events import Sink
from longtake.index.film import Film
from longtake.index.layers import ignore
from longtake.index.search import Search, search
from longtake.index.tasks import tasks
from longtake.session.asking import DEFAULT_METHOD, Session
from longtake.session.casting import Casting
from longtake.session.films import open_film
from longtake.types import Question, Result, Segment


class OpenFilm:
    """A film to ask questions about. Everything derived from it is kept in the user's cache."""

    def __init__(self, film: Film, settings: Settings) -> None:
        self.film = film
        self.settings = settings

    def ask(
        self,
        question: str,
        options: Sequence[str] = (),
        *,
        method: str = DEFAULT_METHOD,
        model: str | Sequence[str] = (),
        team: Path | str | None = None,
        budget: BudgetSettings | None = None,
        seed: int = 0,
        sinks: Sequence[Sink] = (),
        **fields: Any,
    ) -> Result:
        """Ask a question; further keywords set fields of the method, as in ``max_rounds=2``.

        Without ``model`` or ``team``, everything runs on this machine.
        """
        settings = self.settings
        if budget is not None:
            settings = replace(settings, budget=budget)
        # a string is a sequence too, of single characters
        models = (model,) if isinstance(model, str) else tuple(model)
        casting = Casting(models, Path(team) if team else None)
        session = Session(settings, casting, seed).with_fields(method, fields)
        return session.ask(self.film, Question(question, tuple(options)), method, sinks=sinks)

    def search(self, text: str, *, within: Segment | None = None, top: int = 10) -> Search:
        """Find the moments that match a text best."""
        return search(self.film, text, within=within, top=top)

    def index(self) -> None:
        """Index pictures, speech and on-screen text now, rather than on the first question."""
        for task in tasks(self.film):
            if not task.done():
                task.build(ignore)

    def __repr__(self) -> str:
        return f"OpenFilm({str(self.film.path)!r})"


def open(  # noqa: A001
    path: Path | str, *, subtitles: Path | str | None = None, settings: Settings | None = None
) -> OpenFilm:
    """Open a film with the given settings, or else with the user's own."""
    settings = settings or config.load(method_names=registry.methods.names())
    subtitle_file = Path(subtitles) if subtitles else None
    film = open_film(Path(path), settings, subtitles=subtitle_file)
    return OpenFilm(film, settings)
