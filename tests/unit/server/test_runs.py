"""Runs: queue, joining, cancelling, resuming, surviving a restart."""

from __future__ import annotations

import errno
import json
import threading
from dataclasses import replace

import pytest
from support.streams import read_stream

from longtake._util.cancellation import Cancelled
from longtake.errors import BudgetSpent
from longtake.server import journal
from longtake.server.films import ServedFilms
from longtake.server.jobs import Crash, Outcome
from longtake.server.journal import Ask, Journal, JournalUnwritable, RunRecord, new_id
from longtake.server.runs import QueueFull, RunPool
from longtake.tracing import trace
from longtake.types import Answer, Result, Usage

ANSWERED = Outcome(Result(Answer("yes"), Usage(), "blind"))


@pytest.fixture
def asked(ask):
    """A finished run, and its events."""
    return ask()


def test_a_run_streams_its_trace_in_order(client, asked):
    run, events = asked
    traced = [(kind, int(number)) for kind, number, _ in events if number]
    assert [number for _, number in traced] == list(range(1, len(traced) + 1))
    assert traced[0][0] == "run_started"
    assert traced[-1][0] == "answered"
    assert events[0][0] == "state"
    assert events[-1][0] == "end"
    assert events[-1][2]["state"] == "done"
    assert client.get(f"/api/v1/runs/{run}").json()["run"]["answer"]["text"]


def test_what_was_asked_comes_apart_from_what_it_carries(ask):
    _, events = ask(method="blind", carried="Q: Who?\nA: Ann")
    asked = events[0][2]["ask"]
    assert (asked["question"], asked["carried"]) == ("Why?", "Q: Who?\nA: Ann")
    assert all("ask" not in data for kind, _, data in events[1:] if kind in ("state", "end"))
    started = next(data for kind, _, data in events if kind == "run_started")
    assert "Q: Who?" in started["question"]


def test_a_model_that_is_not_downloaded_is_refused_at_once(client, film):
    models = ["local/qwen2.5-coder-1.5b"]
    ask = {"film": film, "question": "Why?", "method": "blind", "models": models}
    refused = client.post("/api/v1/runs", json=ask)
    assert refused.status_code == 502
    assert "longtake models pull local/qwen2.5-coder-1.5b" in refused.text


def test_a_stream_resumes_after_the_last_event(client, asked):
    run, events = asked
    resumed = read_stream(client, run, headers={"Last-Event-ID": "3"})
    rest = [event for event in events if event[1] and int(event[1]) > 3]
    assert [event for event in resumed if event[1]] == rest


def test_brief_events_leave_out_prompts_and_one_event_has_them(client, asked):
    run, _ = asked
    calls = [e for kind, _, e in read_stream(client, run, params={"brief": "1"}) if "reply" in e]
    assert "messages" not in calls[0]
    whole = client.get(f"/api/v1/runs/{run}/events/{calls[0]['id']}").json()
    assert whole["messages"]
    assert client.get(f"/api/v1/runs/{run}/events/9999").status_code == 404


def test_pictures_are_named_in_the_stream_and_are_in_the_downloaded_trace(client, asked, tmp_path):
    run, events = asked
    seen = next(event for kind, _, event in events if kind == "frames_seen")
    digest = seen["frames"][0]["digest"]
    picture = client.get(f"/api/v1/pictures/{digest}")
    assert picture.content.startswith(b"\xff\xd8")
    assert "immutable" in picture.headers["cache-control"]
    file = tmp_path / "trace.jsonl"
    file.write_bytes(client.get(f"/api/v1/runs/{run}/trace").content)
    assert trace.read(file).pictures[digest] == picture.content


@pytest.fixture
def pool(options):
    """A pool with one thread; ``gate`` holds its runs back."""
    options = replace(options, at_once=1, max_waiting=2)
    pool = RunPool(options, ServedFilms(options), Journal(options.data))
    pool.gate = threading.Event()

    def wait(job, stop, report):
        while not pool.gate.wait(0.01):
            stop.check()
        return ANSWERED

    pool._work.do = wait
    yield pool
    pool.gate.set()
    pool.close()


@pytest.fixture
def wanted(options):
    return Ask(film=ServedFilms(options).films()[0].id, question="Why?")


def other(wanted, number):
    return wanted.model_copy(update={"seed": number})


def test_runs_wait_in_a_queue_that_is_bounded(pool, wanted):
    first = pool.start(wanted)
    while first.position:
        pass
    second, third = pool.start(other(wanted, 2)), pool.start(other(wanted, 3))
    assert (second.position, third.position) == (1, 2)
    with pytest.raises(QueueFull):
        pool.start(other(wanted, 4))
    second.cancel()
    assert third.position == 1
    assert second.record.state == "cancelled"


def test_identical_asks_share_a_run_until_the_last_asker_leaves(pool, wanted):
    first = pool.start(wanted)
    assert pool.start(wanted) is first
    assert pool.start(other(wanted, 1)) is not first
    first.leave()
    assert not first.cancelled
    first.leave()
    with pytest.raises(Cancelled):
        first.result(timeout=60)
    assert pool.journal.read(first.id).state == "cancelled"


def test_a_result_that_is_not_there_in_time(pool, wanted):
    with pytest.raises(TimeoutError):
        pool.start(wanted).result(timeout=0.01)


def test_a_bug_in_a_run_ends_that_run_only(pool, wanted):
    pool._work.do = lambda *_: 1 / 0
    run = pool.start(wanted)
    with pytest.raises(Crash):
        run.result(timeout=60)
    assert "internal error" in run.record.error
    pool._work.do = lambda *_: ANSWERED
    assert pool.start(other(wanted, 5)).result(timeout=60)


def test_a_full_disk_ends_the_runs_under_way_and_the_next_one_works(pool, wanted, monkeypatch):
    first = pool.start(wanted)
    while pool.journal.read(first.id).state != "running":
        pass
    waiting = pool.start(other(wanted, 2))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(journal, "write_atomically", full)
        with pytest.raises(JournalUnwritable, match="No space left"):
            pool.start(other(wanted, 3))
        pool.gate.set()
        first.result(timeout=60)
        with pytest.raises(JournalUnwritable, match="No space left"):
            waiting.result(timeout=60)
        assert pool.journal.read(waiting.id).state == "failed"
    last = pool.start(other(wanted, 4))
    last.result(timeout=60)
    # what could not be stored then is stored now
    stored = Journal(pool.journal.trace(first.id).parents[2])
    assert [stored.read(run.id).state for run in (first, waiting, last)] == [
        "done",
        "failed",
        "done",
    ]


def test_the_server_spends_no_more_than_it_may(options, wanted):
    options = replace(options, max_spend=1.0, at_once=1)
    pool = RunPool(options, ServedFilms(options), Journal(options.data))
    pool.spent = 1.0
    with pytest.raises(BudgetSpent, match="spending limit"):
        pool.start(wanted).result(timeout=60)
    pool.close()


def test_a_restarted_server_shows_finished_runs_and_marks_broken_ones(options, connect, wanted):
    journal = Journal(options.data)
    finished = RunRecord(id=new_id(), ask=wanted, created=1.0, state="done")
    broken = RunRecord(id=new_id(), ask=wanted, created=2.0, state="running")
    journal.write(finished)
    journal.write(broken)
    journal.trace(broken.id).write_bytes(b'{"longtake_trace": 1}\n{"id":1,"par')
    client = connect(options)
    runs = [each["run"] for each in client.get("/api/v1/runs").json()["runs"]]
    assert {run["id"]: run["state"] for run in runs} == {finished.id: "done", broken.id: "broken"}
    assert [kind for kind, _, _ in read_stream(client, broken.id)] == ["state", "end"]


def test_a_comparison_runs_every_method_or_none(client, film):
    ask = {"film": film, "question": "Why?"}
    wrong = client.post("/api/v1/compare", json={"ask": ask, "methods": ["blind", "nonsense"]})
    assert wrong.status_code == 422
    assert client.get("/api/v1/runs").json()["runs"] == []
    right = client.post("/api/v1/compare", json={"ask": ask, "methods": ["blind", "uniform"]})
    group = right.json()["group"]
    for each in right.json()["runs"]:
        read_stream(client, each["run"]["id"])
    runs = client.get("/api/v1/runs", params={"group": group}).json()["runs"]
    assert {each["run"]["state"] for each in runs} == {"done"}


def test_a_comparison_that_the_queue_cannot_hold_queues_nothing(pool, wanted):
    with pytest.raises(QueueFull):
        pool.start_all([other(wanted, number) for number in range(3)])
    assert pool.live() == []
    assert list(pool.journal.newest()) == []
    pool.gate.set()
    for run in pool.start_all([other(wanted, number) for number in range(2)]):
        assert run.result(timeout=60).method == "blind"


def test_warming_up_starts_no_run(client, film, monkeypatch):
    written = []
    monkeypatch.setattr(RunPool, "warm_up", lambda _, ask: written.append(ask.question))
    assert (
        client.post("/api/v1/warm-up", json={"film": film, "question": "Why?"}).status_code == 204
    )
    assert written == ["Why?"]
    assert client.get("/api/v1/runs").json()["runs"] == []


def test_a_table_is_extracted_as_a_run(client, film):
    schema = {"type": "object", "properties": {"who": {"type": "string"}}}
    path = f"/api/v1/films/{film}/extract"
    started = client.post(path, json={"schema": schema, "method": "uniform"})
    assert started.status_code == 202, started.text
    run = started.json()["run"]["id"]
    assert read_stream(client, run)[-1][2]["state"] == "done"
    record = client.get(f"/api/v1/runs/{run}").json()["run"]
    table = json.loads(record["answer"]["text"])
    assert record["kind"] == "extract"
    assert set(table["data"]) == {"who"}
    assert (table["data"]["who"] is None) == (not record["answer"]["evidence"])
    wrong = client.post(path, json={"schema": {"type": "string"}})
    assert (wrong.status_code, "object with properties" in wrong.text) == (422, True)
    long = {"type": "object", "properties": {"a": {"type": "string", "title": "x" * 9000}}}
    assert client.post(path, json={"schema": long}).status_code == 422
