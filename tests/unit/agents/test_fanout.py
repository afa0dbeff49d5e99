import threading

import pytest
from support.listening import listening
from support.patience import PATIENCE

from longtake._util.cancellation import Cancelled
from longtake.agents.team import fanout
from longtake.llm.budget import REAL
from longtake.tracing.events import Noted, StepBegan, note, step


def test_results_come_in_the_order_of_the_items() -> None:
    barrier = threading.Barrier(4, timeout=PATIENCE)

    def act(number: int) -> int:
        barrier.wait()
        return number * number

    assert fanout(act, range(8), limit=4) == [number * number for number in range(8)]


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


def test_nothing_and_one() -> None:
    assert fanout(str, []) == []
    assert fanout(str, [1]) == ["1"]
