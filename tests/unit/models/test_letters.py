import pytest

from longtake.models.replies.letters import read_letter
from longtake.types import Question

QUESTION = Question(
    "Who holds the cup?", ("A man in a hat", "The red dog", "A woman, aged 30", "Nobody at all")
)


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B.", "B"),
        ("**B**", "B"),
        ("[B]", "B"),
        ("Answer: B.", "B"),
        ("Answer: (B)", "B"),
        ("answer: b", "B"),
        ("The answer is B", "B"),
        ("The correct answer is (B).", "B"),
        ("The best option is B, because it barks.", "B"),
        ("Option B", "B"),
        ("Final answer: **C**", "C"),
        ("\\boxed{D}", "D"),
        ("The answer is \\boxed{D}", "D"),
        ("B. The red dog", "B"),
        ("B) the red dog", "B"),
        ("B: The red dog!", "B"),
        ("A. A man in a hat", "A"),
        ("the red dog", "B"),
        ("The Red Dog.", "B"),
        ("a woman aged 30", "C"),
        ("B\n\nBecause it barks.", "B"),
        ("I think the answer is C", "C"),
        ("It is not B; the answer is C.", "C"),
    ],
)
def test_the_forms_in_which_models_write_letters(said: str, letter: str | None) -> None:
    assert read_letter(said, QUESTION) == letter


@pytest.mark.parametrize(
    "said",
    [
        "",
        "?",
        "A or B",
        "A/B",
        "A and C",
        "A, B",
        "(A) or (B)",
        "Answer: A or B",
        "The answer is either A or B",
        "The answer is A. No, the answer is B.",
        "B or maybe C",
        "B, or C",
        "E",
        "Answer: E",
        "Z",
        "A man walks in",
        "A dog",
        "I am not sure",
        "The answer is a man",
        "The answer is not A",
        "None of the above",
        "B. A man in a hat",
        "AB",
        "Because",
        "cannot be determined",
    ],
)
def test_what_names_no_single_option_is_no_answer(said: str) -> None:
    assert read_letter(said, QUESTION) is None


def test_two_options_of_one_text_are_not_told_apart() -> None:
    assert read_letter("a dog", Question("?", ("A dog", "a dog!", "a cat"))) is None


def test_letters_beyond_the_options_do_not_exist() -> None:
    assert read_letter("C", Question("?", ("yes", "no"))) is None


def test_options_that_are_letters_or_numbers() -> None:
    question = Question("How many?", ("3", "4", "5"))
    assert read_letter("4", question) == "B"
    assert read_letter("B", question) == "B"
    assert read_letter("6", question) is None
