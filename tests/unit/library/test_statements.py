"""How much of a text a film states, and which films a question with options proposes."""

from dataclasses import replace

import pytest

from longtake.library.ask import PASSAGES, candidates
from longtake.library.catalog import Entry
from longtake.library.search import (
    NOTHING,
    FilmHits,
    FoundMoment,
    LibrarySearchResult,
    SentenceMatcher,
)
from longtake.library.segments import query_words
from longtake.types import Question, Segment


def test_stop_words_are_left_out_unless_there_are_no_others():
    assert query_words("What does the Saddle cost?") == ["saddle", "cost"]
    assert query_words("to be or not") == ["to", "be", "or", "not"]
    assert query_words("…") == []


def test_inflection_does_not_matter():
    (statement,) = SentenceMatcher("What does the saddle cost?").best(["The saddles cost ten."])
    assert statement.share == 1


def test_a_sentence_counts_alone():
    asked = SentenceMatcher("Who washes the red cup?")
    together, apart = asked.best(["Ann washes a red cup.", "Ann washes a pot. Bob has a red cup."])
    assert together.share == 1
    assert apart.share < 0.7


def test_neighbouring_words_break_a_tie():
    asked = SentenceMatcher("the red coat and the tall hat")
    right, swapped = asked.best(["a red coat, a tall hat", "a red hat, a tall coat"])
    assert right.words == swapped.words
    assert right.share > swapped.share


def test_two_sentences_of_a_film_may_state_a_question_of_two_parts():
    asked = SentenceMatcher("What does the man who hid the pencil open at the museum?")
    bridge, end, other = asked.best(
        ["A man hides the pencil.", "He opens a chest at the museum.", "Rain."]
    )
    assert other == NOTHING
    alone = max(bridge.share, end.share)
    assert asked.together([bridge, other]) < asked.together([bridge, end, other])
    assert asked.together([bridge, end]) > alone
    assert asked.together([]) == 0


def hits(name, stated, *starts):
    moments = tuple(
        FoundMoment(start, Segment(start, start + 10), 0.5, sure=False, sources=())
        for start in starts
    )
    return FilmHits(Entry(name, name, 60.0), 1.0, moments, stated)


@pytest.fixture
def search():
    plain = LibrarySearchResult([hits("likely", 0.6, 0), hits("right", 0.6, 10, 20, 30, 40)], 9)
    right = LibrarySearchResult([hits("right", 1.0, 50), hits("likely", 0.6, 0)], 9)
    wrong = LibrarySearchResult([hits("other", 0.7, 0)], 9)
    return lambda text: {"Q": plain, "Q a": wrong, "Q b": right}[text]


def test_without_options_the_search_alone_proposes(search):
    assert candidates(search, Question("Q"), 5) is search("Q")


def test_the_option_that_fits_best_counts_for_a_film(search):
    found = candidates(search, Question("Q", ("a", "b")), 5)
    assert [each.entry.name for each in found.films] == ["right", "likely", "other"]
    assert found.searched == 9


def test_moments_of_the_question_and_the_option_take_turns(search):
    first = candidates(search, Question("Q", ("a", "b")), 5).films[0]
    starts = [moment.segment.start for moment in first.moments]
    assert starts == [10, 50, 20, 30][:PASSAGES]


def test_no_more_films_than_asked_for(search):
    assert len(candidates(search, Question("Q", ("a", "b")), 2).films) == 2


def test_what_a_picture_may_show_is_not_quoted():
    said = FoundMoment(0, Segment(0, 10), 0.5, sure=True, sources=(), text="a candle")
    assert said.words == "“a candle”"
    assert replace(said, described=True).words == "(perhaps a candle)"
    assert replace(said, text="").words == ""
