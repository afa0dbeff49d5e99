"""A server that is killed loses nothing that it reported as done."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from films import Recipe
from support.serving import interrupts, start_server
from support.streams import read_stream

SLOW = "lab/acuity=0.8,latency=600,sleep=1"


class Server:
    """``longtake serve`` in a process of its own."""

    def __init__(self, films: Path, cache: Path) -> None:
        self.process, started = start_server(films, cache, "--model", "lab/acuity=0.8")
        home = started["url"].partition("/enter")[0]
        self.port = int(home.rpartition(":")[2])
        self.token = (cache / "serve" / "token").read_text()
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx.Client(base_url=home, headers=headers, timeout=120)

    def kill(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)


@pytest.fixture
def servers(tmp_path):
    """Starts servers on the same folders, one after another."""
    empty = tmp_path / "films"
    empty.mkdir()
    started = []

    def start(films: Path = empty) -> Server:
        started.append(Server(films, Path(os.environ["LONGTAKE_CACHE"])))
        return started[-1]

    yield start
    for server in started:
        server.kill()


def begin_upload(server: Server, data: bytes) -> socket.socket:
    """Send the first half of a film and leave the connection open."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    head = (
        f"POST /api/v1/films/upload?name=half.mp4 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: video/mp4\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    connection.sendall(head.encode() + data[: len(data) // 2])
    return connection


def engine_of(server: Server) -> int:
    """The process in which the server's runs compute."""
    for number in subprocess.check_output(["pgrep", "-P", str(server.process.pid)]).split():
        command = Path(f"/proc/{int(number)}/cmdline").read_bytes()
        if b"spawn_main" in command:
            return int(number)
    raise AssertionError("the server has no engine")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds the process below /proc")
def test_an_engine_that_is_killed_takes_down_its_runs_and_nothing_else(servers, film_folder):
    Recipe("plain.mp4").make(film_folder)
    server = servers(film_folder)
    client = server.client
    film = client.get("/api/v1/films").json()[0]["id"]
    ask = {"film": film, "question": "Why?", "method": "blind", "index_first": False}
    slow = client.post("/api/v1/runs", json={**ask, "models": [SLOW]}).json()["run"]["id"]
    with client.stream("GET", f"/api/v1/runs/{slow}/events") as stream:
        lines = stream.iter_lines()
        assert any(line == "event: run_started" for line in lines)
        os.kill(engine_of(server), signal.SIGKILL)
        # the viewer is told, on the same connection
        last = [line for line in lines if line.startswith("data: ")][-1]
    assert json.loads(last.removeprefix("data: "))["state"] == "broken"
    again = client.post("/api/v1/runs", json=ask).json()["run"]["id"]
    assert read_stream(client, again)[-1][2]["state"] == "done"


@pytest.mark.campaign
@pytest.mark.usefixtures("prepared_models")
def test_killed_during_an_upload_an_index_and_a_run(servers, film_folder, tmp_path):
    data = Recipe("plain.mp4").make(film_folder).read_bytes()
    server = servers()
    client = server.client
    headers = {"Content-Type": "video/mp4"}
    film = client.post("/api/v1/films/upload?name=whole.mp4", content=data, headers=headers).json()
    ask = {"film": film["id"], "question": "Why?", "method": "blind"}
    done = client.post("/api/v1/runs", json=ask).json()["run"]["id"]
    assert read_stream(client, done)[-1][2]["state"] == "done"
    client.post(f"/api/v1/films/{film['id']}/index", json={})
    slow = client.post("/api/v1/runs", json={**ask, "models": [SLOW], "seed": 1})
    broken = slow.json()["run"]["id"]
    with begin_upload(server, data):
        drafts = Path(os.environ["LONGTAKE_CACHE"]) / "serve" / "films"
        while not list(drafts.glob(".arriving-*")):
            time.sleep(0.01)
        server.kill()
    again = servers().client
    assert [each["name"] for each in again.get("/api/v1/films").json()] == ["whole.mp4"]
    assert [path.name for path in drafts.iterdir()] == ["whole.mp4"]
    runs = {
        each["run"]["id"]: each["run"]["state"] for each in again.get("/api/v1/runs").json()["runs"]
    }
    assert runs[done] == "done"
    assert runs[broken] == "broken"
    assert read_stream(again, done)[-2][0] == "answered"
    # the index goes on where it was
    index = again.post(f"/api/v1/films/{film['id']}/index", json={}).json()["run"]["id"]
    assert read_stream(again, index)[-1][2]["state"] == "done"


@pytest.mark.processes
@pytest.mark.parametrize("times", [1, 2])
def test_interrupts_end_the_server_and_its_engine(servers, capfd, times):
    with interrupts():
        server = servers()
    for _ in range(times):
        server.process.send_signal(signal.SIGINT)
        # the server takes longer to end; without a pause, two signals may become one
        time.sleep(0.005)
    assert server.process.wait(60) == 130
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.processes
def test_an_interrupt_that_was_ignored_at_the_start_stays_so(servers):
    with interrupts(signal.SIG_IGN):
        server = servers()
    server.process.send_signal(signal.SIGINT)
    # a server that ends accepts no connections after a tenth of a second
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.5)
    assert server.client.get("/healthz").status_code == 200
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == -signal.SIGTERM
