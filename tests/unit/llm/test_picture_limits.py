"""Endpoints that take no pictures, or only so many: what is learned from their complaints."""

from __future__ import annotations

import numpy as np
import pytest
from support.clocks import TurnedClock
from support.listening import listening
from support.server import Request, Send, chat_at, completion, serve

from longtake.errors import ModelError
from longtake.llm.chat import Image, Options, Unavailable, say
from longtake.llm.middleware import Retrying
from longtake.llm.openai_protocol import max_images, refuses_pictures
from longtake.types import Frame


def picture(number: int) -> Image:
    return Image(Frame(float(number), np.zeros((8, 8, 3), np.uint8)))


def test_a_model_that_takes_no_pictures_is_asked_once() -> None:
    complaint = "image input is not supported - hint: if this is unexpected, provide the mmproj"
    send = Send(500, {"error": {"message": complaint}})
    with serve(lambda _: send) as served:
        chat = Retrying(chat_at(served), clock=TurnedClock())
        for _ in range(2):
            with pytest.raises(ModelError, match="takes no pictures") as raised:
                chat.complete([say("user", "Look:", picture(1))], Options())
            assert not isinstance(raised.value, Unavailable)
    assert len(served.requests) == 1
    assert chat.card.vision is False


def test_the_limit_on_pictures_is_learned_from_the_complaint() -> None:
    def act(request: Request) -> Send:
        parts = request.body["messages"][0]["content"]
        number = sum(part["type"] == "image_url" for part in parts)
        told = "At most 2 image(s) may be provided in one prompt."
        return completion("seen") if number <= 2 else Send(400, {"message": told})

    shown: list[str | Image] = []
    for number in range(5):
        shown += [f"[00:00:0{number}]", picture(number)]
    with serve(act) as served, listening() as heard:
        chat = chat_at(served)
        reply = chat.complete([say("user", *shown, "What is it?")], Options())
        chat.complete([say("user", *shown, "What is it?")], Options())
    assert len(served.requests) == 3, "learned once"
    assert (reply.text, reply.usage.frames) == ("seen", 2)
    texts = [part["text"] for part in served.requests[-1].body["messages"][0]["content"][::2]]
    assert texts == ["[00:00:00]", "[00:00:04]", "What is it?"], "times go with their pictures"
    assert heard.notes("pictures_left_out")[0].data == {"model": "there", "shown": 2, "wanted": 5}


@pytest.mark.parametrize(
    ("complaint", "blind"),
    [
        ("image input is not supported - hint: provide the mmproj", True),
        ("The model does not support image input.", True),
        ("qwen is not a multimodal model", True),
        ("image_url is not supported by this model", True),
        ("The image could not be downloaded.", False),
        ("cannot identify image file", False),
        ("response_format is not supported", False),
    ],
)
def test_a_model_is_called_blind_only_when_the_server_says_so(complaint: str, blind: bool) -> None:
    assert refuses_pictures(400, complaint) is blind


@pytest.mark.parametrize(
    ("complaint", "most"),
    [
        ("At most 4 image(s) may be provided in one prompt.", 4),
        ("Too many images: the maximum of 10 images was exceeded", 10),
        ("You may send up to 16 images", 16),
        ("images exceed the limit of 5", 5),
        ("maximum context length is 4096 tokens", None),
        ("the image is 4096 pixels wide", None),
    ],
)
def test_limits_on_pictures_as_servers_word_them(complaint: str, most: int | None) -> None:
    assert max_images(complaint) == most
