"""The configuration of docs/howto/team.md, against scripted servers in place of its own."""

import json
import re
import tomllib
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from support.models import fill
from support.server import Request, Send, completion, serve
from support.working import Inline

from longtake import cli
from longtake.llm.chat import Image, estimate_image
from longtake.types import Frame

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "team.md"
MODELS, TEAM = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
WORLD = ("--of", "seeds=0-0", "--of", "minutes=4", "--of", "questions=1")


def pictures(request: Request) -> int:
    """How many a request shows."""
    contents = [message["content"] for message in request.body["messages"]]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return sum(part["type"] == "image_url" for part in parts)


def act(request: Request) -> Send:
    """Answers in the form that is requested, as long as the picture limit is kept."""
    if "messages" not in request.body:
        return Send(status=404)
    if pictures(request) > 96:
        return Send(status=400, body={"error": {"message": "At most 96 image(s) may be provided"}})
    schema = request.body.get("response_format", {}).get("json_schema", {}).get("schema")
    return completion(json.dumps(fill(schema)) if schema else "Well.")


@pytest.mark.parametrize("method", ["lvagent", "a4vl"])
def test_every_server_of_the_team_is_asked(tmp_path, monkeypatch, capsys, method):
    monkeypatch.setattr("longtake_bench.runner.Processes", Inline)
    monkeypatch.setenv("OPENAI_API_KEY", "the-key")
    models, team, out = tmp_path / "models.toml", tmp_path / "team.toml", tmp_path / "run"
    addresses = re.findall(r'base_url = "(.*)"', MODELS)
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(act)) for _ in addresses]
        # smaller pictures, since drawing and packing them is most of the time
        text = MODELS.replace("112896", "12544")
        for address, server in zip(addresses, servers, strict=True):
            text = text.replace(address, server.url)
        models.write_text(text)
        team.write_text(TEAM)
        line = ["eval", "lab", *WORLD, "--method", method, "--team", str(team), "--no-verify"]
        # every chunk matches, so that a look shows as many frames as it can
        line += ["--set", "lvagent.team_size=4", "--set", "lvagent.threshold=-2"]
        line += ["--set", "lvagent.reflection=false", "--set", "lvagent.reasons=false"]
        line += ["--set", "lvagent.calibration=sum", "--config", str(models), "--out", str(out)]
        assert cli.run(line) == 0, capsys.readouterr().err
    asked = [[r for r in server.requests if "messages" in r.body] for server in servers]
    assert all(asked)
    keys = [{r.headers.get("Authorization") for r in requests} for requests in asked]
    assert keys == [{None}, {None}, {None}, {"Bearer the-key"}]
    names = [{r.body["model"] for r in requests} for requests in asked]
    assert names == [{"first"}, {"second"}, {"third"}, {"gpt-4o"}]
    most = max(pictures(request) for requests in asked for request in requests)
    assert most == {"lvagent": 96, "a4vl": 32}[method]
    (row,) = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    assert row["status"] == "answered"


def test_the_pages_picture_sizes_fit_its_context():
    first = tomllib.loads(MODELS)["models"]["first"]
    film = Frame(0.0, np.zeros((1080, 1920, 3), np.uint8))
    each = estimate_image(Image(film, max_pixels=first["max_pixels"]))
    assert each == 146
    assert f"14,016 for {first['images']}" in PAGE.read_text()
    assert first["images"] * each == 14_016 < first["context"]
    assert estimate_image(Image(film, max_pixels=768 * 768)) == 779
