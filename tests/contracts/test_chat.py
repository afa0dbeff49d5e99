"""What every chat keeps to, whatever stands behind it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from support.server import completion, serve

from longtake.config import BudgetSettings
from longtake.llm.backend import Description
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.backends.socratic import SocraticChat
from longtake.llm.budget import Ledger
from longtake.llm.chat import Card, Chat, Image, Options, Reply, request_hash, say
from longtake.llm.http import Endpoint
from longtake.llm.middleware import (
    Budgeted,
    Cached,
    Carded,
    Gate,
    Limited,
    Plugin,
    ReplyStore,
    Retrying,
    Traced,
)
from longtake.types import Frame
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import LabModel

MESSAGES = [say("system", "Be brief."), say("user", "Say ok.")]


class Blind:
    revision = "1"

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        return Description(tags=("thing",))


def scripted() -> ScriptedChat:
    return ScriptedChat(lambda *_: "<think>hm</think>ok", card=Card("scripted", context=1000))


def openai(stack: ExitStack, folder: Path) -> Chat:
    served = stack.enter_context(serve(lambda _: completion("<think>hm</think>ok")))
    return OpenAIChat(Card("there", model="m", context=1000), Endpoint("there", served.url))


CHATS: dict[str, Callable[[ExitStack, Path], Chat]] = {
    "openai": openai,
    "scripted": lambda *_: scripted(),
    "socratic": lambda *_: SocraticChat(Card("seeing"), scripted(), Blind()),
    "traced": lambda *_: Traced(scripted()),
    "budgeted": lambda *_: Budgeted(scripted(), Ledger(BudgetSettings(calls=99))),
    "cached": lambda _, folder: Cached(scripted(), ReplyStore(folder)),
    "retrying": lambda *_: Retrying(scripted()),
    "limited": lambda *_: Limited(scripted(), Gate(2)),
    "lab": lambda *_: LabChat(LabModel(context=1000)),
    "plugin": lambda *_: Plugin(scripted(), name="m", backend="theirs"),
    "carded": lambda *_: Carded(scripted(), Card("other", context=1000)),
}


@pytest.fixture(params=CHATS)
def chat(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chat]:
    with ExitStack() as stack:
        yield CHATS[request.param](stack, tmp_path)


def test_a_reply_has_text_thinking_and_usage(chat: Chat) -> None:
    reply = chat.complete(MESSAGES, Options())
    assert isinstance(reply, Reply)
    assert reply.text
    if not isinstance(chat, LabChat):  # it says what it sees, and thinks nothing aloud
        assert (reply.text, reply.thinking) == ("ok", "hm")
    assert reply.usage.calls == 1
    assert reply.usage.tokens_in > 0
    assert reply.usage.tokens_out > 0


def test_pictures_are_counted(chat: Chat) -> None:
    picture = Image(Frame(1.0, np.zeros((8, 8, 3), np.uint8)))
    assert chat.complete([say("user", "Look:", picture)], Options()).usage.frames == 1


def test_the_card_is_known_before_the_first_call_and_stays(chat: Chat) -> None:
    before = chat.card
    chat.complete(MESSAGES, Options())
    assert chat.card == before
    assert before.name
    assert before.context == 1000


def test_messages_and_options_are_left_as_they_are(chat: Chat) -> None:
    messages, options = list(MESSAGES), Options(seed=3, stop=("x",), schema={"type": "object"})
    before = request_hash(chat.card, messages, options)
    chat.complete(messages, options)
    assert request_hash(chat.card, messages, options) == before
    assert messages == MESSAGES
