import threading
import time
from dataclasses import dataclass, replace

import pytest
from support.footages import TestFootage
from support.listening import listening
from support.patience import FOREVER, PATIENCE

from longtake._util.cancellation import Cancelled, Stop, check_stop
from longtake.agents.run import Agent, Run, settle
from longtake.agents.team import fanout
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.budget import REAL
from longtake.llm.chat import HERE, Card, Options, say
from longtake.runner.session import solve
from longtake.tracing.events import Noted, StepBegan, note, step
from longtake.types import Answer, Question

HELLO = [say("user", "Hello?")]


@pytest.mark.parametrize("best", [Answer("C", reason="so far"), None])
def test_roles_and_team_share_one_budget_and_the_best_answer_is_kept(best) -> None:
    llm = ScriptedChat(lambda *_: "ok", card=Card("a"))
    member = ScriptedChat(lambda *_: "ok", card=Card("b"))
    run = Run({"llm": llm}, team=[Agent("reader", member)], budget=BudgetSettings(calls=2))
    run["llm"].complete(HELLO, Options())
    if best:
        run.propose(best)
    run.team[0].chat.complete(HELLO, Options())
    with pytest.raises(BudgetSpent) as raised:
        run["llm"].complete(HELLO, Options())
    assert settle(raised.value) == replace(best or Answer(), status="budget_spent")
    assert run.usage.calls == 2
    assert run.names == {"llm": "a", "team.reader": "b"}


def test_a_cost_budget_with_an_unknown_price_is_refused_at_the_start() -> None:
    unknown = ScriptedChat([], card=Card("cloud"))
    free = ScriptedChat([], card=Card("here", price=HERE))
    with pytest.raises(ConfigError, match="the price of cloud is unknown"):
        Run({"llm": free, "vlm": unknown}, budget=BudgetSettings(cost=1.0))
    Run({"llm": free}, budget=BudgetSettings(cost=1.0))
    Run({"llm": unknown}, budget=BudgetSettings(tokens=1))


def test_an_unknown_role_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'captioner'"):
        Run({"captioner": ScriptedChat([])})["captoner"]


def test_chance_depends_on_the_seed_and_the_words_alone() -> None:
    one, two = Run({}, seed=1), Run({}, seed=2)
    assert one.random("film", "q").random() == Run({}, seed=1).random("film", "q").random()
    assert one.random("film", "q").random() != one.random("film", "r").random()
    assert one.random("film", "q").random() != two.random("film", "q").random()


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
@pytest.mark.parametrize("status", ["budget_spent", "cancelled"])
def test_the_time_limit_or_another_thread_ends_whatever_is_going_on(act, status):
    method, stop = Slow(act), Stop()
    chats = {"llm": ScriptedChat(lambda *_: "ok")}
    if status == "cancelled":
        run = Run(chats, stop=stop)
        cancel_once_begun(method, stop)
    else:
        run = Run(chats, budget=BudgetSettings(seconds=0.5))
    seconds, answer = seconds_of(method, run)
    assert seconds < PATIENCE
    assert (answer.choice, answer.status) == ("A", status)
    assert method.ended.wait(PATIENCE)  # what was left behind ends by itself


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


def test_results_come_in_the_order_of_the_items() -> None:
    barrier = threading.Barrier(4, timeout=PATIENCE)

    def act(number: int) -> int:
        barrier.wait()
        return number * number

    assert fanout(act, range(8), limit=4) == [number * number for number in range(8)]
    assert fanout(str, []) == []
    assert fanout(str, [1]) == ["1"]


def test_no_more_than_the_limit_at_once() -> None:
    lock, state = threading.Lock(), {"now": 0, "most": 0}

    def act(_: int) -> None:
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        REAL.sleep(0.002)
        with lock:
            state["now"] -= 1

    fanout(act, range(40), limit=5)
    assert 1 < state["most"] <= 5


def test_events_keep_their_step() -> None:
    with listening() as heard, step("look"):
        fanout(lambda number: note("seen", number=number), range(6), limit=3)
    (began,) = heard.of(StepBegan)
    assert {event.parent for event in heard.of(Noted)} == {began.id}


def test_the_first_failure_calls_off_the_rest() -> None:
    begun: list[int] = []

    def act(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError("three")
        REAL.sleep(60)

    with pytest.raises(ValueError, match="three"):
        fanout(act, range(100), limit=4)
    assert len(begun) <= 8


def test_a_failure_outside_ends_the_work_inside() -> None:
    inside = threading.Barrier(3, timeout=PATIENCE)
    ended: list[type] = []

    def inner(_: int) -> None:
        inside.wait()
        try:
            REAL.sleep(60)
        except Cancelled:
            ended.append(Cancelled)
            raise

    def act(number: int) -> None:
        if number == 0:
            fanout(inner, range(2), limit=2)
        else:
            inside.wait()
            raise ValueError("outside")

    with pytest.raises(ValueError, match="outside"):
        fanout(act, range(2), limit=2)
    assert ended == [Cancelled, Cancelled]
