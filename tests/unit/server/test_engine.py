"""Runs that compute in another process; here it is an object behind the same calls."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import queue
import socket
import sqlite3
import threading
import time
from dataclasses import replace

import pytest

from longtake._util.cancellation import Cancelled
from longtake.config import load
from longtake.errors import BudgetSpent, ConfigError, MediaError, ModelError
from longtake.runner.session import Session
from longtake.server import engine
from longtake.server.engine import EngineLost
from longtake.server.films import NoSuchFilm, ServedFilms
from longtake.server.jobs import Crash, JobWorker, Outcome
from longtake.server.journal import Ask, Journal
from longtake.server.runs import RunPool

PATIENCE = 60.0


class Process:
    """Stands for the engine's process; ends when its pipe is shut down."""

    def __init__(self, target, options):
        self.pipe, self.theirs = multiprocessing.Pipe()
        self.served = engine.EngineProcess(self.theirs, options)
        self.thread = threading.Thread(target=self.served.serve, daemon=True)
        self.thread.start()

    def kill(self):
        # closing it would not wake the thread that reads
        with socket.socket(fileno=os.dup(self.theirs.fileno())) as both:
            both.shutdown(socket.SHUT_RDWR)

    def join(self, seconds):
        self.thread.join(seconds)


@pytest.fixture
def processes(monkeypatch):
    """The processes that were started."""
    started = []

    def start(target, options):
        started.append(Process(target, options))
        return started[-1].pipe, started[-1]

    monkeypatch.setattr(engine, "spawn", start)
    return started


@pytest.fixture
def pool(options, processes):
    # a check would look at the film first, which is not what is tested
    settings = load(assignments=["answers.verify=false"])
    options = replace(options, at_once=2, own_process=True, settings=settings)
    pool = RunPool(options, ServedFilms(options), Journal(options.data))
    yield pool
    pool.close()


@pytest.fixture
def ask(options):
    return Ask(
        film=ServedFilms(options).films()[0].id, question="Why?", method="blind", index_first=False
    )


@pytest.fixture
def slow(monkeypatch):
    """Runs that last until they are cancelled; set once one has begun."""
    begun = threading.Event()

    def do(self, job, stop, report):
        report(("frames", 0.5))
        begun.set()
        try:
            while True:
                stop.wait(0.01)
        except Cancelled as error:
            return Outcome(error=error)

    monkeypatch.setattr(JobWorker, "do", do)
    return begun


def test_an_answer_comes_back_and_its_trace_is_on_disk(pool, ask):
    run = pool.start(ask)
    assert run.result(PATIENCE).answer.text
    assert run.record.state == "done"
    assert run.record.usage.calls > 0
    assert b'"answered"' in pool.journal.trace(run.id).read_bytes()


def test_a_model_is_loaded_before_a_question_is_asked(pool, ask, options, monkeypatch):
    loaded = queue.SimpleQueue()

    def load(session):
        loaded.put(session.assignment.models)
        raise ModelError("local/small", "unavailable", "told by the run that asks it")

    monkeypatch.setattr(Session, "load_reader", load)
    # when the server starts, and while a question is written
    pool.warm_up()
    assert loaded.get(timeout=PATIENCE) == options.models
    for models in (("llm=local/small",), ("llm=local/other",)):
        pool.warm_up(ask.model_copy(update={"models": models}))
        assert loaded.get(timeout=PATIENCE) == models


def test_cancelling_reaches_the_other_process(pool, ask, slow):
    run = pool.start(ask)
    assert slow.wait(PATIENCE)
    run.cancel()
    with pytest.raises(Cancelled):
        run.result(PATIENCE)
    assert run.record.state == "cancelled"


def test_a_process_that_dies_breaks_its_runs_and_the_next_run_starts_another(
    pool, ask, slow, processes
):
    run = pool.start(ask)
    assert slow.wait(PATIENCE)
    processes[0].kill()
    with pytest.raises(EngineLost):
        run.result(PATIENCE)
    assert pool.journal.read(run.id).state == "broken"
    slow.clear()
    second = pool.start(ask)
    assert slow.wait(PATIENCE)
    assert len(processes) == 2
    until = time.monotonic() + PATIENCE
    while not second.progress and time.monotonic() < until:
        time.sleep(0.01)  # what was said is still in the pipe
    assert second.progress == {"frames": 0.5}


def test_a_bug_is_named_and_its_traceback_logged(pool, ask, monkeypatch, caplog):
    class Odd(Exception):
        """Cannot be pickled: the server has no such class."""

    def fail(self, job, stop, report, meter):
        raise Odd("a secret path")

    monkeypatch.setattr(JobWorker, "_outcome", fail)
    run = pool.start(ask)
    with pytest.raises(Crash):
        run.result(PATIENCE)
    assert "Odd" in run.record.error
    assert "secret" not in run.record.error
    assert "a secret path" in caplog.text


def full_database():
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA max_page_count = 1")
        try:
            database.execute("CREATE TABLE t(a)")
        except sqlite3.Error as error:
            return error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), full_database()])
def test_a_full_disk_is_told_as_such(pool, ask, monkeypatch, error):
    def fail(self, job, stop, report, meter):
        raise error

    monkeypatch.setattr(JobWorker, "_outcome", fail)
    run = pool.start(ask)
    with pytest.raises(Crash):
        run.result(PATIENCE)
    assert run.record.error == "the server's disk is full"


def test_what_cannot_be_sent_fails_the_run_and_not_the_process(pool, ask, monkeypatch):
    monkeypatch.setattr(JobWorker, "do", lambda self, job, stop, report: Outcome(lambda: None))
    with pytest.raises(Crash):
        pool.start(ask).result(PATIENCE)


@pytest.mark.parametrize(
    "error",
    [
        MediaError("a.mp4", "truncated", "ends early"),
        ModelError("m", "refused", "no"),
        BudgetSpent("cost", "$1"),
        ConfigError("unknown", key="a", nearest="b"),
        NoSuchFilm("a"),
    ],
)
def test_errors_survive_a_pipe(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
