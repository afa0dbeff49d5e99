"""The notes that VideoAgent's language model reads, and those an answer cites."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from longtake.footage.protocol import Footage
from longtake.prompts import phrase
from longtake.steps.answer import Guess, in_words
from longtake.types import Evidence, Line, Question, Segment

State: TypeAlias = dict[int, str]
"""Captions by frame number on the 1 fps grid."""
CITED = 3
"""Notes cited for an answer."""


def story(footage: Footage, state: State) -> list[Line]:
    """The notes in time order; frames without a caption are left out."""
    notes = [Line(_moment(footage, frame), state[frame]) for frame in sorted(state) if state[frame]]
    # a note after a time, so that what models read has the same shape as ever
    return notes or [Line(Segment(0.0, 0.0), phrase("videoagent", "nothing_seen"))]


def with_reason(said: Guess, question: Question) -> str:
    """An answer with its reason, as the next step reads it."""
    if said.abstained:
        return phrase("videoagent", "no_answer")
    return f"{in_words(question, said.choice, said.text)} ({said.reason})"


def cite(footage: Footage, question: Question, state: State, said: Guess) -> list[Evidence]:
    """The notes closest in meaning to the question with its answer, in time order."""
    noted = [frame for frame in sorted(state) if state[frame]]
    if said.abstained or not noted:
        return []
    chosen = question.options[question.letters.index(said.choice)] if said.choice else said.text
    captions = [state[frame] for frame in noted]
    rows = footage.meanings([f"{question.text} {chosen}", *captions])
    closeness = rows[1:] @ rows[0]
    best = np.argsort(-closeness, kind="stable")[:CITED]
    cited = []
    for index in sorted(best.tolist()):
        score = round(float(closeness[index]), 4)
        segment = _moment(footage, noted[index])
        cited.append(Evidence(segment, "caption", captions[index], score))
    return cited


def _moment(footage: Footage, frame: int) -> Segment:
    time = float(footage.times[frame])
    return Segment(time, time)
