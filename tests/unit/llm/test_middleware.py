import multiprocessing
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from processes import fill_reply_cache
from support.clocks import TurnedClock
from support.listening import listening
from support.patience import PATIENCE

from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ModelError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.budget import Ledger
from longtake.llm.chat import (
    Card,
    Image,
    Message,
    Options,
    Price,
    Reply,
    Unavailable,
    estimate_messages,
    request_hash,
    say,
)
from longtake.llm.middleware import (
    FILE,
    Budgeted,
    Cached,
    Gate,
    Limited,
    ReplyStore,
    Retrying,
    Traced,
)
from longtake.tracing.events import ChatCalled
from longtake.types import Answer, Frame, Usage

HELLO = [say("user", "Hello?")]
BUSY = Unavailable("m", "busy", status=429)


def picture(value: int = 0) -> Image:
    return Image(Frame(1.0, np.full((8, 8, 3), value, np.uint8)))


def retrying(script: list[object], clock: TurnedClock, tries: int = 5) -> Retrying:
    return Retrying(ScriptedChat(script), clock=clock, tries=tries)  # type: ignore[arg-type]


def test_retries_wait_longer_each_time_up_to_a_limit() -> None:
    clock = TurnedClock()
    with listening() as heard:
        chat = retrying([BUSY] * 7 + ["ok"], clock, tries=8)
        assert chat.complete(HELLO, Options()).text == "ok"
    for slept, grown in zip(clock.slept, (1, 2, 4, 8, 16, 20, 20), strict=True):
        assert grown / 2 <= slept <= grown
    assert len(heard.notes("retry")) == 7


def test_the_servers_wish_to_wait_is_honoured_within_reason() -> None:
    clock = TurnedClock()
    asked = Unavailable("m", "busy", status=429, retry_after=42.0)
    assert retrying([asked, "ok"], clock).complete(HELLO, Options()).text == "ok"
    assert clock.slept == [42.0]
    hour = Unavailable("m", "busy", status=429, retry_after=3600.0)
    with pytest.raises(Unavailable, match="wait 3600 s"):
        retrying([hour, "ok"], TurnedClock()).complete(HELLO, Options())


def test_what_will_not_pass_is_not_tried_again() -> None:
    chat = ScriptedChat([ModelError("m", "refused", "bad key"), "never"])
    with pytest.raises(ModelError, match="bad key"):
        Retrying(chat).complete(HELLO, Options())
    assert len(chat.asked) == 1


def test_no_pause_goes_beyond_the_deadline() -> None:
    clock = TurnedClock()
    with pytest.raises(Unavailable) as raised:
        retrying([BUSY] * 5, clock).complete(HELLO, Options(deadline=2.0))
    assert raised.value.out_of_time
    assert clock.time <= 2.0


def test_a_gate_halves_once_for_calls_that_fail_together_and_recovers() -> None:
    gate = Gate(8, raise_after=2)
    entered = [gate.enter(0) for _ in range(8)]
    assert gate.enter(0) is None
    for number in entered:
        gate.leave(number or 0, overloaded=True, worked=False)
    assert gate.limit == 4
    for _ in range(8):
        gate.leave(gate.enter(0) or 0, overloaded=False, worked=True)
    assert gate.limit == 8
    for _ in range(10):
        gate.leave(gate.enter(0) or 0, overloaded=True, worked=False)  # type: ignore[arg-type]
    assert gate.limit <= 4


def test_never_more_calls_at_once_than_the_gate_allows() -> None:
    lock, state = threading.Lock(), {"now": 0, "most": 0}
    barrier = threading.Barrier(3, timeout=PATIENCE)

    def act(*_: object) -> str:
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        barrier.wait()  # three must be inside together for any to go on
        with lock:
            state["now"] -= 1
        return "ok"

    chat = Limited(ScriptedChat(act), Gate(3))
    threads = [threading.Thread(target=chat.complete, args=(HELLO, Options())) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state["most"] == 3


def test_a_full_gate_ends_at_the_deadline() -> None:
    gate = Gate(1)
    gate.enter(0)
    with pytest.raises(Unavailable) as raised:
        Limited(ScriptedChat(["never"]), gate).complete(HELLO, Options(deadline=0.01))
    assert raised.value.out_of_time


def test_the_same_request_is_answered_from_disk_and_costs_nothing(tmp_path: Path) -> None:
    card = Card("m", price=Price(1, 1, 1, "test"))
    chat = ScriptedChat(["<think>hm</think>first", "second"], card=card)
    store = ReplyStore(tmp_path)
    fresh = Cached(chat, store).complete(HELLO, Options())
    assert not fresh.cached
    store.close()
    again = Cached(chat, ReplyStore(tmp_path)).complete(HELLO, Options())
    assert (again.text, again.thinking, again.cached, again.usage) == ("first", "hm", True, Usage())


def test_every_part_of_a_request_is_in_its_key() -> None:
    base = request_hash(Card("m"), HELLO, Options())
    others = [
        request_hash(Card("other"), HELLO, Options()),
        request_hash(Card("m", host="elsewhere"), HELLO, Options()),
        request_hash(Card("m", revision="2"), HELLO, Options()),
        request_hash(Card("m"), [say("system", "Hello?")], Options()),
        request_hash(Card("m"), [*HELLO, say("user", "x")], Options()),
        request_hash(Card("m"), [say("user", "Hello?", picture(1))], Options()),
        request_hash(Card("m"), [say("user", "Hello?", picture(200))], Options()),
        request_hash(Card("m"), HELLO, Options(temperature=1.0)),
        request_hash(Card("m"), HELLO, Options(max_tokens=5)),
        request_hash(Card("m"), HELLO, Options(seed=1)),
        request_hash(Card("m"), HELLO, Options(stop=("x",))),
        request_hash(Card("m"), HELLO, Options(schema={})),
    ]
    assert len({base, *others}) == 1 + len(others)
    assert base == request_hash(Card("m"), HELLO, Options(prompt="named", deadline=3.0))


def test_empty_replies_and_failures_are_not_kept(tmp_path: Path) -> None:
    chat = Cached(ScriptedChat(["", BUSY, "said"]), ReplyStore(tmp_path))
    assert chat.complete(HELLO, Options()).text == ""
    with pytest.raises(Unavailable):
        chat.complete(HELLO, Options())
    assert chat.complete(HELLO, Options()).text == "said"


def test_a_broken_cache_costs_a_call_and_says_so(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is not a database" * 100)
    chat = Cached(ScriptedChat(["said"]), ReplyStore(tmp_path))
    with listening() as heard:
        assert chat.complete(HELLO, Options()).text == "said"
    assert heard.notes("cache_failed")


@pytest.mark.processes
def test_two_processes_write_one_cache(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("spawn")
    workers = [fork.Process(target=fill_reply_cache, args=(tmp_path, start)) for start in (0, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    rows = sqlite3.connect(tmp_path / FILE).execute("SELECT request, reply FROM replies").fetchall()
    assert len(rows) == 60
    assert all(f'"{key}"' in reply for key, reply in rows)


def test_opening_waits_for_a_process_that_is_making_the_file(tmp_path: Path) -> None:
    store = ReplyStore(tmp_path)
    lock = FileLock(f"{store.path}.lock", thread_local=False)
    other = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)

    def done() -> None:
        other.execute("COMMIT")
        lock.release()

    lock.acquire()
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, done)
    release.start()
    store.put("1", "m", "p", {"text": "kept"})
    release.join()
    other.close()
    assert store.get("1") == {"text": "kept"}


def test_a_trace_holds_what_was_asked_and_answered() -> None:
    chat = Traced(ScriptedChat(["<think>hm</think>yes", BUSY]))
    shown = picture(9)
    with listening() as heard:
        chat.complete([say("user", "Hello?", shown)], Options(prompt="m/step"))
        with pytest.raises(Unavailable):
            chat.complete(HELLO, Options())
    called, failed = heard.of(ChatCalled)
    assert isinstance(called, ChatCalled)
    said = (called.prompt, called.reply, called.thinking, called.error)
    assert said == ("m/step", "yes", "hm", None)
    assert called.messages[0]["parts"][1] == {"image": shown.digest, "time": 1.0}
    assert called.usage.frames == 1
    assert heard.pictures == {shown.digest: shown.jpeg}
    assert "busy" in (getattr(failed, "error", None) or "")


def budgeted(
    limits: BudgetSettings, script: object, clock: TurnedClock | None = None, **card: object
) -> Budgeted:
    chat = ScriptedChat(script, card=Card("m", **card))  # type: ignore[arg-type]
    return Budgeted(chat, Ledger(limits, clock=clock or TurnedClock()))


def test_calls_and_frames_are_exact() -> None:
    chat = budgeted(BudgetSettings(calls=2), lambda *_: "ok")
    chat.complete(HELLO, Options())
    chat.complete(HELLO, Options())
    with pytest.raises(BudgetSpent, match=r"calls \(2 of 2\)"):
        chat.complete(HELLO, Options())
    chat = budgeted(BudgetSettings(frames=3), lambda *_: "ok")
    chat.complete([say("user", picture(), picture())], Options())
    with pytest.raises(BudgetSpent, match="2 of 3, and the next call shows 2"):
        chat.complete([say("user", picture(), picture())], Options())
    chat.complete([say("user", picture())], Options())


def test_failed_calls_count_as_calls() -> None:
    chat = budgeted(BudgetSettings(calls=1), [BUSY, "ok"])
    with pytest.raises(Unavailable):
        chat.complete(HELLO, Options())
    with pytest.raises(BudgetSpent):
        chat.complete(HELLO, Options())


def test_a_reply_is_cut_to_the_tokens_left_and_refused_when_too_few_are() -> None:
    used = Reply("ok", usage=Usage(calls=1, tokens_in=20, tokens_out=930, cost=None))
    chat = budgeted(BudgetSettings(tokens=1000), [used, "never"])
    chat.complete(HELLO, Options(max_tokens=2000))
    assert chat.inner.asked[0][1].max_tokens < 1000  # type: ignore[attr-defined]
    chat.ledger.best = Answer("B")
    with pytest.raises(BudgetSpent, match=r"tokens \(950 of 1000\)") as raised:
        chat.complete([say("user", "x" * 120)], Options(max_tokens=2000))
    assert raised.value.best == Answer("B")


def test_cost_is_bounded_by_the_dearest_the_call_can_be() -> None:
    price = Price(prompt=0.0, reply=1.0, cached=0.0, source="test")
    chat = budgeted(BudgetSettings(cost=0.0005), lambda *_: "ok", price=price)
    chat.complete(HELLO, Options(max_tokens=2000))
    assert chat.inner.asked[0][1].max_tokens == 500  # type: ignore[attr-defined]
    spent = Reply("ok", usage=Usage(calls=1, tokens_out=495, cost=0.000495))
    chat = budgeted(BudgetSettings(cost=0.0005), [spent, "never"], price=price)
    chat.complete(HELLO, Options())
    with pytest.raises(BudgetSpent, match="cost"):
        chat.complete(HELLO, Options())


def test_seconds_bound_the_call_and_end_the_question() -> None:
    clock = TurnedClock()

    def slow(messages: object, options: Options) -> Reply:
        assert options.deadline == pytest.approx(10.0 - clock.time)
        clock.time += options.deadline or 0
        raise Unavailable("m", "no reply", out_of_time=True)

    chat = budgeted(BudgetSettings(seconds=10), slow, clock)
    clock.time = 4.0
    with pytest.raises(BudgetSpent, match=r"seconds \(10.0 of 10\)"):
        chat.complete(HELLO, Options())
    with pytest.raises(BudgetSpent, match="seconds"):
        chat.complete(HELLO, Options())


class Dense(ScriptedChat):
    """A model with more tokens in a text than estimated: one for two characters."""

    def __init__(self, *, counts: bool) -> None:
        super().__init__(self.reply, card=Card("dense"))
        self._counts = counts

    def count(self, text: str) -> int | None:
        return self.tokens(text) if self._counts else None

    def tokens(self, text: str) -> int:
        return -(-len(text) // 2)

    def reply(self, messages: Sequence[Message], options: Options) -> Reply:
        tokens_in = sum(self.tokens(message.text) for message in messages)
        return Reply("x", usage=Usage(calls=1, tokens_in=tokens_in, tokens_out=options.max_tokens))


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("limit", [400, 520, 600, 2000])
def test_a_first_prompt_that_is_longer_than_estimated_overshoots_no_limit(
    counts: bool, limit: int
) -> None:
    ledger = Ledger(BudgetSettings(tokens=limit))
    with suppress(BudgetSpent):
        Budgeted(Dense(counts=counts), ledger).complete(
            [say("user", "qzxv" * 250)], Options(max_tokens=300)
        )
    spent = ledger.spent.tokens_in + ledger.spent.tokens_out
    assert spent <= limit
    # 500 tokens of prompt
    assert bool(spent) == (limit > 520)


def test_calls_side_by_side_do_not_spend_the_same_tokens_twice() -> None:
    together = threading.Semaphore(0)
    most = {"max": 0}

    def act(messages: object, options: Options) -> Reply:
        most["max"] += options.max_tokens
        together.acquire(timeout=0.2)
        return Reply("ok", usage=Usage(calls=1, tokens_in=10, tokens_out=10))

    chat = budgeted(BudgetSettings(tokens=1000), act)
    threads = [
        threading.Thread(target=chat.complete, args=(HELLO, Options(max_tokens=900)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert chat.ledger.spent == Usage(calls=4, tokens_in=40, tokens_out=40)
    asked = chat.inner.asked  # type: ignore[attr-defined]
    assert [options.max_tokens for _, options in asked] == [900] * 4


def test_a_limit_holds_although_prompts_are_longer_than_estimated() -> None:
    def longer(messages: object, options: Options) -> Reply:
        return Reply("ok", usage=Usage(1, estimate_messages(HELLO) + 50, 0, options.max_tokens))

    chat = budgeted(BudgetSettings(tokens=1000), longer)
    chat.complete(HELLO, Options(max_tokens=300))
    chat.complete(HELLO, Options(max_tokens=300))
    # what is left
    chat.complete(HELLO, Options(max_tokens=300))
    with pytest.raises(BudgetSpent, match="tokens"):
        chat.complete(HELLO, Options(max_tokens=300))
    assert 600 < chat.ledger.spent.tokens_in + chat.ledger.spent.tokens_out <= 1000


def test_another_try_must_fit_into_the_limit_as_a_whole() -> None:
    useless = Unavailable("m", "no message", used=Usage(1, 20, 0, 500))
    ledger = Ledger(BudgetSettings(tokens=1000), clock=TurnedClock())
    chat = Budgeted(Retrying(ScriptedChat([useless] * 3), clock=TurnedClock()), ledger)  # type: ignore[arg-type]
    with pytest.raises(BudgetSpent, match=r"tokens \(520 of 1000; the last failed: no message"):
        chat.complete(HELLO, Options(max_tokens=500))
    assert ledger.spent.calls == 1
