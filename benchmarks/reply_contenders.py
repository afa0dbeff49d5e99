"""Methods with settings under which ``benchmarks/replies.py`` asks all of their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longtake.agents.run import Run
from longtake.footage.protocol import Footage
from longtake.methods.a4vl.method import A4VL, View
from longtake.methods.symphony.method import Symphony
from longtake.methods.symphony.perception import PerceptionTools, listen
from longtake.types import Question

CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "blind": ("blind", {}),
    "blind, direct": ("blind", {"reason": False}),
    "captions": ("uniform", {"frames": 5}),
    "uniform": ("uniform", {"frames": 5}),
    "lookup": ("lookup", {"rephrasings": 3}),
    # a model that is always sure of itself would never say what it misses
    "videoagent": ("videoagent", {"self_evaluation": False, "max_rounds": 2}),
    "videoagent, graded": ("videoagent", {"segment_selection": False, "max_rounds": 2}),
    "videodetective": ("videodetective", {"base_steps": 3, "frames": 8}),
    "symphony": ("symphony", {"max_steps": 6}),
    "a4vl": ("a4vl", {"gate": True, "inference_frames": 8}),
    "lvagent": ("lvagent", {"native_whole": False, "frames_per_chunk": 4, "global_frames": 8}),
    "lvagent, one decides": (
        "lvagent",
        {"native_whole": False, "frames_per_chunk": 4, "discussion": "decide_by_agent"},
    ),
    "auto": ("auto", {"stages": ("lookup", "videoagent")}),
    "search": ("search", {"frames": 8}),
    "a4vl, letter first": ("a4vl", {"reason_first": False, "inference_frames": 8}),
    "symphony, agents": (
        "symphony",
        {"perception": dict.fromkeys(("summary_frames", "inspector_frames", "segment_frames"), 8)},
    ),
}
"""Methods with settings under which all of their steps run, none of them for long."""


def one_turn(method: A4VL, footage: Footage, question: Question, run: Run) -> None:
    """One agent of A4VL looks over the film, answers and gives its reason."""
    view = View(run.team[0], question.text, whole=True, chance=run.random(question.text))
    method.turn(footage, question, method.partition(footage, question), view)


def each_agent(method: Symphony, footage: Footage, question: Question, run: Run) -> None:
    """Symphony's tool for overviews, its perception and its subtitle agent, each once."""
    looking = PerceptionTools(method.perception, footage, question, question.text, run)
    looking.global_summary()
    method.perception.perceive(footage, question, question.text, run)
    listen(footage, question, question.text, run, most_tokens=method.subtitle_tokens)


DIRECT: dict[str, Callable[[Any, Footage, Question, Run], None]] = {
    "a4vl, letter first": one_turn,
    "symphony, agents": each_agent,
}
"""Contenders of which only some steps are asked: those that the others seldom or never reach."""
