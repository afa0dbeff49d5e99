"""Crowds of viewers of Server-Sent Events, for ``serve.py``."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time

import httpx
from serve_process import RUNS, Server, cpu_seconds, film_ids, start

VIEWERS = 50
CROWDS = 8
"""Times that all viewers come at once."""


async def view(server: Server, run: str, drop_after: int | None) -> tuple[float, list]:
    """Seconds to the first event, and the ids of all events."""
    ids: list[int] = []
    began, first = time.perf_counter(), 0.0
    ended = False
    while not ended:
        reader, writer = await request_events(server, run, ids[-1] if ids else None)
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


async def request_events(
    server: Server, run: str, last: int | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for the events of a run on a plain socket.

    A client library would take longer to open 50 streams than the server to answer them.
    """
    host, _, port = server.home.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
    resumed = "" if last is None else f"Last-Event-ID: {last}\r\n"
    writer.write(
        f"GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {server.token}\r\n{resumed}\r\n".encode()
    )
    return reader, writer


async def first_event(server: Server, run: str) -> tuple[float, asyncio.StreamWriter]:
    """Seconds to the first event, and the connection, still open."""
    began = time.perf_counter()
    reader, writer = await request_events(server, run)
    while not (line := await reader.readline()).startswith(b"event: "):
        assert line, "the stream ended before its first event"
    return time.perf_counter() - began, writer


async def crowd(server: Server, runs: list[str]) -> list[float]:
    """Seconds to the first event of each viewer; nobody reads on until all have theirs."""
    names = [runs[number % len(runs)] for number in range(VIEWERS)]
    results = await asyncio.gather(*(first_event(server, run) for run in names))
    for _, writer in results:
        writer.close()
    return sorted(first for first, _ in results)


async def watch(server: Server, runs: list[str]) -> list[tuple[str, float, list]]:
    chance = random.Random(0)
    names = [runs[number % len(runs)] for number in range(VIEWERS)]
    drops = [chance.randint(3, 25) if n % 3 == 0 else None for n in range(VIEWERS)]
    views = [view(server, run, drop) for run, drop in zip(names, drops, strict=True)]
    results = await asyncio.gather(*views)
    return [(run, *result) for run, result in zip(names, results, strict=True)]


def sse(server: Server) -> None:
    # direct.mp4 has 20,000 lines of subtitles, which are not what is measured here
    film = film_ids(server)["remux.mkv"]
    with server.client(timeout=120) as client:
        # indexing, and loading what reads and listens, is not what is measured here
        run = start(client, film, "videodetective", 99)
        while client.get(f"/runs/{run}").json()["run"]["state"] != "done":
            time.sleep(0.2)
        whole_runs(server, client, film)
        crowds(server, client, film, run)


def whole_runs(server: Server, client: httpx.Client, film: str) -> None:
    """Every event of every run reaches every viewer once and in order."""
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
        f"{1000 * statistics.median(firsts):.0f} ms, worst {1000 * firsts[-1]:.0f} ms (goal: 150); "
        f"{wrong} viewers with lost, repeated or reordered events (goal: 0)"
    )


def crowds(server: Server, client: httpx.Client, film: str, ended: str) -> None:
    """The first event, again and again, of runs that begin and of one that has ended."""
    busy, quiet, loop, own = [], [], 0.0, 0.0
    for number in range(CROWDS):
        loop, own = loop - cpu_seconds(server, server.pid), own - time.process_time()
        quiet.append(asyncio.run(crowd(server, [ended])))
        loop, own = loop + cpu_seconds(server, server.pid), own + time.process_time()
        seeds = range(100 * (number + 1), 100 * (number + 1) + RUNS)
        runs = [start(client, film, "videodetective", seed) for seed in seeds]
        busy.append(asyncio.run(crowd(server, runs)))
        cancel(client, runs)
    for name, firsts in (("runs that begin", busy), ("a run that has ended", quiet)):
        medians = sorted(1000 * statistics.median(each) for each in firsts)
        worst = statistics.median(1000 * each[-1] for each in firsts)
        print(
            f"sse: {CROWDS} crowds of {VIEWERS} viewers, {name}: first event median "
            f"{statistics.median(medians):.0f} ms (crowds {medians[0]:.0f} to {medians[-1]:.0f}), "
            f"worst viewer {worst:.0f} ms (goal: 150)"
        )
    each = 1000 / (CROWDS * VIEWERS)
    print(
        f"sse: CPU per viewer of the run that has ended: {loop * each:.2f} ms in the server's "
        f"loop, {own * each:.2f} ms in this benchmark"
    )


def cancel(client: httpx.Client, runs: list[str]) -> None:
    """Cancel runs and wait for their end."""
    for run in runs:
        client.post(f"/runs/{run}/cancel", json={}).raise_for_status()
    for run in runs:
        client.get(f"/runs/{run}/events").raise_for_status()
