import base64
import io
import math

import numpy as np
import pytest
from PIL import Image as Picture
from support.listening import listening
from support.patience import FOREVER
from support.server import Request, Send, chat_at, completion, serve

from longtake.errors import ConfigError, ModelError
from longtake.llm.chat import (
    Card,
    Image,
    Message,
    Options,
    Price,
    ToolCall,
    ToolSpec,
    Unavailable,
    Unsupported,
    say,
)
from longtake.llm.http import Endpoint, is_loopback, normalize_host
from longtake.llm.openai_protocol import read_reply
from longtake.types import Frame

HELLO = [say("system", "Be brief."), say("user", "Hello?")]


def test_words_pictures_and_options_arrive_as_the_protocol_wants_them() -> None:
    frame = Frame(61.0, np.full((1000, 2000, 3), (200, 30, 30), np.uint8))
    options = Options(
        temperature=0.5, max_tokens=77, seed=3, stop=("END",), schema={"type": "object"}
    )
    with serve(lambda _: completion("hi")) as served:
        chat = chat_at(served, price=Price(1.0, 2.0, 0.5, "test"))
        reply = chat.complete([say("user", "Look:", Image(frame, 200 * 100))], options)
    body = served.requests[0].body
    assert served.requests[0].path == "/v1/chat/completions"
    sent_options = {"model": "m", "temperature": 0.5, "max_tokens": 77, "seed": 3, "stop": ["END"]}
    assert body.items() >= sent_options.items()
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    words, picture = body["messages"][0]["content"]
    assert words == {"type": "text", "text": "Look:"}
    head, _, data = picture["image_url"]["url"].partition(",")
    assert head == "data:image/jpeg;base64"
    sent = Picture.open(io.BytesIO(base64.b64decode(data)))
    assert sent.size == (200, 100)
    red, green, _ = sent.getpixel((50, 50))
    assert red > 180
    assert green < 60
    assert reply.text == "hi"
    usage = reply.usage
    assert (usage.calls, usage.tokens_in, usage.tokens_out, usage.frames) == (1, 10, 5, 1)
    assert usage.cost == pytest.approx((10 * 1.0 + 5 * 2.0) / 1e6)


def test_cached_tokens_are_counted_and_cheaper() -> None:
    send = completion("hi", prompt_tokens=1000)
    send.body["usage"]["prompt_tokens_details"] = {"cached_tokens": 900}
    with serve(lambda _: send) as served:
        usage = (
            chat_at(served, price=Price(10.0, 10.0, 1.0, "test")).complete(HELLO, Options()).usage
        )
    assert usage.tokens_cached == 900
    assert usage.cost == pytest.approx((100 * 10 + 900 * 1 + 5 * 10) / 1e6)


def test_an_unknown_price_stays_unknown() -> None:
    with serve(lambda _: completion("hi")) as served:
        assert chat_at(served).complete(HELLO, Options()).usage.cost is None


@pytest.mark.parametrize(
    ("message", "thinking", "text"),
    [
        ({"content": "B", "reasoning_content": "A? no"}, "A? no", "B"),
        ({"content": "B", "reasoning": "A? no"}, "A? no", "B"),
        ({"content": "<think>A? no</think>B"}, "A? no", "B"),
        ({"content": None, "reasoning_content": "A? A!"}, "A? A!", ""),
        ({"content": [{"type": "text", "text": "B"}]}, "", "B"),
        ({"content": None, "refusal": "I will not."}, "", "I will not."),
    ],
)
def test_thinking_comes_apart(message: dict[str, object], thinking: str, text: str) -> None:
    reply = completion(**{"text": None, **message})  # type: ignore[arg-type]
    with serve(lambda _: reply) as served:
        reply = chat_at(served).complete(HELLO, Options())
    assert (reply.thinking, reply.text) == (thinking, text)


def test_tool_calls_go_both_ways() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 3}'}}
    odd = {"function": {"name": "look", "arguments": {"at": 4}}}
    tool = ToolSpec("look", "Looks.", {"type": "object"})
    with serve(
        lambda _: completion(None, finish="tool_calls", tool_calls=[call, odd, "junk"])
    ) as served:
        chat = chat_at(served)
        reply = chat.complete(HELLO, Options(tools=(tool,)))
        answered = Message("tool", say("tool", "a dog").parts, answers="c1")
        chat.complete(
            [*HELLO, Message("assistant", (), reply.tool_calls), answered], Options(tools=(tool,))
        )
    assert reply.tool_calls == (
        ToolCall("c1", "look", '{"at": 3}'),
        ToolCall("call-1", "look", '{"at": 4}'),
    )
    assert reply.finish == "tool_calls"
    assert served.requests[0].body["tools"][0]["function"]["name"] == "look"
    sent = served.requests[1].body["messages"]
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"at": 3}'
    assert sent[3] == {"role": "tool", "content": "a dog", "tool_call_id": "c1"}


@pytest.mark.parametrize(
    ("complaint", "field", "after"),
    [
        (
            "Use 'max_completion_tokens' instead of max_tokens",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("temperature must be 1 for this model", "temperature", None),
    ],
)
def test_what_a_server_refuses_is_left_out_once_and_for_all(
    complaint: str, field: str, after: str | None
) -> None:
    def act(request: Request) -> Send:
        if field in request.body:
            return Send(400, {"error": {"message": complaint}})
        return completion("fine")

    options = Options(schema={"type": "object"})
    with serve(act) as served, listening() as heard:
        chat = chat_at(served)
        assert chat.complete(HELLO, options).text == "fine"
        assert chat.complete(HELLO, options).text == "fine"
    assert len(served.requests) == 3
    assert len(heard.notes("left_out")) == 1
    if after:
        assert after in served.requests[-1].body


def test_a_server_without_tools_says_so_once() -> None:
    with serve(lambda _: Send(400, {"error": "tools are not supported"})) as served:
        chat = chat_at(served)
        for _ in range(2):
            with pytest.raises(Unsupported):
                chat.complete(HELLO, Options(tools=(ToolSpec("t", "", {}),)))
    assert len(served.requests) == 1


@pytest.mark.parametrize(
    ("send", "retry_after"),
    [
        (Send(429, {"error": "slow down"}, {"Retry-After": "7"}), 7.0),
        (Send(429, {"error": "slow down"}), None),
        (Send(500, b"<html>oops</html>"), None),
        (Send(503, {}, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), None),
        (Send(200, b'{"choices": [{"mess'), None),
        (Send(200, {"choices": []}), None),
        (Send(200, {"error": {"message": "overloaded", "code": 529}}), None),
        (completion("hello, long enough to be cut in half"), None),
    ],
)
def test_what_may_pass_is_unavailable(send: Send, retry_after: float | None) -> None:
    if send.status == 200 and isinstance(send.body, dict) and send.body.get("usage"):
        send.breaks = "reset"
    with serve(lambda _: send) as served, pytest.raises(Unavailable) as raised:
        chat_at(served).complete(HELLO, Options())
    assert raised.value.retry_after == retry_after
    assert raised.value.status in (None, send.status)


@pytest.mark.parametrize(
    ("status", "body", "problem", "says"),
    [
        (401, {"error": {"message": "bad key sk-marked"}}, "refused", "api_key_env"),
        (
            404,
            {"error": {"message": "model m does not exist"}},
            "refused",
            "check model and base_url",
        ),
        (
            400,
            {"error": {"message": "maximum context length is 4096 tokens"}},
            "context",
            "too long",
        ),
        (400, {"detail": "bad picture"}, "refused", "HTTP 400"),
    ],
)
def test_what_will_not_pass_is_refused_with_what_to_set(
    status: int, body: object, problem: str, says: str
) -> None:
    with (
        serve(lambda _: Send(status, body)) as served,
        pytest.raises(ModelError, match=says) as raised,
    ):
        chat_at(served, key="sk-marked").complete(HELLO, Options())
    assert not isinstance(raised.value, Unavailable)
    assert raised.value.problem == problem
    assert "sk-marked" not in str(raised.value)


def test_redirects_are_not_followed() -> None:
    with serve(lambda _: completion("stolen")) as thief:
        send = Send(307, {}, {"Location": f"http://127.0.0.1:{thief.port}/v1/chat/completions"})
        with serve(lambda _: send) as served, pytest.raises(ModelError, match="redirects to"):
            chat_at(served, key="sk-marked").complete(HELLO, Options())
    assert thief.requests == []


def test_a_timeout_of_the_endpoint_is_not_the_questions() -> None:
    with serve(lambda _: Send(breaks="hang")) as served, pytest.raises(Unavailable) as raised:
        chat_at(served, timeout=0.2).complete(HELLO, Options(deadline=FOREVER))
    assert not raised.value.out_of_time


def test_a_server_that_is_not_there() -> None:
    with serve(lambda _: completion("")) as served:
        pass
    with pytest.raises(Unavailable, match="cannot be reached"):
        chat_at(served).complete(HELLO, Options())


def test_the_servers_tokenizer_counts_and_its_absence_is_remembered() -> None:
    def act(request: Request) -> Send:
        return Send(200, {"tokens": request.body["content"].split()})

    with serve(act) as served:
        assert chat_at(served).count("one two three") == 3
        assert served.requests[0].path == "/tokenize"
    with serve(lambda _: Send(404, {})) as served:
        chat = chat_at(served)
        assert chat.count("one") is None
        assert chat.count("two") is None
    assert len(served.requests) == 1


@pytest.mark.parametrize(
    ("url", "key", "says"),
    [
        ("ftp://x/v1", "", "http:// or https://"),
        ("http://user:pass@127.0.0.1/v1", "", "api_key_env"),
        ("http://example.com/v1", "k", "without encryption"),
        ("nonsense", "", "http:// or https://"),
    ],
)
def test_addresses_that_are_not_used(url: str, key: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        Endpoint("there", url, key=key)
    assert "pass" not in str(raised.value).replace("password", "")


def test_loopback_is_known_without_asking_anyone() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "[::1]", "127.8.9.1")))
    assert not any(
        map(is_loopback, ("example.com", "10.0.0.1", "localhost.example.com", "0.0.0.0"))
    )


def test_a_path_on_another_host_is_refused() -> None:
    endpoint = Endpoint("there", "https://api.example/v1")
    assert endpoint.address("../tokenize") == "https://api.example/tokenize"
    for path in ("https://evil.example/v1", "//evil.example/v1"):
        with pytest.raises(ValueError, match=r"not on api\.example"):
            endpoint.address(path)


def test_a_proxy_in_the_environment_never_sees_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serve(lambda _: completion("from the proxy")) as proxy,
        serve(lambda _: completion("direct")) as served,
    ):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert chat_at(served).complete(HELLO, Options()).text == "direct"


def test_names_are_compared_in_one_form() -> None:
    assert normalize_host("API.Example.") == normalize_host("api.example:443") == "api.example"
    assert normalize_host("[2001:DB8::1]:443") == normalize_host("2001:db8::1") == "2001:db8::1"
    assert normalize_host("bücher.example") == normalize_host("xn--bcher-kva.example")
    assert normalize_host("::ffff:192.0.2.1") == "192.0.2.1"


CARD = Card("m", price=Price(1.0, 2.0, 1.0, source="a test"))
MESSAGES = [say("user", "hello there, who is it?")]


def usage_of(usage, text="It is the dog."):
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return read_reply(CARD, {"choices": [choice], "usage": usage}, MESSAGES, 0.1).usage


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "many",
        {"prompt_tokens": -7, "completion_tokens": 3},
        {"prompt_tokens": "12", "completion_tokens": 3},
        {"prompt_tokens": math.nan, "completion_tokens": 3},
        {"prompt_tokens": 10**12, "completion_tokens": 3},
        {"prompt_tokens": True, "completion_tokens": 3},
        {"prompt_tokens": [5], "completion_tokens": {}},
    ],
)
def test_usage_that_cannot_be_is_estimated(usage):
    with listening() as heard:
        used = usage_of(usage)
    assert min(used.tokens_in, used.tokens_out, used.cost) > 0
    assert heard.notes("usage_estimated")


@pytest.mark.parametrize("completion", [-3, None, "x", 0, [1], math.inf])
def test_a_reply_that_says_something_was_written_in_tokens(completion):
    used = usage_of({"prompt_tokens": 10, "completion_tokens": completion})
    assert used.tokens_in == 10
    assert used.tokens_out > 0


def test_usage_has_a_lower_bound_from_what_was_sent_and_received():
    spoken = "the quick brown fox jumps over the lazy dog " * 1000
    messages = [say("user", spoken)]
    choice = {"message": {"content": spoken}, "finish_reason": "stop"}
    few = {"prompt_tokens": 1, "completion_tokens": 1}
    used = read_reply(CARD, {"choices": [choice], "usage": few}, messages, 0.1).usage
    # 9,000 words
    assert 7_000 < used.tokens_in < 9_000
    assert used.tokens_out == used.tokens_in
    assert used.cost == pytest.approx((used.tokens_in + 2 * used.tokens_out) / 1e6)
    honest = {"prompt_tokens": 9_000, "completion_tokens": 9_000}
    used = read_reply(CARD, {"choices": [choice], "usage": honest}, messages, 0.1).usage
    assert used.tokens_in == used.tokens_out == 9_000


def test_no_more_is_cached_than_was_sent():
    for reported, cached in ((500, 10), (-500, 0)):
        details = {"prompt_tokens_details": {"cached_tokens": reported}}
        used = usage_of({"prompt_tokens": 10, "completion_tokens": 2, **details})
        assert used.tokens_cached == cached


@pytest.mark.parametrize(
    ("logprob", "probability"),
    [(math.log(0.25), 0.25), (1e-7, 1.0), (-(10**400), 0.0), (-math.inf, 0.0)],
)
def test_logprobs_become_probabilities(logprob, probability):
    assert odds_with(logprob) == {"A": pytest.approx(probability), "B": 0.5}


@pytest.mark.parametrize("logprob", [math.nan, None, "-1", [0]])
def test_logprobs_that_are_no_numbers_count_as_unknown(logprob):
    assert odds_with(logprob) == {"B": 0.5}


def odds_with(logprob):
    top = [{"token": "A", "logprob": logprob}, {"token": "B", "logprob": math.log(0.5)}]
    choice = {"message": {"content": "A"}, "logprobs": {"content": [{"top_logprobs": top}]}}
    return read_reply(CARD, {"choices": [choice]}, MESSAGES, 0.1, "AB").odds
