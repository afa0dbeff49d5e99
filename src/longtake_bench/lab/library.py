"""A library of worlds, with questions that exactly one of its films answers.

A question is kept if its script answers it and no other script establishes any part of the answer.
So exactly one film is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longtake.types import Line, Segment
from longtake_bench.lab.facts import Sighting, sentence
from longtake_bench.lab.frame_code import Moment
from longtake_bench.lab.prompt import Eyes
from longtake_bench.lab.queries import query_in, solve
from longtake_bench.lab.questions import LabQuestion, everything, make_questions
from longtake_bench.lab.world import Script, make_script

NAMELESS = frozenset({"scope", "count", "topic"})
"""Kinds of questions that mean something only once the film is named."""
DRAFTED = 30
"""Questions drafted per film; most of them are about more than one film of a large library."""


@dataclass(frozen=True)
class LibraryQuestion:
    """A question about a library, and the one film that answers it."""

    film: int
    """Number of the film in the library."""
    asked: LabQuestion


@dataclass(frozen=True)
class LibraryWorld:
    """Films and the questions about them."""

    scripts: tuple[Script, ...]
    questions: tuple[LibraryQuestion, ...]


def make_library(
    films: int, minutes: int, *, first_seed: int = 0, questions: int = 60, among: int | None = None
) -> LibraryWorld:
    """A library of worlds and up to ``questions`` questions, each about the next film in turn.

    Only the first ``among`` films are asked about, and a question must be unique in all of them: a
    library that grows by films which are not asked about keeps the questions that stay unique.
    """
    scripts = tuple(make_script(first_seed + number, minutes) for number in range(films))
    known = [everything(script) for script in scripts]
    drafts = []
    for script in scripts[: among or films]:
        made = make_questions(script, DRAFTED)
        drafts.append([question for question in made if question.kind not in NAMELESS])
    kept: list[LibraryQuestion] = []
    # one question per film and round, so that any number of them is spread over the films
    for turn in range(DRAFTED):
        for number, questions_of_film in enumerate(drafts):
            if turn < len(questions_of_film) and _is_unique(
                questions_of_film[turn], number, scripts, known
            ):
                kept.append(LibraryQuestion(number, questions_of_film[turn]))
                if len(kept) == questions:
                    return LibraryWorld(scripts, tuple(kept))
    return LibraryWorld(scripts, tuple(kept))


def _is_unique(
    question: LabQuestion, film: int, scripts: Sequence[Script], known: Sequence[Sequence[Sighting]]
) -> bool:
    """Whether no other film establishes anything that the question asks about."""
    located = query_in(question.text)
    if located is None:
        return False
    # the options of a question of order name deeds of its film: only the anchor must be unique
    too_high = 3 if question.options else 2
    for number, script in enumerate(scripts):
        if number != film:
            options, duration = question.options, script.duration
            finding = solve(located[1], known[number], options=options, duration=duration)
            if finding.level >= too_high:
                return False
    return True


def captions(script: Script, eyes: Eyes, *, step: int = 1) -> list[Line]:
    """What a captioner notices every ``step`` seconds; it misses and imagines as models do."""
    lines = []
    for second in range(0, int(script.duration), step):
        seen = eyes.look(Moment(script.seed, script.minutes, second))
        text = " ".join(sentence(sighting.fact) for sighting in seen)
        lines.append(Line(Segment(float(second), float(second + step)), text))
    return lines
