"""The server under load, and the page in Debian's Chromium.

::

    python benchmarks/serve.py              # everything; a few minutes
    python benchmarks/serve.py sse memory   # some parts: sse page scroll seek memory

sse: 50 viewers on 8 runs at once; a third of them lose their connection in the middle and resume
with ``Last-Event-ID``. page: bytes and time until the library can be used. scroll: a run of 20,000
events. seek: from a click on a moment to moving pictures. memory: the server after 500 asks.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import httpx

from longtake.lab.drawing import Painter
from longtake.lab.film import make_world, write_world
from longtake.lab.world import make_script
from longtake.media.writer import Encoding, write_film
from longtake.server.journal import Ask, Journal, RunRecord, new_id

VIEWERS, RUNS, ASKS, EVENTS = 50, 8, 500, 20_000
MODEL = "acuity=0.8"
LATENCY = 0.05
PARTS = ("sse", "page", "scroll", "seek", "memory")


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
        process.wait(10)


@contextmanager
def serving(films: Path, cache: Path, name: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "longtake", "serve", "--films", str(films), "--port", "0"]
    options = ["--model", name, "--at-once", str(RUNS), "--json"]
    environment = {**os.environ, "LONGTAKE_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its log is not what is looked at here
        text=True,
    )
    try:
        said = ""
        while not said.rstrip().endswith("}"):
            said += process.stdout.readline()
        url = json.loads(said)["url"]
        token = Path(json.loads(said)["token_file"])
        home = url.partition("/enter")[0]
        yield Server(home, url, token.read_text(), token.parent, process.pid)
    finally:
        process.terminate()
        process.wait(10)


def make_films(folder: Path) -> None:
    """One film as it is, one to be repacked, one to be encoded again."""
    write_world(make_world(seed=7, minutes=3), folder)
    (folder / "film.mp4").rename(folder / "direct.mp4")
    (folder / "film.srt").unlink()
    painter = Painter(make_script(8, 2))
    x264 = Encoding(fps=Fraction(10), gop=20)
    write_film(folder / "remux.mkv", (painter.frame(n / 10) for n in range(900)), x264)
    mpeg = Encoding(codec="mpeg2video", fps=Fraction(25), gop=12, options={"b": "3000000"})
    write_film(folder / "transcode.mpg", (painter.frame(n / 25) for n in range(1500)), mpeg)


def film_ids(server: Server) -> dict[str, str]:
    with server.client() as client:
        return {each["name"]: each["id"] for each in client.get("/films").json()}


def start(client: httpx.Client, film: str, method: str, seed: int) -> str:
    ask = {"film": film, "question": "What happens at the harbour?", "method": method}
    answer = client.post("/runs", json={**ask, "seed": seed, "fresh": True})
    return answer.raise_for_status().json()["run"]["id"]


async def view(server: Server, run: str, drop_after: int | None) -> tuple[float, list]:
    """Seconds to the first event, and the ids of all events.

    On a plain socket: a client library would take longer to open 50 streams than the server.
    """
    ids: list[int] = []
    began, first = time.perf_counter(), 0.0
    host, _, port = server.home.removeprefix("http://").partition(":")
    ended = False
    while not ended:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        last = f"Last-Event-ID: {ids[-1]}\r\n" if ids else ""
        writer.write(
            f"GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Authorization: Bearer {server.token}\r\n{last}\r\n".encode()
        )
        # chunks end where events end, so their sizes are lines of their own
        while not ended and (line := await reader.readline()):
            if line.startswith(b"id: "):
                ids.append(int(line[4:]))
            elif line.startswith(b"event: "):
                first = first or time.perf_counter() - began
                ended = line == b"event: end\n"
            if drop_after is not None and len(ids) >= drop_after:
                drop_after = None
                break
        writer.close()
    return first, ids


async def watch(server: Server, runs: list[str]) -> list[tuple[str, float, list]]:
    chance = random.Random(0)
    names = [runs[number % len(runs)] for number in range(VIEWERS)]
    drops = [chance.randint(3, 25) if n % 3 == 0 else None for n in range(VIEWERS)]
    views = [view(server, run, drop) for run, drop in zip(names, drops, strict=True)]
    results = await asyncio.gather(*views)
    return [(run, *result) for run, result in zip(names, results, strict=True)]


def sse(server: Server) -> None:
    film = film_ids(server)["direct.mp4"]
    with server.client(timeout=120) as client:
        # indexing, and loading what reads and listens, is not what is measured here
        run = start(client, film, "videodetective", 99)
        while client.get(f"/runs/{run}").json()["run"]["state"] != "done":
            time.sleep(0.2)
        runs = [start(client, film, "videodetective", seed) for seed in range(RUNS)]
    results = asyncio.run(watch(server, runs))
    traces = {}
    for run in runs:
        lines = (server.data / "runs" / run / "trace.jsonl").read_text().splitlines()[1:]
        traces[run] = [json.loads(line)["id"] for line in lines]
    wrong = sum(ids != traces[run] for run, _, ids in results)
    firsts = sorted(first for _, first, _ in results)
    events = sum(len(ids) for _, _, ids in results)
    print(
        f"sse: {VIEWERS} viewers of {RUNS} runs, {events} events; first event median "
        f"{1000 * statistics.median(firsts):.0f} ms, worst {1000 * firsts[-1]:.0f} ms (goal: 100); "
        f"{wrong} viewers with lost, repeated or reordered events (goal: 0)"
    )


@contextmanager
def tabs(server: Server) -> Iterator[Callable[[], object]]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is missing: make browser installs it")
    with server.client() as client:
        cookie = client.post("/session", json={}).headers["set-cookie"].partition(";")[0]
    name, _, value = cookie.partition("=")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)

        def new_tab() -> object:
            """A tab with an empty cache, signed in."""
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.context.add_cookies([{"name": name, "value": value, "url": server.home}])
            return page

        yield new_tab
        browser.close()


WEIGHT = """() => performance.getEntriesByType('navigation').concat(
  performance.getEntriesByType('resource')).filter(e => !e.name.includes('/frame'))
  .reduce((sum, e) => sum + (e.transferSize || e.encodedBodySize || 0), 0)"""


def page_weight(server: Server) -> None:
    with tabs(server) as new_tab:
        times, weights = [], []
        for _ in range(5):
            page = new_tab()
            began = time.perf_counter()
            page.goto(server.home, wait_until="commit")
            page.get_by_role("button", name="Add a film").wait_for()
            times.append(time.perf_counter() - began)
            weights.append(page.evaluate(WEIGHT))
            page.close()
        print(
            f"page: {max(weights) / 1000:.0f} KB without pictures (goal: 150), usable after "
            f"{1000 * statistics.median(times):.0f} ms (median of 5, nothing cached; goal: 300)"
        )


def long_run(server: Server, film: str) -> str:
    """A finished run of many events."""
    record = RunRecord(
        id=new_id(),
        ask=Ask(film=film, question="A long run?"),
        created=time.time(),
        started=time.time() - 7200,
        ended=time.time(),
        state="done",
    )
    journal = Journal(server.data)
    journal.write(record)
    usage = {"calls": 1, "tokens_in": 900, "tokens_out": 60, "frames": 1, "cost": 0.001}
    with journal.trace(record.id).open("w") as file:
        file.write('{"longtake_trace": 1, "longtake": "0"}\n')
        for number in range(1, EVENTS + 1):
            parent = None if number % 50 == 1 else number - (number - 1) % 50
            event = {"id": number, "parent": parent, "time": number * 0.36}
            if parent is None:
                event |= {"kind": "step_began", "name": "look", "data": {"round": number}}
            else:
                event |= {"kind": "chat_called", "model": "m", "prompt": "p/q", "usage": usage}
                event |= {"reply": "Something is said here. " * 4}
            file.write(json.dumps(event, separators=(",", ":")) + "\n")
    return record.id


SCROLL = """() => new Promise(done => {
  const box = document.querySelector('.tree'); const gaps = []; let last = 0;
  box.scrollTop = 0; const began = performance.now();
  const step = now => {
    if (last) gaps.push(now - last); last = now; box.scrollTop += 90;
    if (now - began < 3000) requestAnimationFrame(step); else done(gaps);
  };
  requestAnimationFrame(step); })"""


def scroll(server: Server) -> None:
    run = long_run(server, film_ids(server)["direct.mp4"])
    with tabs(server) as new_tab:
        page = new_tab()
        began = time.perf_counter()
        page.goto(f"{server.home}/run/{run}")
        page.locator(".run[data-state=done]").wait_for(timeout=60_000)
        page.locator("[role=treeitem]").first.wait_for()
        loaded = time.perf_counter() - began
        gaps = sorted(page.evaluate(SCROLL))
        rows = page.locator("[role=treeitem]").count()
        late = sum(gap > 25 for gap in gaps) / len(gaps)
        print(
            f"scroll: {EVENTS} events shown after {loaded:.1f} s with {rows} rows in the page; "
            f"median frame {statistics.median(gaps):.1f} ms, 95 % under "
            f"{gaps[int(0.95 * len(gaps))]:.1f} ms, {late:.1%} late (goal: 16.7 ms)"
        )


SEEK = """time => { const began = performance.now(); const { video } = longtakePlayer;
  return longtakePlayer.seek(time, { play: true }).then(() => new Promise(done => {
    const check = () => video.currentTime > time + 0.02
      ? done(performance.now() - began) : requestAnimationFrame(check);
    check(); })); }"""


def seek(server: Server) -> None:
    with tabs(server) as new_tab:
        page = new_tab()
        for name, film in sorted(film_ids(server).items()):
            page.goto(f"{server.home}/film/{film}")
            page.locator("video").wait_for()
            page.wait_for_timeout(1000)
            times = [page.evaluate(SEEK, moment) for moment in (41.3, 12.7, 30.1)]
            mode = page.evaluate("longtakePlayer.mode")
            shown = ", ".join(f"{each:.0f}" for each in times)
            print(f"seek: {name} ({mode}) plays after {shown} ms (goal: 1000)")


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def memory(server: Server) -> None:
    film = film_ids(server)["direct.mp4"]
    at: dict[int, float] = {}
    with server.client(timeout=120) as client:
        for number in range(1, ASKS + 1):
            run = start(client, film, "blind", number)
            client.get(f"/runs/{run}/events").raise_for_status()
            if number in (100, 200, 300, 400, 500):
                at[number] = resident(server.pid)
    figures = ", ".join(f"{number}: {size:.0f} MB" for number, size in at.items())
    print(f"memory after asks: {figures} (goal: flat)")


def main() -> None:
    chosen = sys.argv[1:] or PARTS
    acts = {"sse": sse, "page": page_weight, "scroll": scroll, "seek": seek, "memory": memory}
    with tempfile.TemporaryDirectory() as folder:
        films = Path(folder) / "films"
        make_films(films)
        with model() as name, serving(films, Path(folder) / "cache", name) as server:
            for part in chosen:
                acts[part](server)


if __name__ == "__main__":
    main()
