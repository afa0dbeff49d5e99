"""Questions in the shapes in which harnesses write them."""

from __future__ import annotations

import pytest

from longtake.server.openai.requests import read_question

QUESTION = "What is on the table?"
OPTIONS = ("a red cup", "a hat. Or two", "nothing (really)", "B. Franklin's portrait")
LETTERED = "\n".join(f"{'ABCD'[n]}. {option}" for n, option in enumerate(OPTIONS))
ROUND = "\n".join(f"({'ABCD'[n]}) {option}" for n, option in enumerate(OPTIONS))

# the prompts as the harnesses build them, by task
PROMPTS = {
    "lmms-eval videomme": (
        "Select the best answer to the following multiple-choice question based on the video and "
        "the subtitles. Respond with only the letter (A, B, C, or D) of the correct option.\n"
        f"{QUESTION}\n{LETTERED}\nThe best answer is:"
    ),
    "lmms-eval videomme qwen3_vl": f"{QUESTION}\nOptions:\n{LETTERED}\nThe best answer is:",
    "lmms-eval mlvu": (f"{QUESTION}\n{ROUND}\n\nOnly give the best option.\nBest option: ("),
    "lmms-eval mvbench": f"Question:{QUESTION}\nOption:\n{ROUND}\nOnly give the best option.",
    "lmms-eval nextqa": (
        f"{QUESTION}\n{LETTERED}\nAnswer with the option's letter from the given choices directly."
    ),
    "VLMEvalKit Video-MME": (
        "\nThese are the frames of a video. Select the best answer to the following "
        "multiple-choice question based on the video. Respond with only the letter (A, B, C, or D) "
        f"of the correct option.\n\nQuestion: {QUESTION}\n{LETTERED}\nAnswer: "
    ),
    "inspect_ai": (
        "Answer the question by choosing one of the options.\n\n"
        f"{QUESTION}\n\n" + LETTERED.replace(". ", ") ", 1)
    ),
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_question_and_options_are_found_exactly(prompt):
    asked = read_question(prompt)
    assert asked.text == QUESTION
    assert asked.options == OPTIONS
    assert asked.labels == tuple("ABCD")
    assert asked.reply_text("C", "") == "C"
    assert asked.form == "multiple choice"


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        ("\nOptions:\n- a cup\n- a hat\n\nAnswer with a single word.", "a hat"),
        ("\n1. a cup\n2. a hat", "2"),
        (" (A) a cup (B) a hat", "B"),
    ],
)
def test_options_are_answered_by_their_names_or_else_in_their_words(options, reply):
    asked = read_question(f"{QUESTION}{options}")
    assert (asked.text, asked.options) == (QUESTION, ("a cup", "a hat"))
    assert asked.reply_text("B", "") == reply


def test_subtitles_that_a_prompt_brings_are_material():
    asked = read_question(
        "This video's subtitles are listed below: \nA. Smith enters.\nB. Jones leaves.\n"
        f"Select the best answer to the following question.\n{QUESTION}\n{LETTERED}"
    )
    assert asked.text == QUESTION
    assert asked.options == OPTIONS
    assert "Smith enters" in asked.material


@pytest.mark.parametrize(
    "prompt",
    [
        "Who enters the room?",
        "A. Smith enters. What does he say?",
        "Describe the film:\nA. first the beginning",
        "Does he take (A) or (B)?",
        "First: list what happens.\nC. is not B.",
    ],
)
def test_anything_else_is_asked_as_it_stands(prompt):
    asked = read_question(prompt)
    assert (asked.text, asked.options) == (prompt, ())
    assert asked.reply_text(None, "a cup") == "a cup"


def test_words_around_the_options_stay_part_of_the_question():
    asked = read_question(
        f"The man is called Bob.\n{QUESTION}\n{LETTERED}\nThink of the second act."
    )
    assert asked.text == f"The man is called Bob.\n{QUESTION}\nThink of the second act."


def test_options_alone_are_no_question():
    assert read_question(LETTERED).options == ()
