"""The server under load, and the page in Debian's Chromium.

::

    python benchmarks/serve.py              # everything; a few minutes
    python benchmarks/serve.py sse memory   # some parts: sse page scroll seek memory
    python benchmarks/serve.py ask CLIP QUESTION…   # with the built-in model

sse: 50 viewers on 8 runs at once; a third of them lose their connection in the middle and resume
with ``Last-Event-ID``; then further crowds, of which only the first event is awaited. page: bytes
and time until the library can be used. scroll: a run of 20,000 events, and a transcript of as many
lines. seek: from a click on a moment to moving pictures. memory: the server after 500 asks.
ask: each question is typed and asked about a film that is indexed; seconds from the click on Ask to
the first passage, to the first word of the draft and to the answer.
"""

from __future__ import annotations

import json
import os
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
from typing import Any

from serve_process import (
    Server,
    cpu_seconds,
    film_ids,
    link_models,
    model,
    resident,
    serving,
    start,
)
from serve_viewers import sse

from longtake.server.journal import Ask, Journal, RunRecord, new_id
from longtake.video.clip import Encoding, write_film
from longtake.video.subtitles import srt
from longtake_bench.lab.drawing import Painter
from longtake_bench.lab.film import make_world, write_world
from longtake_bench.lab.world import make_script

ASKS, EVENTS = 500, 20_000
LOCAL = "local/qwen2.5-coder-1.5b"
PARTS = ("sse", "page", "scroll", "seek", "memory")


def make_films(folder: Path) -> None:
    """One film as it is, one to be repacked, one to be encoded again."""
    write_world(make_world(seed=7, minutes=3), folder)
    (folder / "film.mp4").rename(folder / "direct.mp4")
    (folder / "film.srt").unlink()
    painter = Painter(make_script(8, 2))
    x264 = Encoding(fps=Fraction(10), gop=20)
    write_film(folder / "remux.mkv", (painter.frame(n / 10) for n in range(900)), x264)
    mpeg = Encoding(codec="mpeg2video", fps=Fraction(25), gop=12, options={"b": "3000000"})
    # a talk of as many lines as the longest run has events
    lines = [
        (n * 0.009, n * 0.009 + 0.008, f"This is line {n} of a long talk.") for n in range(EVENTS)
    ]
    (folder / "direct.srt").write_text(srt(lines))
    write_film(folder / "transcode.mpg", (painter.frame(n / 25) for n in range(1500)), mpeg)


@contextmanager
def tabs(server: Server) -> Iterator[Callable[[], Any]]:
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

        def new_tab() -> Any:
            """A tab with an empty cache, signed in."""
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.context.add_cookies([{"name": name, "value": value, "url": server.home}])
            return page

        yield new_tab
        browser.close()


WEIGHT = """() => performance.getEntriesByType('navigation').concat(
  performance.getEntriesByType('resource')).filter(e => !/\\/(frame|file|stream)/.test(e.name))
  .reduce((sum, e) => sum + (e.transferSize || e.encodedBodySize || 0), 0)"""
SHOWN = """(() => {
  // when something is on screen for the first time, in milliseconds after the address was entered
  window.shown = {};
  const places = { usable: '.library .page-head button', films: '.film-card h2',
    film: '#question', events: '[role=treeitem]', lines: '.line' };
  new MutationObserver(() => Object.entries(places).forEach(([name, place]) => {
    if (name in shown || !document.querySelector(place)) return;
    shown[name] = null;
    requestAnimationFrame(() => setTimeout(() => { shown[name] = performance.now(); }));
  })).observe(document, { childList: true, subtree: true });
})()"""

AWAITED = """name => new Promise(done => {
  const look = () => (shown[name] ? done(shown[name]) : setTimeout(look, 20));
  look(); })"""


@dataclass
class Tab:
    """A tab, and the CPU time that its own thread and the server use from now on."""

    page: Any
    server: Server

    def __post_init__(self) -> None:
        self._devtools = self.page.context.new_cdp_session(self.page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.add_init_script(SHOWN)
        self._began = cpu_seconds(self.server)

    def cpu(self) -> float:
        """Milliseconds of the page's thread since the page was opened."""
        figures = self._devtools.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in figures if each["name"] == "TaskDuration")

    def work(self) -> str:
        """CPU time so far, which other work on the machine does not change much."""
        served = 1000 * (cpu_seconds(self.server) - self._began)
        return f"CPU {self.cpu():.0f} ms in the page, {served:.0f} ms in the server"

    def open(self, path: str, shown: str) -> float:
        """Milliseconds until something is on screen."""
        self.page.goto(self.server.home + path, wait_until="commit")
        return float(self.page.evaluate(AWAITED, shown))


def page_weight(server: Server) -> None:
    with tabs(server) as new_tab:
        figures = []
        for _ in range(5):
            tab = Tab(new_tab(), server)
            tab.open("/", "films")
            shown = tab.page.evaluate("shown")
            figures.append((shown["usable"], shown["films"]))
            weight, work = tab.page.evaluate(WEIGHT), tab.work()
            tab.page.close()
        usable, films = map(statistics.median, zip(*figures, strict=True))
        tab = Tab(new_tab(), server)
        opened = tab.open(f"/film/{film_ids(server)['remux.mkv']}", "film")
        whole = tab.page.evaluate(WEIGHT)
        print(
            f"page: a film, {whole / 1000:.0f} KB without pictures (goal: 60), can be asked after "
            f"{opened:.0f} ms; {tab.work()}"
        )
        print(
            f"page: list of films, {weight / 1000:.0f} KB without pictures (goal: 60), usable "
            f"after {usable:.0f} ms (goal: 300), films listed after {films:.0f} ms "
            f"(medians of 5, nothing cached); {work} (the last)"
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


PLAIN = (
    "<div class=tree style='height: 360px; overflow: auto; contain: strict'>"
    + "<div style='height: 30px'>Something is said here.</div>" * 1200
    + "</div>"
)
"""Rows that nobody draws while they are scrolled: what this machine can do."""
SCROLL = """() => new Promise(done => {
  const box = document.querySelector('.tree, .lines'); const gaps = []; let last = 0;
  box.scrollTop = 0; const began = performance.now();
  const step = now => {
    if (last) gaps.push(now - last); last = now; box.scrollTop += 90;
    if (now - began < 3000) requestAnimationFrame(step); else done(gaps);
  };
  requestAnimationFrame(step); })"""


def scroll(server: Server) -> None:
    film = film_ids(server)["direct.mp4"]
    addresses = {"events": f"/trace/{long_run(server, film)}", "lines": f"/film/{film}"}
    with tabs(server) as new_tab:
        shown = {}
        for name, address in addresses.items():
            for again in ("for the first time", "again"):
                tab = shown[name] = Tab(new_tab(), server)
                after = tab.open(address, name) / 1000
                print(f"scroll: {EVENTS} {name} shown {again} after {after:.2f} s; {tab.work()}")
        shown["plain"] = Tab(new_tab(), server)
        shown["plain"].page.set_content(PLAIN)
        gaps = {name: [] for name in shown}
        busy = dict.fromkeys(shown, 0.0)
        # alternately, because other work on the machine makes frames late as well
        for _ in range(3):
            for name, tab in shown.items():
                tab.page.bring_to_front()
                before = tab.cpu()
                gaps[name] += tab.page.evaluate(SCROLL)
                busy[name] += tab.cpu() - before
        for name, each in gaps.items():
            what = "1,200 rows of plain text" if name == "plain" else f"{EVENTS} {name}"
            print(f"scroll: {what}: {frames(each)}, {busy[name] / len(each):.1f} ms of CPU a frame")


def frames(gaps: list[float]) -> str:
    """Figures of the time from frame to frame."""
    gaps = sorted(gaps)
    late = sum(gap > 25 for gap in gaps) / len(gaps)
    slow = gaps[int(0.95 * len(gaps))]
    return f"median frame {statistics.median(gaps):.1f} ms, 95 % under {slow:.1f}, {late:.1%} late"


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


def memory(server: Server) -> None:
    film = film_ids(server)["direct.mp4"]
    at: dict[int, float] = {}
    with server.client(timeout=120) as client:
        for number in range(1, ASKS + 1):
            run = start(client, film, "blind", number)
            client.get(f"/runs/{run}/events").raise_for_status()
            if number % (ASKS // 5) == 0:
                at[number] = resident(server.pid)
    figures = ", ".join(f"{number}: {size:.1f} MB" for number, size in at.items())
    threads = len(list(Path(f"/proc/{server.pid}/task").iterdir()))
    files = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
    print(f"memory after asks: {figures} (goal: flat); {threads} threads, {files} open files")


ASKED = """() => {
  const began = performance.now(); window.asked = {};
  const places = { passages: '[aria-label=Draft] button', word: '[aria-label=Draft] .answer-text',
    answer: '[aria-label=Answer]' };
  new MutationObserver(() => Object.entries(places).forEach(([name, place]) => {
    if (!(name in asked) && document.querySelector(place))
      asked[name] = (performance.now() - began) / 1000;
  })).observe(document, { childList: true, subtree: true });
  document.querySelector('form.ask button.primary').click(); }"""


def ask(clip: str, *questions: str) -> None:
    if not questions:
        sys.exit("benchmarks/serve.py ask: name a film and at least one question")
    with tempfile.TemporaryDirectory() as folder:
        films, cache = Path(folder) / "films", Path(folder) / "cache"
        films.mkdir()
        film = shutil.copy(clip, films)
        link_models(cache)
        index = [sys.executable, "-m", "longtake", "index", film]
        subprocess.run(index, env={**os.environ, "LONGTAKE_CACHE": str(cache)}, check=True)
        threads = os.cpu_count() or 1
        with serving(films, cache, LOCAL, threads) as server, tabs(server) as new_tab:
            page = new_tab()
            (number,) = film_ids(server).values()
            rows = []
            for question in questions:
                page.goto(f"{server.home}/film/{number}")
                # as fast as a person types: the model is loaded in the meantime
                page.locator("#question").press_sequentially(question, delay=100)
                page.wait_for_timeout(1000)
                page.evaluate(ASKED)
                page.get_by_role("region", name="Answer").wait_for(timeout=300_000)
                rows.append(page.evaluate("asked"))
                print(f"ask: {question} {rows[-1]}")
            for name in ("passages", "word", "answer"):
                times = [row[name] for row in rows if name in row]
                print(
                    f"ask: {name} after {statistics.median(times):.1f} s (median of {len(times)})"
                )


def main() -> None:
    if sys.argv[1:2] == ["ask"] and len(sys.argv) > 3:
        ask(*sys.argv[2:])
        return
    chosen = sys.argv[1:] or PARTS
    if not set(chosen) <= set(PARTS):
        sys.exit(__doc__)
    acts = {"sse": sse, "page": page_weight, "scroll": scroll, "seek": seek, "memory": memory}
    with tempfile.TemporaryDirectory() as folder:
        films = Path(folder) / "films"
        make_films(films)
        with model() as name, serving(films, Path(folder) / "cache", name) as server:
            for part in chosen:
                acts[part](server)


if __name__ == "__main__":
    main()
