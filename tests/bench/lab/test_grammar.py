"""Facts and sentences."""

import pytest

from longtake_bench.lab.facts import (
    Deed,
    Person,
    Presence,
    Saying,
    Sighting,
    Sign,
    Thing,
    facts_in,
    sentence,
    wish,
    wished_in,
)
from longtake_bench.lab.queries import joined
from longtake_bench.lab.world import make_script

WHO = Person("red", "tall hat")
FACTS = [
    Deed(WHO, "lift", Thing("green", "cup"), "harbour"),
    Presence(WHO, "market"),
    Presence(None, "farm"),
    Sign("blue", "SILVER GATE 42", "school"),
    Sign("blue", None, "school"),
    Saying("glass anchor", "cost", "forty coins"),
    Saying("tiny clock", "leave", "at noon"),
    Saying("tiny clock", "own", "Ada"),
    Saying("tiny clock", "weigh", "twelve stones"),
]


@pytest.mark.parametrize("fact", FACTS, ids=sentence)
def test_a_fact_survives_being_said(fact):
    for text in (
        sentence(fact),
        f"[00:01:02] Well, {sentence(fact)} And more.",
        sentence(fact).lower(),
    ):
        assert [read for _, read in facts_in(text)] == [fact]


@pytest.mark.parametrize("fact", FACTS, ids=sentence)
def test_a_wish_is_no_fact(fact):
    assert list(facts_in(wish(fact))) == []


def test_a_whole_film_survives_being_said():
    script = make_script(4, 30)
    for happening in (*script.deeds, *script.signs, *script.sayings):
        assert [read for _, read in facts_in(sentence(happening.fact))] == [happening.fact]


def test_a_wish_is_understood():
    deed = Deed(WHO, "lift", None, "harbour")
    assert wished_in(f"Please look for this: {wish(deed)}.") == deed
    assert wished_in(wish(Sign("blue", None, "school"))) == Sign("blue", None, "school")
    assert wished_in("what does the glass anchor cost") == Saying("glass anchor")
    assert wished_in("nothing of the kind") is None


def test_a_text_that_was_read_joins_the_sign_that_was_seen_unread():
    seen = Sighting(Sign("blue", None, "school"), 100.0)
    read = Sighting(Sign(None, "SILVER GATE 42", None), 104.0)
    late = Sighting(Sign(None, "NORTH TOWER 11", None), 300.0)
    assert Sighting(Sign("blue", "SILVER GATE 42", "school"), 104.0) in joined([seen, read, late])
    assert len(joined([seen, read, late])) == 2
