"""Replies that are read while they are written."""

import json
from dataclasses import replace

import pytest
from pydantic import BaseModel
from support.clocks import TurnedClock
from support.listening import Heard, listening
from support.server import Request, Send, chat_at, completion, event, serve, stream

from longtake import prompts
from longtake._util.cancellation import Cancelled, Stop, stopping
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ModelError
from longtake.llm.budget import Ledger
from longtake.llm.chat import Options, Unavailable, say
from longtake.llm.middleware import Budgeted, Cached, ReplyStore, Retrying, Traced
from longtake.llm.openai_protocol import StreamedReply
from longtake.llm.structured.ask import ALL, ask
from longtake.tracing.events import ChatCalled, Drafted

HELLO = [say("user", "Hello?")]
ODD = ("Zwölf ", "日", '本 "quoted"\n', "\ud83d", "\ude00", " end\\")
"""Pieces of a text; one character is in two of them."""
WHOLE = 'Zwölf 日本 "quoted"\n😀 end\\'


def heard_text(heard: Heard) -> str:
    text = ""
    for drafted in heard.of(Drafted):
        text = drafted.text if drafted.anew else text + drafted.text
    return text


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_stream_may_be_cut_anywhere(size: int) -> None:
    seen: list[str] = []
    streamed = StreamedReply(seen.append)
    sent = b": ping\n\n" + b"".join(stream(*ODD).pieces).replace(b"\n", b"\r\n")
    # raw characters and escapes
    sent = sent.replace(json.dumps("日")[1:-1].encode(), "日".encode())
    for at in range(0, len(sent), size):
        streamed.feed(sent[at : at + size])
    whole = streamed.whole("m")
    assert whole is not None
    assert whole["choices"] == [{"message": {"content": WHOLE}, "finish_reason": "stop"}]
    assert whole["usage"]["completion_tokens"] == 5
    assert seen[-1] == WHOLE
    complete = [text for text in seen if "\N{REPLACEMENT CHARACTER}" not in text]
    assert all(WHOLE.startswith(text) for text in complete)


def test_the_whole_reply_is_the_same_as_without_a_stream() -> None:
    seen: list[str] = []
    with serve(lambda asked: stream(*ODD) if "stream" in asked.body else completion(WHOLE)) as at:
        streamed = chat_at(at).complete(HELLO, Options(on_text=seen.append))
        plain = chat_at(at).complete(HELLO, Options())
    assert streamed.text == plain.text == seen[-1]
    assert replace(streamed.usage, seconds=0.0) == replace(plain.usage, seconds=0.0)
    assert (streamed.finish, streamed.model) == ("stop", "served")
    assert at.requests[0].body["stream_options"] == {"include_usage": True}
    assert "stream" not in at.requests[1].body


def test_servers_that_do_not_stream() -> None:
    def refuse(asked: Request) -> Send:
        if "stream" in asked.body:
            return Send(400, {"error": {"message": "stream_options is not supported"}})
        return completion("hi")

    for act, requests in ((lambda _: completion("hi"), 1), (refuse, 2)):
        with serve(act) as at:
            chat = chat_at(at)
            assert chat.complete(HELLO, Options(on_text=str)).text == "hi"
            assert len(at.requests) == requests
            chat.complete(HELLO, Options(on_text=str))
            assert len(at.requests) == requests + 1


def test_a_failing_gateway_does_not_refuse_streams() -> None:
    replies = [Send(500, {"error": "upstream connect error"}), stream("hi")]
    with serve(lambda _: replies.pop(0)) as at:
        chat = Retrying(chat_at(at), clock=TurnedClock())
        assert chat.complete(HELLO, Options(on_text=str)).text == "hi"
    assert not chat.capabilities.has_refused("stream")


def test_thinking_is_not_drafted() -> None:
    seen: list[str] = []
    texts = ("<th", "ink>Is it B?", "</thi", "nk>", "It is <", "b> A.")
    with serve(lambda _: stream(*texts)) as at:
        reply = chat_at(at).complete(HELLO, Options(on_text=seen.append))
    assert (reply.thinking, reply.text) == ("Is it B?", "It is <b> A.")
    assert list(dict.fromkeys(seen)) == ["", "It is ", "It is <b> A."]


@pytest.mark.parametrize(
    ("send", "says"),
    [
        (stream("The dog", finish=None, breaks="reset"), "broke"),
        (stream("The dog", finish=None), "cut off"),
        (Send(pieces=[*stream("The dog").pieces[:1], b"data: {oops\n\n"]), "cannot be read"),
        (Send(pieces=[*stream("The dog").pieces[:1], event([])]), "cannot be read"),
        (Send(pieces=[*stream("The dog").pieces[:1], event({"error": "overload"})]), "overload"),
    ],
)
def test_a_reply_that_breaks_off_is_asked_for_again_and_drafted_anew(send: Send, says: str) -> None:
    replies = [send, stream("The ", "cat")]
    with serve(lambda _: replies.pop(0)) as at, listening(drafts=True) as heard:
        chat = Retrying(chat_at(at), clock=TurnedClock())
        seen: list[str] = []
        assert chat.complete(HELLO, Options(on_text=seen.append)).text == "The cat"
    assert list(dict.fromkeys(seen)) == ["", "The dog", "The", "The cat"]
    assert seen.count("") == 2
    (retry,) = heard.notes("retry")
    assert says in retry.data["why"]


def test_what_a_broken_reply_cost_is_counted() -> None:
    with serve(lambda _: stream("word " * 30, finish=None, breaks="reset")) as at:
        ledger = Ledger(BudgetSettings())
        with pytest.raises(Unavailable):
            Budgeted(chat_at(at), ledger).complete(HELLO, Options(on_text=str))
    assert ledger.spent.tokens_out >= 30


def test_a_budget_ends_a_reply_that_never_ends() -> None:
    with serve(lambda _: stream("word ", finish=None, breaks="endless")) as at:
        chat = Budgeted(chat_at(at), Ledger(BudgetSettings(seconds=0.3)))
        with pytest.raises(BudgetSpent):
            chat.complete(HELLO, Options(on_text=str))


def test_a_stop_ends_a_reply_in_its_middle() -> None:
    stop = Stop()
    token = stopping.set(stop)
    try:
        with (
            serve(lambda _: stream("The dog", finish=None, breaks="hang")) as at,
            pytest.raises(Cancelled),
        ):
            chat_at(at).complete(HELLO, Options(on_text=lambda text: text and stop.set()))
    finally:
        stopping.reset(token)


def test_a_key_is_never_drafted() -> None:
    key, seen = "sk-secret", list[str]()
    with serve(lambda _: stream("The k", "ey is SK-", "sec", "ret", " s", "o")) as at:
        reply = chat_at(at, key=key).complete(HELLO, Options(on_text=seen.append))
    assert seen[-1] == reply.text == "The key is [key] so"
    assert not any("sk" in text.lower() for text in seen)
    bad = Send(pieces=[event({"error": f"bad {key}"})])
    with serve(lambda _: bad) as at, pytest.raises(ModelError, match=r"bad \[key\]"):
        chat_at(at, key=key).complete(HELLO, Options(on_text=str))


class Told(BaseModel):
    reason: str
    answer: str


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = prompts.load
    own = prompts.Prompt("t/tell", "What is it?")
    monkeypatch.setattr(prompts, "load", lambda name: own if name == own.name else shipped(name))


def test_of_a_form_only_the_answer_is_drafted() -> None:
    told = {"reason": 'no "answer": "yet"', "answer": WHOLE}
    text = json.dumps(told)
    with serve(lambda _: stream(*text)) as at, listening(drafts=True) as heard:
        reply = ask(Traced(chat_at(at)), "t/tell", Told, draft="answer")
    assert reply.answer == WHOLE
    assert heard_text(heard) == WHOLE
    assert len(heard.of(Drafted)) >= len(WHOLE) - 1
    assert isinstance(heard.events[-1], ChatCalled)
    assert heard.events[-1].reply == text


def test_an_unreadable_reply_is_drafted_anew_and_replies_in_cache_are_whole(tmp_path) -> None:
    replies = [stream('{"answer": "A dog'), stream('{"reason": "r", "answer": "A ', 'cat"}')]
    with serve(lambda _: replies.pop(0)) as at, listening(drafts=True) as heard:
        chat = Cached(chat_at(at), ReplyStore(tmp_path))
        assert ask(chat, "t/tell", Told, draft="answer").answer == "A cat"
        drafted = [(each.text, each.anew) for each in heard.of(Drafted)]
        assert drafted == [("A dog", True), ("", True), ("A", True), (" cat", False)]
        assert ask(chat, "t/tell", Told, draft="answer").answer == "A cat"
        assert len(heard.of(Drafted)) == len(drafted)


def test_nothing_is_streamed_that_nobody_watches() -> None:
    with serve(lambda _: completion("A dog.")) as at:
        with listening() as heard:
            assert ask(chat_at(at), "t/tell", draft=ALL) == "A dog."
        assert ask(chat_at(at), "t/tell", draft=ALL) == "A dog."
        with listening(drafts=True):
            ask(chat_at(at), "t/tell")
            ask(chat_at(at), "t/tell", draft="answer")
    assert heard.of(Drafted) == []
    assert not any("stream" in request.body for request in at.requests)
