"""Replies that a real model never ended, read as far as they go.

``unended.json`` holds replies of ``local/qwen2.5-coder-1.5b`` to Symphony's agents, which nothing
held to their form: up to the limit of tokens, mostly in circles. They were written down by
``benchmarks/replies.py``; each was refused while the fields' descriptions asked for its end.
"""

import json
import re
from pathlib import Path

import pytest

from longtake.llm.chat import Reply
from longtake.llm.structured.ask import ReplyForm
from longtake.llm.structured.schema import schema_for
from longtake.methods.symphony.perception import FindingsReply, ObservationReply, SubtitlesReply
from longtake.types import Question

QUESTION = Question("What happens?")
RECORDED = json.loads(Path(__file__).with_name("unended.json").read_text(encoding="utf-8"))
_WHOLE_TEXT = re.compile(r'"text": ("(?:[^"\\]|\\.)*")')


def read(kind, text):
    return ReplyForm(kind, QUESTION, schema_for(kind, QUESTION)).read(Reply(text, finish="length"))


REPORTS = [("findings", FindingsReply), ("observation", ObservationReply)]


@pytest.mark.parametrize(
    ("name", "kind", "text"), [(*of, text) for of in REPORTS for text in RECORDED[of[0]]]
)
def test_a_report_is_what_was_said_before_its_circle(name, kind, text):
    report = getattr(read(kind, text), name)
    assert text.partition(f'"{name}": "')[2].startswith(report)
    assert len(report.split()) >= 5


@pytest.mark.parametrize("text", RECORDED["subtitles"])
def test_lines_are_those_that_came_whole(text):
    lines = read(SubtitlesReply, text).lines
    whole = [json.loads(quoted) for quoted in _WHOLE_TEXT.findall(text)]
    assert [line.text for line in lines] == whole
    assert lines
