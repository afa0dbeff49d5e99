"""Whether lines answer a question: names, repetitions, other answers, misspellings."""

import pytest
from support.footages import TestFootage
from support.rerankers import overlap

from longtake.retrieval.citing import is_from, supporting
from longtake.retrieval.passages import Passage
from longtake.retrieval.relevance import (
    Reader,
    conflicting,
    corrected,
    differs,
    mentions,
    missing_names,
    repeats,
)
from longtake.types import Evidence, Line, Question, Segment


def line(start, text):
    return Line(Segment(start, start + 4.0), text)


def cited(start, text, source="speech"):
    return Evidence(Segment(start, start + 4.0), source, text)


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    return overlap(tmp_path_factory.mktemp("reranker"))


def film(reranker, spoken, onscreen=()):
    footage = TestFootage(300, lines=spoken, onscreen=onscreen)
    footage.reranker = reranker
    return footage


def test_without_a_reranker_or_in_another_language_nothing_is_judged(reranker):
    assert not Reader(TestFootage(10), Question("Who bought pears at the market?"))
    german = Question("Wer hat gestern auf dem Markt Birnen gekauft und bezahlt?")
    assert not Reader(film(reranker, ()), german)
    assert Reader(film(reranker, ()), Question("Who bought pears at the market?"))


def test_support_is_the_score_for_the_answer_and_for_the_question(reranker):
    reader = Reader(film(reranker, ()), Question("Who bought pears?"))
    texts = ["Maria bought pears", "rain again"]
    assert reader.support("Maria", texts, 0.0).tolist() == [10.0, -10.0]
    assert reader.support("Maria", texts, -4.0).tolist() == [6.0, -14.0]
    assert reader.relevance(texts)[0] > reader.relevance(texts)[1]


def test_a_name_must_be_mentioned_where_the_answer_is(reranker):
    lines = [
        line(0, "My name is Tina Seelig."),
        line(10, "Ventures fail."),
        line(200, "Use shots."),
    ]
    footage = film(reranker, lines)
    question = "What does Tina Seelig say about shots?"
    assert missing_names("What does Steve Jobs say?", [cited(10, "Ventures fail.")], footage) == [
        "Steve Jobs"
    ]
    assert missing_names(question, [cited(10, "Ventures fail.")], footage) == []
    # long after it was mentioned, with nobody else introduced since
    assert missing_names(question, [cited(200, "Use shots.")], footage) == []
    cards = [line(150, "Lee Boonstra")]
    assert missing_names(question, [cited(200, "Use shots.")], film(reranker, lines, cards)) == [
        "Tina Seelig"
    ]


def test_the_first_word_and_the_speaker_are_no_missing_names(reranker):
    lines = [line(0, "Marketing: It is yellow.")]
    assert (
        missing_names(
            "Summarize what Marketing says.", [cited(0, lines[0].text)], film(reranker, lines)
        )
        == []
    )


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("at NASA's Goddard Space Flight Center", "Goddart Space Flight Center", True),
        ("at NASA's Goddard Space Flight Center", "Kennedy Space Center", False),
        ("Webb space telescope", "James Webb Space Telescope", True),
        ("to understand creative comments", "Creative Commons", True),
        ("to understand pears", "Creative Commons", False),
    ],
)
def test_a_name_is_mentioned_by_its_rarest_part(text, name, expected):
    assert mentions(text, name) is expected


def test_a_line_that_repeats_the_question_is_recognised():
    question = "What did Maria buy at the market?"
    assert repeats("What did Maria buy at the market? It is a red hat.", question)
    assert repeats("Anna: Q: what did maria buy at the market", question)
    assert not repeats("Maria bought a basket of pears at the market.", question)


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("It leaves at 9.", "The train leaves at ten.", True),
        ("It leaves at 9.", "The train leaves at nine.", False),
        ("Clara Jensen", "It was founded by Otto Lindqvist.", True),
        ("Clara Jensen", "It was founded by Clara Jensen in 1890.", False),
        ("pears", "What did Maria buy? It is a red hat.", True),
        ("pears", "What did Maria buy? It is pears.", False),
        ("pears", "Maria went home.", False),
    ],
)
def test_another_value_is_another_answer(answer, text, expected):
    assert differs(answer, text, "What did Maria buy?") is expected


def test_lines_that_answer_otherwise_are_found(reranker):
    spoken = [
        line(0, "The train to Bergen leaves at nine."),
        line(20, "We counted the boats."),
        line(40, "The train to Bergen leaves at ten."),
    ]
    footage = film(reranker, spoken)
    question = Question("When does the train to Bergen leave?")
    found = conflicting(question, "at nine", [cited(0, spoken[0].text)], footage)
    assert [each.text for each in found] == [spoken[2].text]
    assert conflicting(question, "at nine", [], footage) == []


def test_a_line_with_another_value_is_cited_only_if_no_other_supports_the_answer(reranker):
    nine = Passage(
        "speech", (line(0, "Seven wagons of the slow train to Bergen leave the harbour at nine."),)
    )
    ten = Passage(
        "speech", (line(40, "Seven wagons of the slow train to Bergen leave the harbour at ten."),)
    )
    question = Question("When do the wagons to Bergen leave?")
    reader = Reader(film(reranker, [*nine.lines, *ten.lines]), question)
    answer = "Seven wagons of the slow train to Bergen leave the harbour at nine."
    assert [each for each, _ in supporting(reader, answer, question, [ten, nine])] == [nine]
    assert [each for each, _ in supporting(reader, answer, question, [ten])] == [ten]


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("Maria bought pears.", "Maria bought a basket of pears.", True),
        ("They say so at 0:33.", "Share your creative wealth.", True),
        ("The bunny weighs 0.15 kilograms.", "A (slightly overweight) bunny", False),
        ("The weather is good.", "Narrator Sara Kraft", False),
    ],
)
def test_an_answer_has_only_words_and_numbers_that_were_read(answer, text, expected):
    assert is_from(answer, "What do they say about the weather?", text) == expected


def test_unknown_words_are_corrected_by_the_words_of_the_film():
    texts = ["VERY SPECIAL THANKS / Stanford Law School", "the smallest animal"]
    assert corrected("wich animl is the smalest?", texts) == "wich animal is the smallest?"
    assert corrected("Which law school is thanked?", texts) == "Which law school is thanked?"
