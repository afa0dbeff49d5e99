"""How endpoints are asked: small servers that behave as real ones were seen to."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel, Field
from support.clocks import TurnedClock
from support.listening import listening
from support.server import Request, Send, chat_at, completion, serve

from longtake.config import CacheSettings, Settings
from longtake.config.entries import OpenAIEntry
from longtake.llm import capabilities
from longtake.llm.backends.openai import LOOPBACK_SECONDS, OpenAIChat
from longtake.llm.capabilities import REMEMBERED, Capabilities, KnownCapabilities, remembered
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Card, Options, Unavailable, say
from longtake.llm.middleware import Retrying, with_capabilities
from longtake.llm.openai_protocol import wire_body
from longtake.llm.probe import probe
from longtake.llm.structured.schema import Letter, schema_for
from longtake.types import Question

HELLO = [say("user", "Which? Reply in JSON.")]
QUESTION = Question("Who barks?", ("the man", "the dog"))


class Said(BaseModel):
    reason: str = ""
    score: int = Field(ge=1, le=3)
    choice: Letter = None


SCHEMA = schema_for(Said, QUESTION)
GOOD = '{"reason": "a bark", "score": 3, "choice": "B"}'
TYPED = Options(schema=SCHEMA, max_tokens=100)


def has_schema(request: Request) -> bool:
    return request.body.get("response_format", {}).get("type") == "json_schema"


def llama_cpp_python(request: Request) -> Send:
    """Answers 500 to json_schema, with pydantic's complaint."""
    if has_schema(request):
        complaint = "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]"
        return Send(500, {"error": {"message": complaint, "type": "internal_server_error"}})
    return completion("B")


def json_mode_only(request: Request) -> Send:
    if has_schema(request):
        return Send(400, {"error": {"message": "response_format.type must be json_object"}})
    return completion("B")


@pytest.mark.parametrize("server", [llama_cpp_python, json_mode_only])
def test_a_schema_that_is_refused_is_left_out_from_then_on(
    server: Callable[[Request], Send],
) -> None:
    with serve(server) as served, listening() as heard:
        chat = Retrying(chat_at(served), clock=TurnedClock())
        for _ in range(2):
            assert chat.complete(HELLO, TYPED).text == "B"
    assert list(map(has_schema, served.requests)) == [True, False, False]
    assert chat.capabilities is not None
    assert chat.capabilities.has_refused("schema")
    assert [note.data["feature"] for note in heard.notes("left_out")] == ["schema"]


def test_a_probe_finds_a_server_that_accepts_a_schema_and_ignores_it() -> None:
    with serve(lambda _: completion("The dog barks, so it is B.")) as served:
        chat = chat_at(served)
        chat.complete(HELLO, TYPED)
        assert not chat.capabilities.has_refused("schema"), "one reply says little"
        assert probe(chat).json_schema is False
        chat.complete(HELLO, TYPED)
    assert not has_schema(served.requests[-1])


def test_a_server_that_is_merely_broken_is_retried_and_nothing_is_remembered() -> None:
    with serve(lambda _: Send(500, b"oops")) as served:
        chat = chat_at(served)
        retrying = Retrying(chat, clock=TurnedClock(), tries=3)
        with pytest.raises(Unavailable):
            retrying.complete(HELLO, TYPED)
    assert chat.capabilities.known.refused == []
    assert len(served.requests) == 3


def test_a_server_that_loads_its_model_is_waited_for_and_that_is_said() -> None:
    sends = [Send(503, {"error": {"message": "Loading model", "code": 503}})] * 40
    with serve(lambda _: sends.pop() if sends else completion("hi")) as served:
        clock = TurnedClock()
        with listening() as heard:
            assert chat_at(served, clock=clock).complete(HELLO, Options()).text == "hi"
        assert len(heard.notes("loading")) == 1
        sends.append(Send(503, {"error": {"message": "Loading model"}}))
        with pytest.raises(Unavailable) as raised:
            chat_at(served, clock=clock).complete(HELLO, Options(deadline=1.0))
    assert raised.value.out_of_time


def test_a_loading_server_cannot_ask_for_a_long_sleep() -> None:
    loading = Send(503, {"error": {"message": "Loading model"}}, {"Retry-After": "1e9"})
    sends = [completion("hi"), loading]
    with serve(lambda _: sends.pop()) as served:
        clock = TurnedClock()
        assert chat_at(served, clock=clock).complete(HELLO, Options()).text == "hi"
    assert clock.slept == [20.0]


@pytest.mark.parametrize(
    ("paths", "context"),
    [
        ({"/v1/models": {"data": [{"id": "m", "max_model_len": 2048}]}}, 2048),
        ({"/props": {"default_generation_settings": {"n_ctx": 4096}}}, 4096),
        ({"/v1/models": {"data": [{"id": "m", "max_model_len": "many"}]}}, None),
        ({}, None),
    ],
)
def test_the_context_is_read_where_the_endpoint_tells_it(
    paths: Mapping[str, object], context: int | None
) -> None:
    def act(request: Request) -> Send:
        return Send(200, paths[request.path]) if request.path in paths else Send(404, {})

    with serve(act) as served:
        chat = with_capabilities(chat_at(served))
        asked = len(served.requests)
        assert with_capabilities(chat).card.context == context
    assert chat.card.context == context
    assert len(served.requests) == asked, "asked once"


def test_texts_are_bounded_and_every_field_is_required() -> None:
    with serve(lambda _: completion(GOOD)) as served:
        chat_at(served).complete(HELLO, TYPED)
    form = served.requests[0].body["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["required"] == ["reason", "score", "choice"]
    assert form["schema"]["properties"]["reason"]["maxLength"] == 200
    assert "default" not in form["schema"]["properties"]["reason"]


def test_bounds_are_not_sent_to_other_machines() -> None:
    for host, bounded in (("", True), ("127.0.0.1:8000", True), ("api.example.com", False)):
        body = wire_body(Card("m", host=host), HELLO, TYPED, Capabilities())
        schema = body["response_format"]["json_schema"]["schema"]
        assert ("maxLength" in schema["properties"]["reason"]) is bounded
        assert ("maximum" in schema["properties"]["score"]) is bounded


def test_what_was_learned_is_remembered_for_a_day_and_measurements_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = remembered(tmp_path, "url#m")
    learned.refuse("m", "schema", "no")
    learned.learn(reading=30.0, context=2048)
    assert remembered(tmp_path, "url#m") is learned
    assert not remembered(tmp_path, "url#n").has_refused("schema")
    monkeypatch.setattr(capabilities, "_discovered", {})  # another process
    assert remembered(tmp_path, "url#m").known == learned.known
    then = learned.known.at
    monkeypatch.setattr(capabilities, "_discovered", {})
    monkeypatch.setattr(capabilities.time, "time", lambda: then + REMEMBERED + 1)
    later = remembered(tmp_path, "url#m")
    assert (later.known.refused, later.known.context, later.known.reading) == ([], None, 30.0)
    monkeypatch.setattr(capabilities, "_discovered", {})
    (tmp_path / capabilities.FILE).write_text("{damaged")
    assert remembered(tmp_path, "url#m").known == KnownCapabilities()


def test_every_catalogue_knows_what_one_learned(tmp_path: Path) -> None:
    with serve(llama_cpp_python) as served:
        entry = OpenAIEntry(model="m", base_url=served.url)
        settings = Settings(cache=CacheSettings(folder=str(tmp_path)), models={"there": entry})
        for _ in range(2):
            ModelCatalog(settings).open("there").complete(HELLO, TYPED)
    assert list(map(has_schema, served.requests)) == [True, False, False]
    assert "schema" in (tmp_path / "models" / capabilities.FILE).read_text()


@pytest.mark.parametrize(
    ("url", "timeout", "seconds"),
    [
        ("http://127.0.0.1:1/v1", 120.0, LOOPBACK_SECONDS),
        ("http://127.0.0.1:1/v1", 30.0, 30.0),
        ("https://example.com/v1", 120.0, 120.0),
    ],
)
def test_a_slow_model_on_this_machine_is_not_abandoned(
    url: str, timeout: float, seconds: float
) -> None:
    entry = OpenAIEntry(model="m", base_url=url, timeout=timeout)
    chat = ModelCatalog(Settings(models={"there": entry})).bare("there")
    assert isinstance(chat, OpenAIChat)
    assert chat._endpoint.timeout == seconds
