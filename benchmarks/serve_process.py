"""A server in a process of its own, for ``serve.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.serving import start_server

from longtake.config import Settings, cache_folder

RUNS = 8
"""Runs at once."""
MODEL = "acuity=0.8"
LATENCY = 0.05


@dataclass(frozen=True)
class Server:
    """A server in a process of its own."""

    home: str
    enter: str
    token: str
    data: Path
    pid: int

    def client(self, **more: object) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=f"{self.home}/api/v1", headers=headers, **more)


@contextmanager
def model() -> Iterator[str]:
    """A simulated model in a process of its own, as models are: its work is not the server's."""
    command = [sys.executable, "-m", "longtake", "lab", "serve", "--model", MODEL]
    process = subprocess.Popen(
        [*command, "--port", "0", "--latency", str(LATENCY)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def serving(films: Path, cache: Path, name: str, threads: int = 1) -> Iterator[Server]:
    options = ["--model", name, "--at-once", str(RUNS)]
    process, started = start_server(
        films, cache, *options, quiet=True, OMP_NUM_THREADS=str(threads)
    )
    try:
        url, token = started["url"], Path(started["token_file"])
        home = url.partition("/enter")[0]
        yield Server(home, url, token.read_text(), token.parent, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def link_models(cache: Path) -> None:
    """Have the weights of local models in a cache; downloading them is not what is measured."""
    (cache / "models").mkdir(parents=True)
    for file in (cache_folder(Settings()) / "models").glob("*.gguf"):
        (cache / "models" / file.name).symlink_to(file)


def film_ids(server: Server) -> dict[str, str]:
    with server.client() as client:
        return {each["name"]: each["id"] for each in client.get("/films").json()}


def start(client: httpx.Client, film: str, method: str, seed: int) -> str:
    ask = {"film": film, "question": "What happens at the harbour?", "method": method}
    answer = client.post("/runs", json={**ask, "seed": seed, "fresh": True})
    return answer.raise_for_status().json()["run"]["id"]


def resident(pid: int) -> float:
    """Megabytes of a process and of those it started, such as the one that computes."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    size = int(line.split()[1]) / 1000
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        size += sum(resident(int(child)) for child in children.read_text().split())
    return size


def cpu_seconds(server: Server, thread: int | None = None) -> float:
    """CPU seconds of the server, or of one thread; the loop's thread has the process's id."""
    if thread is not None:
        figures = Path(f"/proc/{server.pid}/task/{thread}/schedstat").read_text()
        return int(figures.split()[0]) / 1e9
    # with those of threads that have ended; the name before may hold spaces
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
