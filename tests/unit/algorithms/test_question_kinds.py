"""Questions tell by their words what kind of thing they ask for."""

from __future__ import annotations

import pytest

from longtake.algorithms.question_kinds import answer_type, holds


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many copies are printed?", "number"),
        ("How much does it cost?", "number"),
        ("In which year was it founded?", "number"),
        ("What colour is the van?", "colour"),
        ("Which colors does the flag have?", "colour"),
        ("Who is the narrator?", "name"),
        ("In which city did she live?", "name"),
        ("How does it work?", None),
        ("When does the train leave?", None),
    ],
)
def test_what_is_asked_for(question, kind):
    assert answer_type(question) == kind


@pytest.mark.parametrize(
    ("kind", "text", "is_held"),
    [
        ("number", "it weighs eighty kilograms", True),
        ("number", "And it's totally free.", True),
        ("number", "you must attribute the work", False),
        ("colour", "a gray van", True),
        ("colour", "a coloured van", False),
        ("name", "she lived in Cardiff", True),
        ("name", "Tiffany Antopolski / Wed 18:38", True),
        ("name", "Nobody lived there.", False),
        ("name", "Close Window", False),
    ],
)
def test_what_a_text_holds(kind, text, is_held):
    assert holds(kind, text) is is_held
