"""A marked key through every backend: it is in no event, trace, cache file, log, error or repr."""

import json
import logging
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.server import Request, Send, completion, serve

from longtake.config import Settings
from longtake.config.entries import OpenAIEntry, SocraticEntry
from longtake.errors import LongtakeError
from longtake.llm.backend import Description
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Image, Options, say
from longtake.llm.middleware import ReplyStore, Traced
from longtake.tracing.events import Stream
from longtake.tracing.jsonl import JsonlSink
from longtake.types import Frame

KEY = "sk-MARKED-0123456789abcdef"


WORDS = (
    "echo", "escaped", "split", "refuse", "refuse_escaped", "redirect", "host", "bad_host",
    "schema", "error", "hang", "plain",
)  # fmt: skip


class Blind:
    revision = "1"

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        return Description()


def leaky(request: Request) -> Send:
    """A server that gives the key back wherever it can."""
    bearer = request.headers.get("Authorization", "")
    assert KEY in bearer
    match request.text.split()[0]:
        case "echo":
            return completion(f"your key is {bearer}", reasoning_content=bearer)
        case "escaped":
            spelt = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
            body = json.dumps(completion("@", reasoning_content="@").body)
            return Send(200, body.replace("@", spelt).encode())
        case "split":
            parts = [{"type": "text", "text": KEY[:9]}, {"type": "text", "text": KEY[9:]}]
            return completion(parts)
        case "refuse_escaped":
            spelt = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
            return Send(401, f'{{"error": {{"message": "no {spelt}"}}}}'.encode())
        case "host":
            return Send(307, {}, {"Location": f"http://{KEY}.invalid/"})
        case "bad_host":
            return Send(307, {}, {"Location": "http://[::bad/"})
        case "refuse":
            return Send(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
        case "redirect":
            return Send(307, {}, {"Location": f"http://127.0.0.1:1/{KEY}"})
        case "schema":
            if "response_format" in request.body:
                return Send(400, {"error": f"response_format is not supported for {KEY}"})
        case "error":
            return Send(200, {"error": {"message": bearer}})
        case "hang":
            return Send(breaks="hang")
    return completion("ok")


@pytest.mark.parametrize("name", ["cloud", "eyes"])
def test_the_key_is_nowhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MARKED_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    with serve(leaky) as served:
        entries = {
            "cloud": OpenAIEntry(base_url=served.url, api_key_env="MARKED_KEY", timeout=0.3),
            "eyes": SocraticEntry(llm="cloud"),
        }
        settings = Settings(models=entries)
        catalogue = ModelCatalog(settings)
        store = ReplyStore(tmp_path / "cache")
        stream = Stream(JsonlSink(tmp_path / "trace.jsonl"))
        chat = Traced(catalogue.open(name, describer=Blind(), replies=store))
        frame = Image(Frame(0.0, np.zeros((8, 8, 3), np.uint8)))
        with stream.active():
            for word in WORDS:
                options = Options(deadline=1.0, schema={"type": "object"})
                try:
                    texts.append(repr(chat.complete([say("user", f"{word} this", frame)], options)))
                except LongtakeError as error:
                    texts.append("".join(traceback.format_exception(error)))
        stream.close()
        store.close()
        texts += [
            repr(value) for value in (chat, catalogue, settings, chat.card, catalogue.bare("cloud"))
        ]
    assert len(served.requests) >= 7
    texts.append(caplog.text)
    for text in texts:
        assert KEY.lower() not in text.lower()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"trace.jsonl", "replies.sqlite"} <= {path.name for path in files}
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
