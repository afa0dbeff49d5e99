"""A run ends when its time is up or somebody cancels it, whatever its method is doing."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pytest
from support.footages import TestFootage
from support.patience import FOREVER, PATIENCE

from longtake._util.cancellation import Cancelled, Stop, check_stop
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.config import BudgetSettings
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Options, say
from longtake.runner.session import solve
from longtake.types import Answer, Question

QUESTION = Question("What?", ("one", "two"))


@dataclass(init=False)
class Slow:
    """Proposes an answer and then does something that takes long."""

    name = "slow"
    roles = ("llm",)

    def __init__(self, act):
        self.act = act
        self.began, self.released, self.ended = (threading.Event() for _ in range(3))

    def answer(self, footage, question, run):
        run.propose(Answer("A"))
        self.began.set()
        try:
            self.act(run, self.released)
        finally:
            self.ended.set()
        return Answer("B")


def native(run, released):
    """Something that checks nothing, as native code does."""
    released.wait(FOREVER)
    check_stop()


def loop(run, released):
    while True:
        check_stop()
        time.sleep(0.01)


def side_by_side(run, released):
    fanout(lambda _: loop(run, released), range(3))


def no_time(run, released):
    while True:
        run["llm"].complete([say("user", "hello")], Options())
        time.sleep(0.01)


def seconds_of(method, run):
    """How long the answer took, and the answer. What goes on after it is released."""
    began = time.monotonic()
    result = solve(method, TestFootage(3), QUESTION, run)
    seconds = time.monotonic() - began
    method.released.set()
    return seconds, result.answer


def cancel_once_begun(method, stop):
    def cancel():
        if method.began.wait(PATIENCE):
            stop.set()

    threading.Thread(target=cancel).start()


ACTS = [native, loop, side_by_side, no_time]


@pytest.mark.parametrize("act", ACTS)
def test_the_time_limit_ends_whatever_is_going_on(act):
    method = Slow(act)
    chat = ScriptedChat(lambda *_: "ok")
    run = Run({"llm": chat}, budget=BudgetSettings(seconds=0.5))
    seconds, answer = seconds_of(method, run)
    assert seconds < PATIENCE
    assert (answer.choice, answer.status) == ("A", "budget_spent")
    assert method.ended.wait(PATIENCE)  # what was left behind ends by itself


@pytest.mark.parametrize("act", ACTS)
def test_cancelling_from_another_thread_keeps_the_best_answer(act):
    method, stop = Slow(act), Stop()
    run = Run({"llm": ScriptedChat(lambda *_: "ok")}, stop=stop)
    cancel_once_begun(method, stop)
    seconds, answer = seconds_of(method, run)
    assert seconds < PATIENCE
    assert (answer.choice, answer.status) == ("A", "cancelled")
    assert method.ended.wait(PATIENCE)


def test_a_run_within_cancelled_work_is_cancelled_too():
    method, stop = Slow(native), Stop()
    cancel_once_begun(method, stop)
    with stop.in_force():
        _, answer = seconds_of(method, Run({"llm": ScriptedChat([])}))
    assert answer.status == "cancelled"


def test_an_answer_in_time_is_the_methods_own():
    run = Run({}, budget=BudgetSettings(seconds=PATIENCE), stop=Stop())
    _, answer = seconds_of(Slow(lambda *_: None), run)
    assert (answer.choice, answer.status) == ("B", "answered")


def test_a_failure_on_the_other_thread_is_raised_here():
    def fail(*_):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        seconds_of(Slow(fail), Run({}, stop=Stop()))


def test_what_waits_is_told_once_and_only_while_it_waits():
    stop, told = Stop(), []
    with stop.then(lambda: told.append("before")):
        pass
    with stop.then(lambda: told.append("during")):
        stop.set()
        stop.set()
    with stop.then(lambda: told.append("after")):
        pass
    assert told == ["during", "after"]
    with pytest.raises(Cancelled):
        stop.check()
