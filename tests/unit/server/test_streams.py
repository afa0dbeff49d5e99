"""The stream of a run's events, and those who watch it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from longtake.server.app import build
from longtake.server.jobs import Outcome
from longtake.server.journal import Ask
from longtake.server.routes.runs import EventStream
from longtake.server.security import AccessKeys

HTTP = {"type": "http"}


def test_requests_that_name_no_stream_are_refused(client, ask):
    run, _ = ask()
    address = f"/api/v1/runs/{run}/events"
    assert client.get(f"{address}?after=x").status_code == 422
    assert client.get(f"{address}?brief=2").status_code == 422
    assert client.get("/api/v1/runs/20260101T000000-aaaaaaaaaaaa/events").status_code == 404
    assert client.delete(address).status_code == 405


@pytest.fixture
def state(options):
    """A server whose runs wait until ``gate`` opens."""
    options = replace(options, at_once=1)
    state = build(options, AccessKeys("t" * 32, 8750)).state.longtake
    gate = threading.Event()

    def wait(job, stop, report):
        while not gate.wait(0.01):
            stop.check()
        return Outcome()

    state.pool._work.do = wait
    yield state
    gate.set()
    state.close()


def test_a_viewer_who_leaves_ends_the_stream_and_not_the_run(state):
    ask = Ask(film=state.catalog.films()[0].id, question="Why?")
    run = state.pool.start(ask)
    sent = []

    async def watch():
        left = asyncio.Event()

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if b"event: state" in message.get("body", b""):
                left.set()

        before = asyncio.all_tasks()
        await asyncio.wait_for(EventStream(state, run.record)(HTTP, receive, send), timeout=60)
        assert asyncio.all_tasks() == before

    asyncio.run(watch())
    assert sent[0]["status"] == 200
    assert sent[1]["body"].startswith(b"event: state\n")
    assert not run.ended


def test_the_first_event_of_every_viewer_comes_before_the_second_of_any(state):
    ask = Ask(film=state.catalog.films()[0].id, question="Why?")
    run = state.pool.start(ask)
    run.cancel()
    record, sent = run.record, []

    async def never():
        await asyncio.Event().wait()

    async def watch(viewer):
        async def send(message):
            if message.get("body"):
                sent.append(viewer)

        await EventStream(state, record)(HTTP, never, send)

    async def watch_all():
        async with asyncio.timeout(60):
            await asyncio.gather(*(watch(viewer) for viewer in range(5)))

    asyncio.run(watch_all())
    assert sent[:5] == [0, 1, 2, 3, 4]
    assert len(sent) > 5
