"""Meetings: turns of QMSum get their times from the words of AMI."""

import json
import zipfile

import pytest

from longtake.errors import ConfigError
from longtake.types import Segment
from longtake_bench.benchmarks import load
from longtake_bench.benchmarks.meetings import ARCHIVE, matches

ROLES = {"A": "PM", "B": "ID"}
SPOKEN = {
    "A": ["so", "we", "start", "now", "the", "budget", "is", "twelve", "euros"],
    "B": ["fine", "i", "would", "use", "rubber"],
}
TURNS = [
    {"speaker": "Project Manager", "content": "So we start now {vocalsound} ."},
    {"speaker": "Industrial Designer", "content": "{gap}"},
    {"speaker": "Industrial Designer", "content": "Fine . I would use rubber ."},
    {"speaker": "Project Manager", "content": "The budget is twelve Euros ."},
]
QUERIES = [
    {"query": "What is the budget?", "answer": "Twelve.", "relevant_text_span": [["3", "3"]]},
    {"query": "Which material?", "answer": "Rubber.", "relevant_text_span": [["1", "2"]]},
]


@pytest.fixture
def folder(tmp_path):
    """A meeting whose words last a second each: A speaks from 0 s on, B from 100 s on."""
    with zipfile.ZipFile(tmp_path / ARCHIVE, "w") as archive:
        speakers = "".join(f'<speaker nxt_agent="{c}" role="{r}"/>' for c, r in ROLES.items())
        meetings = f'<root><meeting observation="ES1a">{speakers}</meeting></root>'
        archive.writestr("corpusResources/meetings.xml", meetings)
        for channel, words in SPOKEN.items():
            begin = 100 * (channel == "B")
            xml = "".join(
                f'<w starttime="{begin + n}" endtime="{begin + n + 1}">{word}</w>'
                f'<w starttime="{begin + n}" endtime="{begin + n}" punc="true">.</w>'
                for n, word in enumerate(words)
            )
            archive.writestr(f"words/ES1a.{channel}.words.xml", f"<root>{xml}</root>")
    split = tmp_path / "qmsum" / "ALL" / "train"
    split.mkdir(parents=True)
    meeting = {"meeting_transcripts": TURNS, "specific_query_list": QUERIES}
    for name in ("ES1a", "Bmr001"):  # AMI does not have the second one
        (split / f"{name}.json").write_text(json.dumps(meeting))
    return tmp_path


def test_lines_have_speakers_and_times(folder):
    footage = load("meetings", folder, {}).source.footage("ES1a")
    assert [(line.segment, line.text) for line in footage.speech()] == [
        (Segment(0, 4), "Project Manager: So we start now ."),
        (Segment(4, 9), "Project Manager: The budget is twelve Euros ."),
        (Segment(100, 105), "Industrial Designer: Fine . I would use rubber ."),
    ]
    assert [line.segment for line in footage.speech(Segment(5, 50))] == [Segment(4, 9)]
    assert footage.duration == 105


def test_the_right_answer_is_one_of_the_options(folder):
    budget, material = load("meetings", folder, {}).items
    assert budget.evidence == (Segment(4, 9),)
    assert material.evidence == (Segment(100, 105),)
    for item, answer in ((budget, "Twelve."), (material, "Rubber.")):
        question = item.asked.question
        assert set(question.options) == {"Twelve.", "Rubber."}
        assert question.options[question.letters.index(item.label)] == answer
    assert {item.tags["team"] for item in (budget, material)} == {"ES1"}


def test_open_questions_have_written_answers(folder):
    budget, _ = load("meetings", folder, {"form": "open"}).items
    assert (budget.asked.question.options, budget.label) == ((), "Twelve.")


def test_transcripts_meet_again_after_a_difference():
    one, other = ["a", "b", "x", "y", "c", "d", "e", "f"], ["a", "b", "z", "c", "d", "e", "q", "f"]
    assert [one[i] for i, _ in matches(one, other)] == list("abcdef")


@pytest.mark.parametrize("damage", ["missing", "empty", "no meetings"])
def test_bad_files_are_named(folder, damage):
    archive = folder / ARCHIVE
    if damage == "missing":
        archive.unlink()
    elif damage == "empty":
        archive.write_bytes(b"")
    else:
        with zipfile.ZipFile(archive, "w") as empty:
            empty.writestr("readme", "")
    with pytest.raises(ConfigError, match=ARCHIVE):
        load("meetings", folder, {})
