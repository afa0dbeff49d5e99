"""Skills of agents that plan, use tools and reflect."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel
from unit.lab.asking import fields, model, reply, shown, spoken_in
from unit.lab.skilled import SCRIPT, SHARP, noted, question

from longtake._util.timecode import clock
from longtake.agents.tools import tool, use_tools
from longtake.llm.structured.ask import ask
from longtake.llm.structured.schema import Letter, schema_for


class Plan(BaseModel):
    reason: str
    agent: Literal["grounding", "perception", "subtitle", "finish"]
    instruct: str
    choice: Letter = None


def plan(asked, history):
    body = f'<material name="history">\n{history or "(nothing yet)"}\n</material>'
    said = reply(SHARP, shown(asked, notes=body), schema_for(Plan, asked.question))
    return said["agent"], said


def test_plan_goes_from_grounding_to_perception_to_finish():
    asked = question("multihop")
    assert plan(asked, "")[0] == "grounding"
    assert plan(asked, "grounding: 00:10:00 to 00:10:10, 00:20:00 to 00:20:10")[0] == "perception"
    agent, said = plan(asked, f"grounding: 00:10:00 to 00:10:10\nperception: {noted(asked)}")
    assert (agent, said["choice"]) == ("finish", asked.answer)
    assert plan(asked, "grounding: none\nperception: nothing")[0] == "grounding"
    assert plan(asked, "grounding: none\nperception: nothing\n" * 3)[0] == "finish"


def test_plan_sends_spoken_questions_to_the_subtitles():
    asked = question("spoken")
    assert plan(asked, "")[0] == "subtitle"
    heard = spoken_in(SCRIPT, asked.evidence)
    agent, said = plan(asked, f"subtitle: {heard}")
    assert (agent, said["choice"]) == ("finish", asked.answer)


def test_instructions_name_the_stretches_that_grounding_returned():
    asked = question("needle")
    _, said = plan(asked, "grounding: 00:10:00 to 00:10:10")
    assert "00:10:00 to 00:10:10" in said["instruct"]


def test_grounding_tool():
    form = fields(tool={"type": "string", "enum": ["retrieve", "vlm_score"]})
    assert reply(SHARP, shown(question("needle")), form)["tool"] == "retrieve"
    assert reply(SHARP, shown(question("order")), form)["tool"] == "vlm_score"


def test_reflect():
    form = fields("comment", credible={"type": "boolean"})
    asked = question("needle")
    assert reply(
        SHARP, shown(asked, notes=f"{noted(asked)}\nProposed answer: {asked.answer}"), form
    )["credible"]
    wrong = next(letter for letter in "ABCD" if letter != asked.answer)
    assert not reply(SHARP, shown(asked, notes=f"{noted(asked)}\nProposed answer: {wrong}"), form)[
        "credible"
    ]
    refused = reply(SHARP, shown(asked, notes=f"Proposed answer: {asked.answer}"), form)
    assert refused["credible"] is False
    assert "look for" in refused["comment"]


def test_reflect_on_words():
    form = fields("comment", credible={"type": "boolean"})
    asked = question("open", "What does the", options=False)
    good = f"{noted(asked)}\nProposed answer: {asked.answer_text}"
    assert reply(SHARP, shown(asked, notes=good), form)["credible"]
    assert not reply(SHARP, shown(asked, notes=f"{noted(asked)}\nProposed answer: the moon"), form)[
        "credible"
    ]


class Seen(BaseModel):
    reason: str
    choice: Letter = None


@pytest.mark.parametrize("native", [True, False])
def test_tools_are_used_until_the_answer_is_known(native, tmp_path, monkeypatch):
    asked = question("needle")
    used = []

    def frame_inspector(start: str, end: str, cue: str) -> str:
        """Look closely at 10 to 60 seconds."""
        used.append((start, end, cue))
        return noted(asked)

    def global_summary() -> str:
        """Look over the whole film."""
        used.append("summary")
        where = asked.evidence[0]
        return f"Something happens from {clock(where.start)} to {clock(where.end)}."

    chat = model(acuity=1.0, tools=native)
    said = use_tools(
        chat,
        "videoagent/predict",
        [tool(global_summary), tool(frame_inspector)],
        Seen,
        question=asked.question,
        seen="(nothing)",
        length="00:30:00",
    )
    assert used[0] == "summary"
    assert used[1][:2] == (clock(asked.evidence[0].start), clock(asked.evidence[0].end))
    assert said.choice == asked.answer


def test_a_spoilt_reply_is_repaired_by_asking_again():
    asked, right = question("needle"), 0
    for seed in range(12):
        chat = model(acuity=1.0, json_faults=0.6, seed=seed)
        said = ask(
            chat,
            "videoagent/predict",
            Seen,
            default=None,
            question=asked.question,
            seen=noted(asked),
            length="00:30:00",
        )
        right += said is not None and said.choice == asked.answer
    assert 4 <= right <= 12
