"""Replies of a recorded run, found again."""

import numpy as np
import pytest
from support.listening import listening

from longtake.errors import ModelError
from longtake.llm.backends.scripted import RecordedChat, Recording
from longtake.llm.chat import Card, Image, Message, Options, describe, request_hash, say
from longtake.prompts import quote
from longtake.tracing.events import ChatCalled
from longtake.types import Frame

CARD = Card("m")
LOOK = Options(prompt="t/look")


def picture(shade: int) -> Image:
    return Image(Frame(0.0, np.full((8, 8, 3), shade, np.uint8)))


def recorded(messages: list[Message], reply: str, *, finish: str = "stop") -> ChatCalled:
    return ChatCalled(
        model=CARD.name,
        prompt=LOOK.prompt,
        request=request_hash(CARD, messages, LOOK),
        messages=tuple(describe(message) for message in messages),
        reply=reply,
        finish=finish,  # type: ignore[arg-type]
    )


def test_the_same_request_gets_its_replies_in_order_and_the_last_one_again() -> None:
    asked = [say("user", "Look.")]
    chat = RecordedChat(
        CARD, Recording([recorded(asked, "one"), recorded(asked, "two", finish="length")])
    )
    replies = [chat.complete(asked, LOOK) for _ in range(3)]
    assert [reply.text for reply in replies] == ["one", "two", "two"]
    assert [reply.finish for reply in replies] == ["stop", "length", "length"]


def test_another_wording_is_refused_unless_the_recording_is_known_to_be_reworded() -> None:
    before = [say("user", f"Tell what is to be seen. {quote('a dog', 'notes')}")]
    now = [say("user", f"Describe it. {quote('a dog', 'notes')}")]
    calls = [recorded([say("user", quote("a cat", "notes"))], "cat"), recorded(before, "dog")]
    with pytest.raises(ModelError, match="the run has changed"):
        RecordedChat(CARD, Recording(calls)).complete(now, LOOK)
    with listening() as heard:
        chat = RecordedChat(CARD, Recording(calls, reworded=True))
        assert chat.complete(now, LOOK).text == "dog"
    assert len(heard.notes("matched_by_material")) == 1


def test_pictures_decide_before_order_does() -> None:
    calls = [recorded([say("user", "Look.", picture(shade))], f"{shade}") for shade in (0, 200)]
    chat = RecordedChat(CARD, Recording(calls, reworded=True))
    assert chat.complete([say("user", "See.", picture(200))], LOOK).text == "200"
    assert chat.complete([say("user", "See.", picture(0))], LOOK).text == "0"
    with pytest.raises(ModelError):
        chat.complete([say("user", "See.", picture(100))], LOOK)


def test_other_material_is_matched_by_order() -> None:
    calls = [recorded([say("user", quote(f"round {n}", "history"))], f"{n}") for n in (1, 2)]
    chat = RecordedChat(CARD, Recording(calls, reworded=True))
    with listening() as heard:
        said = [chat.complete([say("user", quote(f"turn {n}", "history"))], LOOK) for n in (1, 2)]
    assert [reply.text for reply in said] == ["1", "2"]
    assert len(heard.notes("matched_by_order")) == 2
