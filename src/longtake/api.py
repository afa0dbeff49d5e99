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
    """A film one can ask. Everything derived from it is kept in the user's cache."""

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
        """Ask a question; further keywords are fields of the method, as in ``max_rounds=2``.

        Without a model named, everything runs on this machine.
        """
        settings = self.settings
        if budget is not None:
            settings = replace(settings, budget=budget)
        models = (model,) if isinstance(model, str) else tuple(model)
        casting = Casting(models, Path(team) if team else None)
        session = Session(settings, casting, seed).with_fields(method, fields)
        return session.ask(self.film, Question(question, tuple(options)), method, sinks=sinks)

    def search(self, text: str, *, within: Segment | None = None, top: int = 10) -> Search:
        """The moments that fit a text best."""
        return search(self.film, text, within=within, top=top)

    def index(self) -> None:
        """Look, listen and read through the film now, rather than when asked."""
        for task in tasks(self.film):
            if not task.done():
                task.build(ignore)

    def __repr__(self) -> str:
        return f"OpenFilm({str(self.film.path)!r})"


def open(  # noqa: A001
    path: Path | str, *, subtitles: Path | str | None = None, settings: Settings | None = None
) -> OpenFilm:
    """Open a film with the user's settings, or with these."""
    settings = settings or config.load(method_names=registry.methods.names())
    film = open_film(Path(path), settings, subtitles=Path(subtitles) if subtitles else None)
    return OpenFilm(film, settings)
