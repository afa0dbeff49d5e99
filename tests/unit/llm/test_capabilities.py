"""How endpoints are asked: small servers that behave as real ones were seen to."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from support.clocks import TurnedClock
from support.listening import listening
from support.server import Request, Send, chat_at, completion, serve

from longtake.config import CacheSettings, Settings
from longtake.config.entries import OpenAIEntry
from longtake.llm import capabilities
from longtake.llm.backends.openai import LOOPBACK_SECONDS, OpenAIChat
from longtake.llm.capabilities import REMEMBERED, KnownCapabilities, remembered
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Options, Unavailable, say
from longtake.llm.middleware import Retrying, with_capabilities
from longtake.llm.probe import probe
from longtake.llm.structured.schema import Letter, matches_schema, schema_for, strict_schema
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


def way(request: Request) -> str:
    """The rung that a request is on."""
    form = request.body.get("response_format")
    if form is None:
        return "tool" if "tool_choice" in request.body else "plain"
    if form["type"] == "json_schema":
        return "json_schema"
    return "schema_object" if "schema" in form else "json_object"


def tool_call(arguments: str) -> Send:
    call = {"id": "1", "function": {"name": "reply", "arguments": arguments}}
    return completion(None, finish="tool_calls", tool_calls=[call])


def llama_cpp_python(request: Request) -> Send:
    """Answers 500 to json_schema, with pydantic's complaint; keeps to a schema in JSON mode."""
    if way(request) == "json_schema":
        complaint = "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]"
        return Send(500, {"error": {"message": complaint, "type": "internal_server_error"}})
    return completion(GOOD if way(request) == "schema_object" else "Well.")


def ignoring(request: Request) -> Send:
    """Accepts everything and enforces nothing, as transformers serve does."""
    return completion("The dog barks, so it is B.")


def json_mode_only(request: Request) -> Send:
    if way(request) in ("json_schema", "schema_object"):
        return Send(400, {"error": {"message": "response_format.type must be json_object"}})
    return completion('{"choice": "B"}')


def tools_only(request: Request) -> Send:
    if "response_format" in request.body:
        return Send(422, {"detail": "Extra inputs are not permitted: response_format"})
    return tool_call(GOOD) if way(request) == "tool" else completion("Well.")


def crashing(request: Request) -> Send:
    """Fails on any schema and does not say why."""
    return completion("B") if way(request) == "plain" else Send(500, b"Internal Server Error")


@pytest.mark.parametrize(
    ("server", "ways", "rung", "text"),
    [
        (lambda _: completion(GOOD), ["json_schema"] * 2, "json_schema", GOOD),
        (
            llama_cpp_python,
            ["json_schema", "schema_object", "schema_object"],
            "schema_object",
            GOOD,
        ),
        (
            json_mode_only,
            ["json_schema", "schema_object", "json_object", "json_object"],
            "json_object",
            '{"choice": "B"}',
        ),
        (tools_only, ["json_schema", "schema_object", "json_object", "tool", "tool"], "tool", GOOD),
        # once more, then without: the form is to blame; the next rung is then tried likewise
        (
            crashing,
            ["json_schema", "json_schema", "plain", "schema_object", "schema_object", "plain"],
            "json_object",
            "B",
        ),
    ],
)
def test_each_server_is_asked_in_the_strictest_way_that_it_takes(
    server: Callable[[Request], Send], ways: list[str], rung: str, text: str
) -> None:
    with serve(server) as served:
        chat = Retrying(chat_at(served), clock=TurnedClock())
        assert chat.complete(HELLO, TYPED).text == text
        assert chat.complete(HELLO, TYPED).text == text
    assert [way(request) for request in served.requests] == ways
    assert chat.capabilities is not None
    assert chat.capabilities.rung == rung


def test_a_server_that_accepts_and_does_not_keep_to_it_is_noticed_named_and_left() -> None:
    with serve(ignoring) as served, listening() as heard:
        chat = chat_at(served)
        for _ in range(5):
            assert chat.complete(HELLO, TYPED).text.startswith("The dog")
        report = probe(chat)
    assert [way(request) for request in served.requests[:5]] == list(capabilities.LADDER)
    notes = heard.notes("not_enforced")
    assert [note.data["feature"] for note in notes[:4]] == list(capabilities.LADDER[:4])
    assert "The dog" in notes[0].data["why"]
    assert report.json_schema is False
    assert report.verdicts["json_schema"] == "accepted, not enforced"
    assert report.form == "plain"


def test_a_cut_reply_or_a_refusal_says_nothing_about_enforcement() -> None:
    sends = [completion('{"reason": "a ba', finish="length"), completion(None, refusal="No.")]
    with serve(lambda _: sends.pop(0)) as served:
        chat = chat_at(served)
        chat.complete(HELLO, TYPED)
        chat.complete(HELLO, TYPED)
    assert chat.capabilities.known.verdicts == {}


def test_a_server_that_is_merely_broken_is_retried_and_nothing_is_remembered() -> None:
    with serve(lambda _: Send(500, b"oops")) as served:
        chat = chat_at(served)
        retrying = Retrying(chat, clock=TurnedClock(), tries=3)
        with pytest.raises(Unavailable):
            retrying.complete(HELLO, TYPED)
    assert chat.capabilities.known.verdicts == {}
    assert len(served.requests) == 5, "two more than the three tries, once"


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


def test_bounds_that_a_strict_server_refuses_are_left_out_and_the_schema_stays() -> None:
    def act(request: Request) -> Send:
        schema = json.dumps(request.body["response_format"])
        told = "Invalid schema for response_format 'reply': 'maxLength' is not permitted."
        return (
            Send(400, {"error": {"message": told}}) if "maxLength" in schema else completion(GOOD)
        )

    with serve(act) as served:
        chat = chat_at(served)
        chat.complete(HELLO, TYPED)
        chat.complete(HELLO, TYPED)
    assert [way(request) for request in served.requests] == ["json_schema"] * 3
    assert chat.capabilities.rung == "json_schema"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"reason": "a dog that', None),
        ("{", None),
        ("The dog barks because", "accepted, not enforced"),
        ('{"properties": {"reason": ', "accepted, not enforced"),
    ],
)
def test_a_cut_reply_shows_only_that_a_schema_is_not_enforced(
    text: str, verdict: str | None
) -> None:
    with serve(lambda _: completion(text, finish="length")) as served:
        chat = chat_at(served)
        chat.complete(HELLO, TYPED)
    assert chat.capabilities.known.verdicts.get("json_schema") == verdict


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (GOOD, True),
        (f"```json\n{GOOD}\n```", False),
        ('{"score": 3, "choice": "B"}', False),
        ('{"reason": "", "score": true, "choice": "B"}', False),
        ('{"reason": "", "score": 3, "choice": "Z"}', False),
        ('{"reason": "", "score": 3, "choice": "B", "more": 1}', False),
        ('["B"]', False),
    ],
)
def test_what_an_enforced_reply_looks_like(text: str, kept: bool) -> None:
    assert matches_schema(text, strict_schema(SCHEMA)) is kept


def test_what_was_learned_is_remembered_for_a_day_and_measurements_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = remembered(tmp_path, "url#m")
    learned.judge("m", "json_schema", "refused", "no")
    learned.learn(reading=30.0, context=2048)
    assert remembered(tmp_path, "url#m") is learned
    assert remembered(tmp_path, "url#n").rung == "json_schema"
    monkeypatch.setattr(capabilities, "_discovered", {})  # another process
    assert remembered(tmp_path, "url#m").known == learned.known
    then = learned.known.at
    monkeypatch.setattr(capabilities, "_discovered", {})
    monkeypatch.setattr(capabilities.time, "time", lambda: then + REMEMBERED + 1)
    later = remembered(tmp_path, "url#m")
    assert (later.rung, later.known.context, later.known.reading) == ("json_schema", None, 30.0)
    monkeypatch.setattr(capabilities, "_discovered", {})
    (tmp_path / capabilities.FILE).write_text("{damaged")
    assert remembered(tmp_path, "url#m").known == KnownCapabilities()


def test_every_catalogue_knows_what_one_learned(tmp_path: Path) -> None:
    with serve(llama_cpp_python) as served:
        entry = OpenAIEntry(model="m", base_url=served.url)
        settings = Settings(cache=CacheSettings(folder=str(tmp_path)), models={"there": entry})
        for _ in range(2):
            ModelCatalog(settings).open("there").complete(HELLO, TYPED)
    ways = [way(request) for request in served.requests]
    assert ways == ["json_schema", "schema_object", "schema_object"]
    assert "schema_object" in (tmp_path / "models" / capabilities.FILE).read_text()


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


def told() -> dict[str, Any]:
    return {"question": QUESTION, "manner": ""}
