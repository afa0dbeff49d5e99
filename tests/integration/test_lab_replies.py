"""Every method on the lab: no field of its replies, or of its tools, falls back to a neutral value.

``tests/bench/lab/test_neutral.py`` goes over the reply types that are written down in methods. Some
are made only when a method runs (scores for a team, the arguments of tools), so methods run here.
"""

import json

import pytest

from longtake import registry
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench.benchmarks.lab import lab
from longtake_bench.runner import Solver, answer_one

KINDS = ("needle", "spoken", "open")
"""A question with options, one that is answered by subtitles, and one to be answered in words."""

ALLOWED: set[tuple[str, str]] = set()
"""Pairs of prompt and field for which a neutral value will do; each needs a reason here. Today
there are none."""

RUNS = {
    "pictures": ("lab/acuity=0.8", False),
    # captions instead of pictures use other prompts; without native tool calls, tools are described
    "captions": ("lab/acuity=0.8,tools=0", True),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("method", registry.methods.names())
def test_no_reply_of_a_method_falls_back_to_a_neutral_value(method, run, tmp_path):
    model, captions = RUNS[run]
    benchmark = lab([39], 4, 8, captions=captions)  # eight questions, among them all these kinds
    solver = Solver(method, Session(assignment=ModelAssignment((model,))), traces=tmp_path)
    for item in benchmark.items:
        if item.tags["type"] in KINDS:
            row = answer_one(solver, benchmark.source, item.asked)
            assert row.status != "error", row
    assert set(KINDS) <= {item.tags["type"] for item in benchmark.items}
    neutral, prompts = set(), set()
    for event in events_in(tmp_path):
        if event.get("kind") == "chat_called":
            prompts.add(event["prompt"])
        elif event.get("label") == "neutral_value":
            neutral.add((event["data"]["prompt"], event["data"]["field"]))
    assert prompts
    assert neutral <= ALLOWED


def events_in(folder):
    for trace in folder.glob("*.jsonl"):
        yield from map(json.loads, trace.read_text().splitlines())
