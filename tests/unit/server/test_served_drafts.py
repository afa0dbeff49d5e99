"""Drafts of answers in a run's events and in OpenAI's protocol."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.server import Request, Send, completion, serve, stream

QUESTION = "Where does the ship leave from?"
LINES = "1\n00:00:00,000 --> 00:00:01,500\nThe ship leaves from Bremen at noon.\n"
TEXTS = ["It leaves ", "from Bremen."]


def act(asked: Request) -> Send:
    if not asked.path.endswith("/chat/completions"):
        return Send(404)
    return stream(*TEXTS) if "stream" in asked.body else completion("".join(TEXTS))


@pytest.fixture
def options(options, model_cache):
    (options.films[0] / "plain.srt").write_text(LINES)
    with serve(act) as served:
        yield replace(options, models=(f"{served.url}#m",))


def test_viewers_receive_passages_the_draft_and_then_the_answer(ask):
    _, received = ask(question=QUESTION, method="lookup", index_first=False)
    kinds = [kind for kind, _, _ in received]
    drafts = [data for kind, _, data in received if kind == "drafted"]
    assert [(each["text"], each["anew"]) for each in drafts] == [
        ("It leaves", True),
        (" from Bremen.", False),
    ]
    notes = {data["label"]: data["data"] for kind, _, data in received if kind == "noted"}
    (passage,) = notes["passages_found"]["passages"]
    assert passage == {"start": 0.0, "end": 1.5, "text": "The ship leaves from Bremen at noon."}
    assert kinds.index("drafted") < kinds.index("chat_called") < kinds.index("answered")


def test_a_client_of_openais_protocol_gets_drafts_as_reasoning_and_the_answer_as_content(client):
    body = {
        "model": "longtake/lookup",
        "messages": [{"role": "user", "content": f"film:plain.mp4 {QUESTION}"}],
    }
    reply = client.post("/v1/chat/completions", json={**body, "stream": True})
    pieces = [
        json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")
    ]
    deltas = [choice["delta"] for piece in pieces for choice in piece["choices"]]
    contents = [delta["content"] for delta in deltas if delta.get("content")]
    assert contents == ["It leaves from Bremen."]
    reasoning = "".join(delta.get("reasoning_content", "") for delta in deltas)
    assert "\ndraft: It leaves from Bremen.\nlookup/answer: It leaves from Bremen.\n" in reasoning
    whole = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
    assert whole["content"] == "It leaves from Bremen."
    assert "draft" not in whole["reasoning"]
