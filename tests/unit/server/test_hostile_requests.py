"""No request gives a server error, whatever it holds: every route with hostile values."""

from __future__ import annotations

import base64
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from films import Recipe
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from support.streams import read_stream

from longtake.server.app import build
from longtake.server.jobs import Outcome
from longtake.server.journal import Ask, Journal, RunRecord, new_id
from longtake.server.options import ServeOptions
from longtake.server.security import AccessKeys
from longtake.types import Answer, Result, Usage

TOKEN = "t" * 32
HOME = "http://127.0.0.1:8750"
BAD_TEXT = (
    *("", "\0", "a\0b", "x" * 300, "~nouser/film.mp4", "~", "..", "../../etc/passwd", "漢" * 120),
    *("\ud800", "a\udcffb", "²", "9" * 5000, "NaN", "-1", "1e400", "http://[", "http://a:b/c.mp4"),
    *("file://x/y", "file:///a%00b", "data:video/mp4;base64,AAAA", "data:image/png;base64,AAAA"),
    *("sent-" + "0" * 32, "tag:", "date>", '"', "%", "{", "\r\n", "film:\0", "lab/acuity=1e999"),
)
BAD_NUMBERS = (0, -1, 1, 10**400, -(10**400), 1e308, -1e308, float("nan"), float("inf"), 2**64)
BAD_VALUES = (*BAD_TEXT, *BAD_NUMBERS, None, True, [], {}, [[]], ["\0"], {"url": "http://["})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A client of a server whose runs end at once, and texts that name what it has."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "films").mkdir()
    Recipe("plain.mp4", count=20).make(folder / "films")
    options = ServeOptions(films=(folder / "films",), models=("lab/acuity=1",), folder=folder / "d")
    journal = Journal(options.data)
    app = build(options, AccessKeys(TOKEN, 8750))
    state = app.state.longtake
    state.pool._work.do = lambda *_: Outcome(Result(Answer("yes"), Usage(), "blind"))
    film = state.catalog.films()[0].id
    run = RunRecord(id=new_id(), ask=Ask(film=film, question="?"), created=0.0, state="failed")
    journal.write(run)
    with TestClient(app, base_url=HOME, raise_server_exceptions=False) as client:
        yield client, (film, run.id, "blind", "srt", "md", "2")


def operations(document):
    """Every method and path of an OpenAPI document, with what it says about them."""
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            yield method.upper(), path, operation


def resolved(schema, document):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def body_of(schema, document, draw, known):
    """A body that has the form of its schema, with hostile values in it."""
    schema = resolved(schema, document)
    if "properties" not in schema or draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from((*BAD_VALUES, *known)))
    body = {}
    for name, part in schema["properties"].items():
        # with too many hostile values at once, the first of them hides the others
        if name in schema.get("required", ()) or draw(st.integers(0, 4)) == 0:
            body[name] = body_of(part, document, draw, known)
    return body


CHAT = {
    "properties": {
        "model": {},
        "messages": {},
        "longtake": {"properties": {"budget": {}, "models": {}, "fresh": {}}},
        "seed": {},
        "stream_options": {},
        "response_format": {},
        "media_io_kwargs": {
            "properties": {
                "video": {
                    "properties": {
                        "fps": {},
                        "duration": {},
                        "frames_indices": {},
                        "total_num_frames": {},
                    }
                }
            }
        },
    },
    "required": ["model", "messages"],
}
"""The body of a chat completion, which the OpenAPI document leaves open."""


def chat_body(draw, known):
    body = body_of(CHAT, {}, draw, known)
    if not isinstance(body, dict):
        return body
    kind = draw(st.sampled_from(("text", "video_url", "image_url")))
    part = {"type": kind, kind: draw(st.sampled_from((*BAD_VALUES, *known)))}
    text = draw(st.sampled_from((f"Why? film:{known[0]}", "Why? 99999999999:00:00", *BAD_TEXT)))
    body["messages"] = [{"role": "user", "content": [{"type": "text", "text": text}, part]}]
    body["model"] = draw(st.sampled_from(("longtake/blind", "longtake/blind:calls=1e999", "\0")))
    return body


@given(data=st.data())
@settings(
    max_examples=400 if "ATTACK" in os.environ else 100,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_gives_a_server_error(server, data):
    client, known = server
    document = client.app.openapi()
    draw = data.draw
    method, path, operation = draw(st.sampled_from(list(operations(document))))
    texts = st.sampled_from((*BAD_TEXT, *known))
    # a path or a query holds bytes: what is not UTF-8 arrives as such
    for parameter in operation.get("parameters", ()):
        value = draw(texts).encode(errors="surrogatepass")
        if parameter["in"] == "path":
            quoted = "".join(f"%{byte:02X}" for byte in value)
            path = path.replace(f"{{{parameter['name']}}}", quoted)
        elif parameter["in"] == "query" and draw(st.booleans()):
            quoted = "".join(f"%{byte:02X}" for byte in value)
            path += f"{'&' if '?' in path else '?'}{parameter['name']}={quoted}"
    headers = {"content-type": "application/json"}
    if draw(st.booleans()):
        headers["last-event-id"] = draw(st.sampled_from((b"\xb2", b"9" * 5000, b"-1", b"1")))
    content = None
    if path.startswith("/v1/chat"):
        content = json.dumps(chat_body(draw, known))
    elif "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        content = json.dumps(body_of(schema, document, draw, known))
    elif path.startswith("/api/v1/films/upload"):
        headers["content-type"] = "video/mp4"
        content = draw(st.binary(max_size=200))
    reply = client.request(method, path, content=content, headers=headers)
    assert reply.status_code < 500 or reply.status_code in (501, 502, 503), (method, path, content)


def test_a_film_whose_name_is_not_utf8_is_listed_and_opened(options, connect):
    odd = options.films[0] / os.fsdecode(b"d\xff")
    odd.mkdir()
    shutil.copy(options.films[0] / "plain.mp4", odd / os.fsdecode(b"caf\xe9.mp4"))
    client = connect(options)
    listed = next(file for file in client.get("/api/v1/films").json() if file["folder"])
    assert (listed["folder"], listed["name"]) == ("d?", "caf?.mp4")
    assert client.get(f"/api/v1/films/{listed['id']}").json()["name"] == "caf?.mp4"
    ask = {"film": listed["id"], "question": "Why?", "method": "uniform"}
    run = client.post("/api/v1/runs", json=ask)
    assert run.json()["run"]["film_name"] == "caf?.mp4"
    assert [kind for kind, _, _ in read_stream(client, run.json()["run"]["id"])][-1] == "end"


def test_an_upload_may_have_a_long_name(client, options):
    headers = {"content-type": "video/mp4"}
    film = (options.films[0] / "plain.mp4").read_bytes()
    for _ in range(2):
        sent = client.post(
            "/api/v1/films/upload",
            params={"name": f"{'漢' * 120}.mp4"},
            content=film,
            headers=headers,
        )
        assert (sent.status_code, sent.json()["name"].startswith("漢漢")) == (200, True)


def sent_film(client, options, number=0):
    data = base64.b64encode((options.films[0] / "plain.mp4").read_bytes()).decode()
    parts = [
        {"type": "text", "text": f"Why {number}?"},
        {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{data}"}},
    ]
    body = {"model": "longtake/blind", "messages": [{"role": "user", "content": parts}]}
    return client.post("/v1/chat/completions", json=body)


def test_the_same_film_may_be_sent_eight_times_at_once(client, options):
    with ThreadPoolExecutor(8) as clients:
        replies = list(clients.map(lambda n: sent_film(client, options, n), range(8)))
    assert [reply.status_code for reply in replies] == [200] * 8


def test_a_sent_film_can_be_shown_and_deleted(client, options):
    film = sent_film(client, options).json()["longtake"]["film"]
    assert client.get(f"/api/v1/films/{film}").json()["duration"] > 0
    assert client.delete(f"/api/v1/films/{film}").json()["freed"] > 0
    assert client.get(f"/api/v1/films/{film}").status_code == 404
