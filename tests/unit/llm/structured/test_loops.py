"""Replies that repeat themselves to the end."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.llm.structured.reader import cut_loop


def test_a_loop_is_cut_after_its_first_round() -> None:
    looped = '{"reason": "The man walks: ' + "He looks at the dog. " * 20 + "He looks at"
    assert cut_loop(looped) == '{"reason": "The man walks: He looks at the dog.'
    assert cut_loop("B\n" * 100) == "B\n"
    assert cut_loop('{"choice": "B"}\n' * 30) == '{"choice": "B"}\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        "A dog barks at a man, and the man laughs at the dog.",
        "no, no, no, no",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        "-" * 500,
        "Wait for it" + "." * 300,
        '{"reason": "' + "on and on and " * 40 + '", "choice": "B"}',
        " ".join(f"frame {number} shows a dog." for number in range(40)),
        '{"a": [' + ", ".join('{"segment": 1}' for _ in range(3)) + "]}",
    ],
)
def test_what_ends_otherwise_is_no_loop(text: str) -> None:
    assert cut_loop(text) is None


@given(
    st.text("abc \n", max_size=60), st.text("abc ", min_size=1, max_size=40), st.integers(30, 60)
)
def test_what_is_kept_is_the_beginning_and_the_rest_is_the_loop(before, phrase, times) -> None:
    text = before + phrase * times
    kept = cut_loop(text)
    if not phrase.strip() or len((phrase * times).rstrip()) < 120:
        return
    assert kept is not None
    assert text.startswith(kept)
    assert len(kept) <= len(before) + 2 * len(phrase) + 1


def test_long_texts_take_little_time() -> None:
    began = time.process_time()
    for text in ("a" * 400_000, "ab" * 200_000, "a" * 200_000 + "b" * 200_000):
        cut_loop(text)
    assert time.process_time() - began < 2
