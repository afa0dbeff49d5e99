"""The ``mcp`` client against our tools, over stdio and over HTTP."""

import asyncio
import base64
import io
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction

import httpx
import pytest
from clients.conftest import TOKEN, WORLD, running
from PIL import Image

from longtake.config import PerceptionSettings
from longtake.video.clip import Encoding, write_film
from longtake_bench.lab.footage import LabFootage

QUESTION = next(q for q in WORLD.questions if q.options)
TOOLS = {
    "list_films", "overview", "search", "transcript", "frames", "ask", "extract",
    "wait", "cancel",
}  # fmt: skip


async def exercise(client, films):
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.output_schema for tool in tools if tool.name != "frames")
    listed = (await client.call_tool("list_films", {})).structured_content["result"]
    film = listed[0]["id"]
    about = (await client.call_tool("overview", {"film": film})).structured_content
    assert (about["name"], about["length"]) == ("film.mp4", "00:02:00")
    for name in ("film.mp4", "film", "world/film.mp4", str(films / "world" / "film.mp4")):
        assert (await client.call_tool("overview", {"film": name})).structured_content == about
    sheet = (await client.call_tool("frames", {"film": film, "times": [1, 30, 90]})).content
    picture = base64.b64decode(sheet[0].data)
    assert len(picture) < 700_000
    assert Image.open(io.BytesIO(picture)).format == "JPEG"
    assert "00:00:30.000" in sheet[1].text
    return film


async def asked(client, film):
    question = {"film": film, "question": QUESTION.text, "options": list(QUESTION.options)}
    started = await client.call_tool("ask", {**question, "method": "uniform"})
    handle = started.structured_content["handle"]
    told = []

    async def hear(progress, total, message):
        told.append(progress)

    waited = await client.call_tool(
        "wait", {"handle": handle, "seconds": 30}, progress_callback=hear
    )
    done = waited.structured_content
    assert (done["state"], done["status"]) == ("done", "answered")
    assert (done["film"], done["film_name"]) == (film, "film.mp4")
    assert done["choice"] in "ABCDE"
    again = await client.call_tool("cancel", {"handle": handle})
    assert again.structured_content["state"] == "done"
    return told


HOSTILE = [
    ("overview", {"film": "/etc/passwd"}, "no film of this server"),
    ("overview", {"film": "../../../etc/passwd"}, "no film of this server"),
    ("overview", {"film": "x" * 4097}, "^overview: film: String should have at most 4096 .*$"),
    ("overview", {}, "^overview: film: Field required$"),
    ("search", {"film": "FILM", "text": " "}, "empty"),
    ("frames", {"film": "FILM", "times": []}, "at least 1"),
    ("frames", {"film": "FILM", "times": [1.0] * 25}, "at most 24"),
    ("frames", {"film": "FILM", "times": [-5.0]}, "outside|before|range|negative"),
    ("transcript", {"film": "FILM", "start": 9, "end": 1}, "end lies before start"),
    ("ask", {"film": "FILM", "question": ""}, "at least 1"),
    ("ask", {"film": "FILM", "question": "Who?", "method": "os:system"}, "unknown method"),
    ("ask", {"film": "FILM", "question": "Who?", "options": ["one"]}, "2 to 26"),
    ("extract", {"film": "FILM", "columns": {"type": "string"}}, "object with properties"),
    ("wait", {"handle": "../../run", "seconds": 1}, "no such handle"),
    ("wait", {"handle": "x", "seconds": 3600}, "less than or equal to 40"),
    ("cancel", {"handle": "nothing"}, "no such handle"),
]


async def refused(client, film):
    for tool, arguments, words in HOSTILE:
        given = {name: film if value == "FILM" else value for name, value in arguments.items()}
        result = await client.call_tool(tool, given)
        assert result.is_error, (tool, arguments)
        assert re.search(words, result.content[0].text), result.content[0].text


async def clips(client, film):
    from mcp import MCPError

    clip = (await client.read_resource(f"film://{film}/clip/3/6")).contents[0]
    assert (clip.mime_type, base64.b64decode(clip.blob)[4:8]) == ("video/mp4", b"ftyp")
    for wrong in ("3/99", "6/3", "-1/2", "nan/2", "x/2"):
        with pytest.raises(MCPError):
            await client.read_resource(f"film://{film}/clip/{wrong}")


def http_client(address):
    # takes most of a second, which every process of a test run would need
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
    return Client(streamable_http_client(f"{address}/mcp", http_client=http))


def test_over_http(address, films):
    async def session():
        async with http_client(address) as client:
            film = await exercise(client, films)
            await asked(client, film)
            await refused(client, film)
            await clips(client, film)
            text = await client.read_resource(f"film://{film}/transcript")
            assert text.contents[0].text.startswith("<material")
            frame = await client.read_resource(f"film://{film}/frame/12.5")
            assert base64.b64decode(frame.contents[0].blob).startswith(b"\xff\xd8")

    asyncio.run(session())


@pytest.fixture
def short(options, tmp_path):
    """A server with a film of four seconds that nobody has indexed, and only its pictures are."""
    frames = LabFootage(WORLD.script).at([0.0, 1.0, 2.0, 3.0])
    (tmp_path / "films").mkdir()
    film = tmp_path / "films" / "short.mp4"
    write_film(film, (frame.pixels for frame in frames), Encoding(fps=Fraction(1)))
    perception = PerceptionSettings(reader=False, listener="none")
    settings = replace(options.settings, perception=perception)
    with running(replace(options, settings=settings, films=(film.parent,))) as address:
        yield address


def test_a_new_film_is_indexed_and_then_searched(short):
    async def session():
        async with http_client(short) as client:
            (film,) = (await client.call_tool("list_films", {})).structured_content["result"]
            wanted = {"film": film["id"], "text": "a person in a coat"}
            first = (await client.call_tool("search", wanted)).structured_content
            assert first["moments"] == []
            waiting = {"handle": first["indexing"], "seconds": 30}
            indexed = (await client.call_tool("wait", waiting)).structured_content
            assert indexed["state"] == "done"
            moments = (await client.call_tool("search", wanted)).structured_content["moments"]
            assert moments
            assert all(0 <= moment["time"] <= 4 for moment in moments)

    asyncio.run(session())


def test_without_the_token_there_are_no_tools(address):
    answer = httpx.post(f"{address}/mcp", json={"jsonrpc": "2.0", "method": "ping", "id": 1})
    assert answer.status_code == 401


@pytest.mark.usefixtures("prepared_models")
def test_over_stdio(films):
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    arguments = ["-m", "longtake", "mcp", "--films", str(films)]
    arguments += ["--model", "lab/acuity=1,hallucination=0", "--set", "answers.verify=false"]
    arguments += ["--set", "perception.reader=false", "--set", "perception.listener=none"]
    environment = {"LONGTAKE_CACHE": os.environ["LONGTAKE_CACHE"], "PYTHONPATH": ":".join(sys.path)}
    command = StdioServerParameters(command=sys.executable, args=arguments, env=environment)

    async def session():
        async with Client(command) as client:
            film = await exercise(client, films)
            # indexing a new film is a handle, too
            hits = await client.call_tool("search", {"film": film, "text": "a red cup"})
            handle = hits.structured_content["indexing"]
            cancelled = await client.call_tool("cancel", {"handle": handle})
            assert not cancelled.is_error
            return await asked(client, film)

    told = asyncio.run(session())
    assert told == sorted(told)
    assert told


@pytest.mark.usefixtures("prepared_models")
def test_half_of_a_surrogate_pair_over_stdio_is_answered(films):
    line = [sys.executable, "-m", "longtake", "mcp", "--films", str(films), "--model", "lab"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "1"}
    call = {"name": "overview", "arguments": {"film": "\ud800"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(line, env=environment, text=True, **pipes) as process:
        process.stdin.writelines(f"{json.dumps(message)}\n" for message in messages)
        process.stdin.flush()
        # a request that is dropped is never answered: then the line is empty
        patience = threading.Timer(60, process.kill)
        patience.start()
        lines = [process.stdout.readline() for _ in range(2)]
        patience.cancel()
        process.stdin.close()
    assert "no film of this server" in lines[1]
