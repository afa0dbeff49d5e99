"""Endpoints that take no pictures, or only so many: what their entries and they themselves say."""

from __future__ import annotations

import numpy as np
import pytest
from support.clocks import TurnedClock
from support.listening import listening
from support.server import Request, Send, chat_at, completion, serve

from longtake.errors import ModelError
from longtake.llm.chat import Image, Options, Unavailable, say
from longtake.llm.middleware import Retrying, with_capabilities
from longtake.types import Frame


def shown(number: int) -> list[str | Image]:
    parts: list[str | Image] = []
    for second in range(number):
        parts += [f"[00:00:0{second}]", Image(Frame(second, np.zeros((8, 8, 3), np.uint8)))]
    return parts


def test_a_model_that_its_server_reports_as_blind_is_not_asked() -> None:
    def act(request: Request) -> Send:
        props = {"modalities": {"vision": False}}
        return Send(200, props) if request.path == "/props" else Send(404, {})

    with serve(act) as served:
        chat = with_capabilities(chat_at(served))
        with pytest.raises(ModelError, match="takes no pictures"):
            chat.complete([say("user", "Look:", *shown(1))], Options())
    assert chat.card.vision is False
    assert not [request for request in served.requests if request.path.endswith("completions")]


def test_a_refusal_of_pictures_says_how_many_there_were_and_what_limits_them() -> None:
    told = "At most 2 image(s) may be provided in one prompt."
    with serve(lambda _: Send(400, {"message": told})) as served:
        chat = Retrying(chat_at(served), clock=TurnedClock())
        with pytest.raises(ModelError, match=r"At most 2 .* 5 pictures, which 'images'") as raised:
            chat.complete([say("user", *shown(5), "What is it?")], Options())
    assert not isinstance(raised.value, Unavailable)
    assert len(served.requests) == 1


def test_no_more_pictures_are_sent_than_the_entry_allows() -> None:
    with serve(lambda _: completion("seen")) as served, listening() as heard:
        chat = chat_at(served)
        chat.capabilities.declare(images=2)
        reply = chat.complete([say("user", *shown(5), "What is it?")], Options())
    assert (reply.text, reply.usage.frames) == ("seen", 2)
    (request,) = served.requests
    texts = [part["text"] for part in request.body["messages"][0]["content"][::2]]
    assert texts == ["[00:00:00]", "[00:00:04]", "What is it?"], "times go with their pictures"
    assert heard.notes("pictures_left_out")[0].data == {"model": "there", "shown": 2, "wanted": 5}
