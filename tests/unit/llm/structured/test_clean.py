"""Text from models can always be written down."""

import json

from longtake.llm.chat import Reply, ToolCall
from longtake.llm.structured.reader import clean_text


def test_lone_surrogates_are_replaced_and_nothing_else_is() -> None:
    assert clean_text("a \ud83d b \udc00") == "a � b �"
    assert clean_text("é 😀 \x00 ‮") == "é 😀 \x00 ‮"


def test_a_reply_is_clean_whoever_makes_it() -> None:
    half = json.loads('"\\ud83d"')
    reply = Reply(f"B {half}", thinking=half, tool_calls=(ToolCall("1", "look", half),))
    for text in (reply.text, reply.thinking, reply.tool_calls[0].arguments):
        text.encode()
        assert "�" in text
