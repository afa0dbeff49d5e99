"""Labels of lines, and which of them are speakers."""

from __future__ import annotations

import numpy as np
import pytest

from longtake.algorithms.speakers import numbered_voices, renamed, speaker, speakers, turns
from longtake.types import Line, Segment


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Project Manager: Right. Okay.", "Project Manager"),
        ("it starts at 10:30 sharp", ""),
        ("no name here", ""),
    ],
)
def test_speaker_is_the_name_before_the_colon(text, name):
    assert speaker(text)[0] == name
    assert text.endswith(speaker(text)[1])


@pytest.mark.parametrize(
    "cues",
    [
        ["<v Anna>Hello.</v>", "<v.loud Ben>Hi."],
        ["Anna: Hello.", "- Ben: Hi.", "Ben: So.", ">> Anna: Yes."],
        ["[Anna] Hello.", "(Ben) Hi.", "[Ben]: So.", "[Anna] Yes."],
    ],
)
def test_every_form_of_label_becomes_one(cues):
    first, second = turns(cues)[:2]
    assert first[0].removesuffix("</v>") == "Anna: Hello."
    assert second == ["Ben: Hi."]


def test_two_speakers_of_one_cue_are_told_apart():
    cues = ["- ANNA: Hello\nthere.\n- BEN: Hi.", "ANNA: So.", "BEN: So."]
    assert turns(cues)[0] == ["ANNA: Hello there.", "BEN: Hi."]


@pytest.mark.parametrize(
    "cues",
    [
        ["Remember this: never.", "Anna: Yes."],  # one line may be a sentence
        ["[MUSIC] La la.", "[MUSIC] La la."],
        ["(laughs) Yes.", "(laughs) No."],
        ["Note: it rains.", "Note: it snows."],
    ],
)
def test_what_may_be_no_name_stays_as_it_is(cues):
    assert turns(cues) == [[cue] for cue in cues]


def test_speakers_have_two_lines_or_more():
    texts = ["Anna: One.", "Ben: Two.", "But then: three.", "Ben: Four.", "five", "Anna: Six."]
    lines = [Line(Segment(n, n + 1), text) for n, text in enumerate(texts)]
    assert speakers(lines) == {"Anna": 2, "Ben": 2}


def test_a_renamed_speaker():
    names = {"Anna": "Dr Lee"}
    assert renamed("Anna: One.", names) == "Dr Lee: One."
    assert renamed("Ben: Anna: One.", names) == "Ben: Anna: One."


def test_voices_are_numbered_in_the_order_of_their_first_lines():
    anna, ben = np.array([1, 0, 0], np.float32), np.array([0, 1, 0], np.float32)
    nobody = np.array([0, 0, 1], np.float32)
    rows = np.array([ben, anna, ben, nobody, anna, anna])
    # the last line is short, and still sounds like Anna; somebody with a single line has no number
    assert numbered_voices(rows, [2, 3, 2, 4, 2, 1]) == [1, 2, 1, None, 2, 2]
    # short lines alone begin no voice
    assert numbered_voices(rows, [1.0] * 6) == [None] * 6
    assert numbered_voices(np.zeros((0, 3), np.float32), []) == []


def test_a_line_between_two_voices_is_unknown():
    rows = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    rows[4] = [0.3, 0.3, 0.9, 0]
    assert numbered_voices(rows, [3, 3, 3, 3, 2, 2]) == [1, 1, 2, 2, None, None]
