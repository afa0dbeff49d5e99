"""``longtake serve`` before it serves."""

from __future__ import annotations

import json
import logging
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from longtake.cli import serve as command
from longtake.errors import ConfigError
from longtake.server import app
from longtake.server.journal import Ask, Journal, RunRecord, new_id
from longtake.server.options import ServeOptions
from longtake.server.state import owned_folder


@pytest.fixture
def started(monkeypatch):
    """The options with which a server would run."""
    started = []
    monkeypatch.setattr(app, "serve", lambda options, ready: started.append(options))
    return started


def test_another_interface_demands_a_token_of_the_users_own(run, monkeypatch, started):
    code, _, err = run("serve", "--host", "0.0.0.0")
    assert (code, command.TOKEN in err, started) == (2, True, [])
    monkeypatch.setenv(command.TOKEN, "a token of the user's own")
    assert run("serve", "--host", "0.0.0.0", "--host-name", "films.local")[0] == 0
    assert started[0].token == "a token of the user's own"
    assert {"films.local:8750", "0.0.0.0:8750"} <= set(started[0].names)


def test_loopback_is_the_default(run, started):
    assert run("serve")[0] == 0
    assert (started[0].host, started[0].films) == ("127.0.0.1", (Path(),))
    assert set(started[0].names) == {"127.0.0.1:8750", "localhost:8750", "[::1]:8750"}


def test_every_option_reaches_the_server(run, started, tmp_path):
    limits = ("--at-once", "3", "--max-spend", "2", "--max-upload", "0.5", "--port", "9000")
    named = ("--films", tmp_path, "--model", "test/obliging", "--allow-url", "films.example")
    assert run("serve", *limits, *named)[0] == 0
    (options,) = started
    assert (options.at_once, options.max_spend, options.max_upload) == (3, 2.0, 500_000_000)
    assert (options.port, options.films, options.own_process) == (9000, (tmp_path,), True)
    assert (options.models, options.allow_url) == (("test/obliging",), ("films.example",))


def test_a_port_that_is_taken_and_a_folder_that_is_not_there(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = run("serve", "--port", taken.getsockname()[1])
    assert (code, "choose --port" in err) == (2, True)
    code, _, err = run("serve", "--films", "nowhere")
    assert (code, "does not exist" in err) == (2, True)


def test_the_link_is_printed_once_the_server_listens(run, monkeypatch):
    monkeypatch.setattr(app.uvicorn.Server, "run", lambda self, sockets: sockets[0].close())
    code, out, _ = run("serve", "--port", "0")
    assert code == 0
    assert "/enter?code=" in out


def test_the_log_is_json_for_as_long_as_the_server_runs(run, monkeypatch, caplog):
    log = logging.getLogger("longtake.serve")
    monkeypatch.setattr(app.uvicorn.Server, "run", lambda self, sockets: log.info("served"))
    assert json.loads(run("serve", "--port", "0")[2].splitlines()[-1])["message"] == "served"
    log.warning("after it")
    assert caplog.messages == ["after it"]


@pytest.mark.parametrize("port", [80, 8750])
def test_the_default_port_may_be_left_out_of_the_host(port):
    assert ("127.0.0.1" in ServeOptions(port=port).names) is (port == 80)


def test_the_address_is_told_when_connections_are_accepted(options, monkeypatch):
    monkeypatch.setattr(app.uvicorn.Server, "run", lambda server, sockets: sockets[0].close())
    told = []

    def ready(url, _):
        port = int(url.partition("/enter")[0].rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
        told.append(url)

    app.serve(replace(options, port=0), ready)
    assert told


def test_a_second_server_on_the_same_folder_refuses_and_changes_nothing(options, monkeypatch):
    ask = Ask(film="", question="?")
    running = RunRecord(id=new_id(), ask=ask, created=1.0, state="running")
    monkeypatch.setattr(app.uvicorn.Server, "run", lambda server, sockets: None)
    options = replace(options, port=0)
    with owned_folder(options.data):
        Journal(options.data).write(running)
        with pytest.raises(ConfigError, match="another server uses"):
            app.serve(options, print)
        assert Journal(options.data).read(running.id).state == "running"
        # an assistant's process takes the next folder
        second = options.data.with_name("data-2")
        with owned_folder(options.data, second) as folder:
            assert folder == second
    app.serve(options, print)
    assert Journal(options.data).read(running.id).state == "broken"
