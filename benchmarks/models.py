"""Overhead of the model layers, with a server that answers immediately or after 200 ms.

::

    python benchmarks/models.py

Overhead: a typed ask through every layer, minus a bare HTTP POST of the same body (httpx,
keep-alive). Fanout: 64 calls of 200 ms with 32 at a time, against the ideal of 400 ms. Medians of
five runs. Prefix reuse, for each built-in model that was pulled: the time of a one-token reply to
a second prompt with the same notes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from pydantic import BaseModel

from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.config import BudgetSettings, Settings
from longtake.config.entries import OpenAIEntry
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Options, say
from longtake.llm.middleware import ReplyStore
from longtake.llm.structured.ask import ask
from longtake.tracing.events import Stream
from longtake.tracing.jsonl import JsonlSink

TESTS = Path(__file__).parents[1] / "tests"
CALLS = 100
ROUNDS = 5


class Number(BaseModel):
    number: int


@contextmanager
def server(delay: float) -> Iterator[str]:
    command = [sys.executable, "-m", "support.server", "--delay", str(delay)]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


@contextmanager
def opened(url: str, concurrency: int) -> Iterator[Run]:
    """A run with every layer: trace file, budget, reply cache, retries, limit."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(models={"m": OpenAIEntry(base_url=url, concurrency=concurrency)})
        store = ReplyStore(Path(folder))
        run = Run(
            {"llm": ModelCatalog(settings).open("m", replies=store)},
            budget=BudgetSettings(tokens=10**9),
        )
        stream = Stream(JsonlSink(Path(folder) / "trace.jsonl"))
        with stream.active():
            yield run
        stream.close()
        store.close()


def timed_asks(run: Run, round_: int) -> float:
    began = time.perf_counter()
    for number in range(CALLS):
        reply = ask(
            run["llm"],
            "shared/same_meaning",
            Number,
            question=f"{round_}.{number}",
            answers="1: a\n2: b",
        )
        assert reply.number == 7
    return (time.perf_counter() - began) / CALLS


def timed_posts(url: str) -> float:
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 1200}]}
    with httpx.Client(trust_env=False) as client:
        client.post(f"{url}/chat/completions", json=body)
        began = time.perf_counter()
        for _ in range(CALLS):
            client.post(f"{url}/chat/completions", json=body).json()
        return (time.perf_counter() - began) / CALLS


def timed_fanout(run: Run, round_: int) -> float:
    began = time.perf_counter()
    fanout(
        lambda n: ask(
            run["llm"], "shared/same_meaning", Number, question=f"{round_}.{n}", answers="1: a"
        ),
        range(64),
        limit=32,
    )
    return time.perf_counter() - began


def prefix_reuse(name: str) -> None:
    """Two prompts that share their notes: the second should only process what is new."""
    chat = ModelCatalog(Settings()).open(name)
    chat.complete([say("user", "Hello.")], Options(max_tokens=1))
    for round_ in range(3):
        notes = "\n".join(
            f"[00:{n:02d}:00] In part {round_} the man moves box number {n}." for n in range(40)
        )
        usages = []
        for question in ("Who moves?", "What is moved first?"):
            messages = [say("user", f"{notes}\n\n{question}")]
            usages.append(chat.complete(messages, Options(max_tokens=1)).usage)
        first, second = usages
        ratio = second.seconds / first.seconds
        print(
            f"prefix reuse, {name}: first {first.seconds:.2f} s for {first.tokens_in} tokens "
            f"({first.tokens_cached} cached), second {second.seconds:.2f} s for {second.tokens_in} "
            f"({second.tokens_cached} cached), ratio {ratio:.2f} (goal: under 0.33)"
        )


def main() -> None:
    with server(0.0) as url, opened(url, 8) as run:
        timed_asks(run, -1)
        pairs = [(timed_posts(url), timed_asks(run, round_)) for round_ in range(ROUNDS)]
    bare, full = (statistics.median(column) for column in zip(*pairs, strict=True))
    over = statistics.median(full - bare for bare, full in pairs)
    print(f"one call: bare POST {bare * 1e3:.2f} ms, typed ask {full * 1e3:.2f} ms")
    print(f"overhead: {over * 1e3:.2f} ms per call in sequence (goal: under 5)")
    with server(0.2) as url, opened(url, 32) as run:
        timed_fanout(run, -1)
        took = statistics.median(timed_fanout(run, round_) for round_ in range(ROUNDS))
    print(f"64 calls of 200 ms, 32 at a time: {took * 1e3:.0f} ms")
    print(f"ratio to the ideal 400 ms: {took / 0.4:.2f} (goal: within 1.6)")
    for name in ("local/smollm2-135m", "local/qwen2.5-1.5b"):
        if ModelCatalog(Settings()).file(name).is_file():
            prefix_reuse(name)


if __name__ == "__main__":
    main()
