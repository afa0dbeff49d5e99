"""The server under load, and the page in Debian's Chromium.

::

    python benchmarks/serve.py              # everything; a few minutes
    python benchmarks/serve.py sse memory   # some parts: sse page scroll seek memory

sse: 50 viewers on 8 runs at once; a third of them lose their connection in the middle and resume
with ``Last-Event-ID``; then further crowds, of which only the first event is awaited. page: bytes
and time until the library can be used. scroll: a run of 20,000 events, and a transcript of as many
lines. seek: from a click on a moment to moving pictures. memory: the server after 500 asks.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from serve_process import Server, film_ids, model, resident, serving, start
from serve_viewers import sse

from longtake.lab.drawing import Painter
from longtake.lab.film import make_world, write_world
from longtake.lab.world import make_script
from longtake.server.journal import Ask, Journal, RunRecord, new_id
from longtake.video.clip import Encoding, write_film
from longtake.video.subtitles import srt

ASKS, EVENTS = 500, 20_000
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
    run = long_run(server, film_ids(server)["direct.mp4"])
    with tabs(server) as new_tab:
        page = new_tab()
        began = time.perf_counter()
        page.goto(f"{server.home}/trace/{run}")
        page.locator("[role=treeitem]").first.wait_for(timeout=60_000)
        loaded = time.perf_counter() - began
        rows = page.locator("[role=treeitem]").count()
        print(f"scroll: {EVENTS} events shown after {loaded:.1f} s with {rows} rows in the page")
        talk = new_tab()
        began = time.perf_counter()
        talk.goto(f"{server.home}/film/{film_ids(server)['direct.mp4']}")
        talk.locator(".line").first.wait_for(timeout=60_000)
        print(f"scroll: {EVENTS} lines shown after {time.perf_counter() - began:.1f} s")
        plain = new_tab()
        plain.set_content(PLAIN)
        # alternately, because other work on the machine makes frames late as well
        gaps, read, least = [], [], []
        for _ in range(3):
            plain.bring_to_front()
            least += plain.evaluate(SCROLL)
            page.bring_to_front()
            gaps += page.evaluate(SCROLL)
            talk.bring_to_front()
            read += talk.evaluate(SCROLL)
        print(f"scroll: events {frames(gaps)} (goal: 16.7 ms); transcript {frames(read)}")
        print(f"scroll: 1,200 rows of plain text: {frames(least)}")


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
