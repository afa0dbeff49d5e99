import pytest

from longtake.llm.structured.letters import read_letter
from longtake.types import Question

QUESTION = Question(
    "Who holds the cup?", ("A man in a hat", "The red dog", "A woman, aged thirty", "Nobody at all")
)


@pytest.mark.parametrize(
    "said",
    ["?", "B or maybe C", "B, or C", "A dog", "AB", "Because", "The red dog\nNobody at all",
     "Looking at option B, the dog barks."],
)  # fmt: skip
def test_what_names_no_single_option_is_no_answer(said):
    assert read_letter(said, QUESTION) is None


def test_two_options_of_one_text_are_not_told_apart() -> None:
    assert read_letter("a dog", Question("?", ("A dog", "a dog!", "a cat"))) is None


def test_an_option_that_is_the_letter_of_another() -> None:
    question = Question("Which letter is shown?", ("B", "A", "X"))
    assert read_letter("B", question) is None
    assert read_letter("C", question) == "C"
    assert read_letter("X", question) == "C"


@pytest.mark.parametrize("said", ["B o", "The answer is B o"])
def test_the_last_word_of_a_text_that_was_cut_off_does_not_count(said: str) -> None:
    assert read_letter(said, QUESTION, cut=True) is None
    assert read_letter("The answer is B, as it bar", QUESTION, cut=True) == "B"


def test_options_that_are_letters_or_numbers() -> None:
    question = Question("How many?", ("3", "4", "5"))
    assert read_letter("4", question) == "B"
    assert read_letter("B", question) == "B"
    assert read_letter("6", question) is None
