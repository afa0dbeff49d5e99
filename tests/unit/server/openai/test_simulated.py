"""The server: the same model for any client, and as unreliable as configured."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
from bench.lab.asking import CHOICE, answered, shown

from longtake.errors import ConfigError
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.chat import Card, Image, Options, ToolSpec, Unavailable, say
from longtake.llm.http import Endpoint
from longtake.llm.media import encode_jpeg
from longtake.llm.middleware import Retrying
from longtake.server.app import serving
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import LabModel
from longtake_bench.simulated_server import SimulatedService

WORLD = make_world(4, 10, 40)
FOOTAGE = LabFootage(WORLD.script)
SHARP = LabModel(acuity=1.0, hallucination=0.0)


@pytest.fixture(scope="module")
def url():
    with serving(SimulatedService(SHARP).app()) as address:
        yield address


def client(url, name="lab/acuity=1,hallucination=0"):
    return OpenAIChat(Card("served", model=name), Endpoint("served", url))


def post(url, body, path="/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = httpx.post(url + path, content=data)
    return reply.status_code, reply.json()


def needle():
    """A question that one moment answers, and the frames that show it."""
    question = next(q for q in WORLD.questions if q.kind == "needle")
    return question, FOOTAGE.at([question.evidence[0].middle])


PLAIN = {"messages": [{"role": "user", "content": "x"}]}


def showing(url, kind="image_url"):
    content = [{"type": "text", "text": "Describe."}, {"type": kind, kind: {"url": url}}]
    return {"messages": [{"role": "user", "content": content}]}


def test_through_the_server_a_model_says_what_it_says_in_the_process(url):
    far, near = client(url), LabChat(SHARP)
    for question in WORLD.questions[:12]:
        if question.options:
            messages = shown(question, FOOTAGE.at([s.middle for s in question.evidence]))
            over, here = (chat.complete(messages, Options(schema=CHOICE)) for chat in (far, near))
            assert over.text == here.text
            assert (over.usage.tokens_in, over.usage.tokens_out) == (
                here.usage.tokens_in,
                here.usage.tokens_out,
            )


def test_a_request_may_name_its_own_model(url):
    question, frames = needle()
    blind = client(url, "lab/acuity=0")
    assert answered(blind, question, frames)[1] == 1


def test_tool_calls(url):
    tool = ToolSpec(
        "retrieve", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}}
    )
    reply = client(url).complete(shown(needle()[0]), Options(tools=(tool,)))
    assert reply.tool_calls[0].name == "retrieve"
    assert json.loads(reply.tool_calls[0].arguments)["query"]
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{not json", "property name"),
        (b"[]", "object"),
        ({}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "king"),
        ({"messages": [{"content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": [{"type": "sound"}]}]}, "sound"),
        (showing("http://x/y"), "_url: only "),
        (showing("data:image/png;base64,AAAA"), "not a picture"),
        ({**PLAIN, "stream_options": {"include_usage": True}}, "together with stream"),
        ({**PLAIN, "n": 2}, "n: only one"),
        ({**PLAIN, "logit_bias": {"5": 1}}, "logit_bias: not supported"),
        ({**PLAIN, "audio": {"voice": "x"}}, "audio: not supported"),
        ({**PLAIN, "tool_choice": "required"}, "tool_choice"),
        ({**PLAIN, "logprobs": True}, "logprobs: not supported"),
        ({**PLAIN, "max_completion_tokens": 0}, "max_completion_tokens"),
        ({**PLAIN, "response_format": {"type": "json_object"}}, "json_schema"),
        (showing("file:///etc/passwd", "video_url"), "_url: only "),
        (showing("data:video/mp4;base64,AAAA", "video_url"), "lists of frames"),
        ({**PLAIN, "model": "lab/acuity=9"}, "acuity"),
        ({**PLAIN, "tools": [{}]}, "tools"),
    ],
)
def test_bad_requests_are_told_why(url, body, words):
    status, said = post(url, body)
    assert status == 400
    assert words in said["error"]["message"]


def test_unknown_paths(url):
    assert post(url, {}, "/embeddings")[0] == 404


def test_failures_come_at_their_rate_and_are_got_over():
    with serving(SimulatedService(SHARP, fail_rate=0.4).app()) as address:
        with httpx.Client() as many:
            statuses = [
                many.post(f"{address}/chat/completions", json=PLAIN).status_code for _ in range(60)
            ]
        assert {429, 503, 200} == set(statuses)
        assert 0.2 < sum(status != 200 for status in statuses) / 60 < 0.6
        patient = Retrying(client(address), tries=12)
        assert patient.complete([say("user", "x")], Options()).text
    with (
        serving(SimulatedService(SHARP, fail_rate=1.0).app()) as address,
        pytest.raises(Unavailable),
    ):
        client(address).complete([say("user", "x")], Options())


def test_a_server_of_one_world_does_not_know_another():
    question, frames = needle()
    with serving(SimulatedService(LabModel(acuity=1.0, world=(5, 10))).app()) as address:
        assert answered(client(address, "lab/acuity=1"), question, frames)[1] == 1


def test_a_port_that_is_taken_is_refused_in_words(url):
    with (
        pytest.raises(ConfigError, match="cannot listen"),
        serving(SimulatedService(SHARP).app(), int(url.split(":")[2][:-3])),
    ):
        pass


@contextmanager
def lab_serve(*arguments):
    """The standard output of ``longtake lab serve``."""
    command = [sys.executable, "-m", "longtake", "lab", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process.stdout
        finally:
            process.terminate()


@pytest.mark.processes
def test_the_command_serves_a_world_without_its_questions(tmp_path):
    (tmp_path / "script.json").write_text(WORLD.script.to_json())
    with lab_serve("--world", str(tmp_path), "--model", "acuity=1,hallucination=0") as out:
        line = out.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1#lab/.*world=4:10", line)
        address, _, name = line.partition("#")
        question, frames = needle()
        assert answered(client(address, name), question, frames) == (True, 3)


@pytest.mark.processes
def test_the_command_says_where_it_serves_as_json():
    with lab_serve("--model", "acuity=1", "--json") as out:
        served = json.loads("".join(out.readline() for _ in range(5)))
        assert served["model"] == f"{served['url']}#lab/acuity=1"


def streamed(url, body):
    reply = httpx.post(f"{url}/chat/completions", json={**body, "stream": True})
    lines = [line for line in reply.text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_a_stream_says_what_the_whole_reply_says(url):
    body = {"messages": [{"role": "developer", "content": "Be brief."}, *PLAIN["messages"]]}
    whole = post(url, body)[1]
    pieces = streamed(url, {**body, "stream_options": {"include_usage": True}})
    words = [piece["choices"][0]["delta"].get("content") or "" for piece in pieces[:-1]]
    assert "".join(words) == whole["choices"][0]["message"]["content"]
    assert pieces[-2]["choices"][0]["finish_reason"] == "stop"
    assert pieces[-1] == {**pieces[-1], "choices": [], "usage": whole["usage"]}
    assert "usage" not in streamed(url, body)[-1]


def test_tool_calls_are_streamed(url):
    tool = {"type": "function", "function": {"name": "retrieve", "parameters": {}}}
    text = "".join(message.text for message in shown(needle()[0]))
    body = {"messages": [{"role": "user", "content": text}], "tools": [tool]}
    pieces = streamed(url, body)
    calls = [piece["choices"][0]["delta"].get("tool_calls") for piece in pieces]
    assert next(filter(None, calls))[0]["function"]["name"] == "retrieve"
    assert pieces[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert (
        "tool_calls" not in post(url, {**body, "tool_choice": "none"})[1]["choices"][0]["message"]
    )


def test_models_are_listed_and_described(url):
    assert httpx.get(f"{url}/models").json()["data"][0]["id"] == SHARP.name
    said = httpx.get(f"{url}/models/lab%2Facuity=0.5").json()
    assert (said["id"], said["owned_by"]) == ("lab/acuity=0.5", "longtake")
    assert said["created"] > 0
    for name in ("lab/acuity=7", "gpt-9"):
        assert httpx.get(f"{url}/models/{name}").status_code == 404


def test_a_reply_keeps_to_its_length_and_stops_at_a_word(url):
    whole = post(url, PLAIN)[1]["choices"][0]["message"]["content"]
    short = post(url, {**PLAIN, "max_completion_tokens": 2})[1]
    assert short["choices"][0]["finish_reason"] == "length"
    assert short["usage"]["completion_tokens"] == 2
    assert whole.startswith(short["choices"][0]["message"]["content"])
    stopped = post(url, {**PLAIN, "stop": " that"})[1]["choices"][0]["message"]["content"]
    assert stopped == whole.split(" that")[0]


def test_a_list_of_frames_is_seen(url):
    frames = [FOOTAGE.at([float(second)])[0] for second in range(120, 123)]
    jpegs = [base64.b64encode(encode_jpeg(frame.pixels, 10**6)).decode() for frame in frames]
    listed = post(url, showing(f"data:video/jpeg;base64,{','.join(jpegs)}", "video_url"))[1]
    near = LabChat(SHARP).complete([say("user", "Describe.", *map(Image, frames))], Options()).text
    assert listed["choices"][0]["message"]["content"] == near
