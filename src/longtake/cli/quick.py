"""A first answer about a long film that was never indexed, from what can be known in seconds."""

from __future__ import annotations

from longtake.cli.asking import AnsweredQuestion, AskOptions, ask_film
from longtake.cli.indexing import is_unread, show_notes
from longtake.cli.output import say
from longtake.index.film import Film
from longtake.index.glance import SECONDS, glance
from longtake.index.search import covered
from longtake.methods.lookup.method import Lookup
from longtake.types import Question


def wants_first_look(options: AskOptions, film: Film) -> bool:
    """Whether a first look comes first: the method only reads, and most is not read yet."""
    if options.method != Lookup.name or options.session.settings.budget.seconds is not None:
        return False
    return is_unread(film)


def ask_after_first_look(
    options: AskOptions, film: Film, question: Question
) -> AnsweredQuestion | None:
    """An answer from what is known or a first look; ``None`` if that does not tell."""
    # an earlier question may have looked already
    if any(film.known_lines()):
        answered = _hurried(options, film, question)
        if answered is not None:
            return answered
    with show_notes():
        glance(film)
    say(f"a first look of {SECONDS:.0f} s: {covered(film)['speech']:.0%} of the speech is known")
    answered = _hurried(options, film, question)
    if answered is None:
        say("No answer yet; indexing the whole film (Ctrl-C keeps what is done)")
    return answered


def _hurried(options: AskOptions, film: Film, question: Question) -> AnsweredQuestion | None:
    """An answer with a citation from what is known; ``None`` if there is none."""
    film.words.hurried = True
    try:
        asked = ask_film(options, film, question)
    finally:
        film.words.hurried = False
    # an option chosen without a line that holds it is a guess
    if asked.result.answer.status != "answered" or not asked.result.answer.evidence:
        return None
    say(f"'longtake index {film.path}' reads the rest, and the answer may get better")
    return asked
