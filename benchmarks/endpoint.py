"""What the OpenAI-compatible endpoint adds to a question: 32 at once, beside the method itself.

    python benchmarks/endpoint.py

The model answers at once, so that nearly all of the time is ours. The same 32 questions are first
asked through the session on 32 threads, then over HTTP by 32 clients. The difference, divided by
the number of questions, is what one question costs besides the method's own time. Processor time
is given as well, because it does not depend on what else the machine does; it includes the client.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import httpx
import uvicorn

import longtake
from longtake.config import AnswerSettings, CacheSettings, Settings
from longtake.lab.film import make_world
from longtake.lab.footage import LabFootage
from longtake.server.app import _bind, create_app
from longtake.server.options import ServeOptions
from longtake.server.security import AccessKeys
from longtake.video.clip import Encoding, write_film

MODEL = "lab/acuity=1,latency=0"
TOKEN = "t" * 32
AT_ONCE = 32
ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            cache=CacheSettings(folder=f"{folder}/cache"), answers=AnswerSettings(verify=False)
        )
        path = Path(folder) / "films" / "film.mp4"
        path.parent.mkdir()
        world = make_world(8, 2, 40)
        footage = LabFootage(world.script)
        pictures = (frame.pixels for frame in footage.at(footage.times.tolist()))
        write_film(path, pictures, Encoding(fps=Fraction(1), gop=10))
        # different questions, so that none is joined to another
        texts = [f"What happens in part {number}?" for number in range(AT_ONCE)]
        direct = min(_direct(path, settings, texts) for _ in range(ROUNDS))
        served = _served(path, settings, texts, Path(folder))
    for name, own, theirs in zip(("elapsed", "processor"), direct, served, strict=True):
        added = (theirs - own) / AT_ONCE * 1000
        asked = f"{AT_ONCE} questions at once: direct {own:.3f} s, endpoint {theirs:.3f} s"
        print(f"{name}: {asked}; {added:.1f} ms added to each (goal: 20)")


def _timed(ask: Callable[[str], None], texts: list[str]) -> tuple[float, float]:
    """Elapsed and processor seconds of all questions at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        began, used = time.perf_counter(), time.process_time()
        list(pool.map(ask, texts))
        return time.perf_counter() - began, time.process_time() - used


def _direct(path: Path, settings: Settings, texts: list[str]) -> tuple[float, float]:
    film = longtake.open(path, settings=settings)

    def ask(text: str) -> None:
        film.ask(text, method="uniform", model=MODEL, cache=False)

    return _timed(ask, texts)


def _served(path: Path, settings: Settings, texts: list[str], folder: Path) -> tuple[float, float]:
    options = ServeOptions(
        settings=settings, films=(path.parent,), models=(MODEL,), folder=folder / "data", port=0
    )
    options = replace(options, at_once=AT_ONCE)
    listener = _bind(options.host, options.port)
    options = replace(options, port=listener.getsockname()[1])
    app = create_app(options, AccessKeys(TOKEN, options.port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    address = f"http://127.0.0.1:{options.port}/v1/chat/completions"
    limits = httpx.Limits(max_connections=AT_ONCE)
    with httpx.Client(
        headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120, limits=limits
    ) as client:

        def ask(text: str) -> None:
            message = {"role": "user", "content": f"film:film.mp4 {text}"}
            body = {"model": "longtake/uniform", "messages": [message]}
            client.post(address, json={**body, "longtake": {"fresh": True}}).raise_for_status()

        best = min(_timed(ask, texts) for _ in range(ROUNDS))
    server.should_exit = True
    return best


if __name__ == "__main__":
    main()
