"""Questions tell by their words what kind of thing they ask for."""

from __future__ import annotations

import pytest

from longtake.algorithms.question_kinds import (
    answer_type,
    asks_about_all,
    asks_for_account,
    holds,
    said_when,
)


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


@pytest.mark.parametrize(
    ("question", "is_account", "is_about_all", "what"),
    [
        ("What is this film about?", False, True, ""),
        ("What is the main topic?", False, True, ""),
        ("What is the main function of the remote?", False, False, ""),
        ("Summarize the meeting.", True, True, ""),
        ("Summarize the discussion about the budget.", True, False, ""),
        ("Why did the team disagree?", True, False, ""),
        ("What did Anna say about the price?", True, False, ""),
        ("What does the sign say?", False, False, ""),
        ("How many ships are there?", False, False, ""),
        ("When does she say that ventures fail?", False, False, "ventures fail"),
        ("At what point do they mention the red car?", False, False, "the red car"),
        ("When is the word copyright first mentioned?", False, False, "copyright"),
        ("When was the bridge built?", False, False, ""),
    ],
)
def test_how_much_is_asked_for(question, is_account, is_about_all, what):
    assert asks_for_account(question) == is_account
    assert asks_about_all(question) == is_about_all
    assert said_when(question) == what
