"""Asks a film one question and shows the answer, for ``ask`` and ``chat``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import click

from longtake.cli.answers import plain, report_spending, show
from longtake.cli.looking import unseen
from longtake.cli.output import say
from longtake.cli.watching import watching
from longtake.events import Sink
from longtake.index.film import Film
from longtake.media.images import encoded
from longtake.methods.base import bounds_of
from longtake.registry import methods
from longtake.session.asking import Session
from longtake.session.estimate import CHECK_CALLS
from longtake.session.history import remember
from longtake.session.sharing import Told, as_html, as_markdown
from longtake.sinks.meter import Meter
from longtake.stopping import Stop
from longtake.types import Question, Result

FORMATS = ("text", "md", "json", "html")
PICTURE_WIDTH = 480
CALIBRATED = "calibrated"
"""The note of a run whose confidence was turned into a probability."""


@dataclass(frozen=True)
class AskOptions:
    """How questions are asked and answers shown."""

    session: Session
    method: str
    quiet: bool = False
    verbose: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles whose models are asked."""
        return tuple(methods.get(self.method).roles)


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question that was answered."""

    film: Film
    question: Question
    result: Result
    meter: Meter = field(default_factory=Meter)

    @property
    def told(self) -> Told:
        """The answer, as it is shown and exported."""
        answered, film = self.result, self.film
        return Told(
            self.question.text,
            film.name,
            answered.method,
            answered.answer,
            answered.usage,
            self.question.options,
            unseen(film, self.meter.moments),
            calibrated=CALIBRATED in self.meter.notes,
        )

    @property
    def row(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        path, question = str(self.film.path), self.question.text
        return {"film": path, "question": question, **plain(self.result)}


def ask_film(
    options: AskOptions,
    film: Film,
    question: Question,
    *,
    sinks: Sequence[Sink] = (),
    stop: Stop | None = None,
    remembered: str = "",
) -> AnsweredQuestion:
    """Ask, with progress; the answer goes into the history, under the words ``remembered``."""
    session, meter = options.session, Meter()
    bounds = bounds_of(session.method(options.method), film.duration, question)
    most = None if bounds is None else bounds.calls + CHECK_CALLS * session.settings.answers.verify
    shown = watching(quiet=options.quiet, verbose=options.verbose, most_calls=most)
    with report_spending(meter), shown as watchers:
        result = session.ask(
            film, question, options.method, sinks=[meter, *watchers, *sinks], stop=stop
        )
    asked = AnsweredQuestion(film, question, result, meter)
    try:
        remember(session.settings, film.path.absolute(), remembered or question.text, plain(result))
    except OSError as error:
        say(f"not kept in the history: {error}")
    return asked


def show_asked(asked: AnsweredQuestion, kind: str, options: AskOptions) -> None:
    """Print an answer as text, Markdown or HTML."""
    told = asked.told
    if kind == "md":
        address = quote(str(asked.film.path))
        click.echo(as_markdown(told, lambda _, time: f"{address}#t={time:.2f}"))
    elif kind == "html":
        click.echo(as_html(told, lambda _, time: _jpeg(asked.film, time)))
    else:
        meter = asked.meter if options.verbose else None
        answered = asked.result
        show(
            answered.answer,
            answered.usage,
            unseen=told.unseen,
            quiet=options.quiet,
            meter=meter,
            calibrated=told.calibrated,
        )


def _jpeg(film: Film, time: float) -> bytes:
    (frame,) = film.at([min(time, film.duration)], width=PICTURE_WIDTH)
    return encoded(frame.pixels, "jpeg")
