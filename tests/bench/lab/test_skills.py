"""Skills, chosen by the names of a reply's fields."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bench.lab.asking import fields, model, reply, shown, spoken_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtake._util.timecode import clock
from longtake.agents.answer import ReasonedChoice
from longtake.agents.run import Agent
from longtake.agents.team import Opinion, group_answers, judge_all
from longtake.agents.tools import tool, use_tools
from longtake.llm.chat import Image, Options, say
from longtake.llm.structured.ask import ask
from longtake.llm.structured.schema import schema_for
from longtake.methods.symphony.method import PlanReply
from longtake.methods.videoagent.method import WishesReply
from longtake.methods.videodetective.plan import OpenDecomposition, TimelineReply
from longtake.types import Question, Segment
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage
from longtake_bench.lab.skills import LISTS, VALUES


@cache
def world():
    # not when this file is imported, which every process of a test run does
    return make_world(3, 30, 80)


@cache
def footage():
    return LabFootage(world().script)


SHARP = model(acuity=1.0)
LIST = {"type": "array", "items": {"type": "string"}}


def question(kind, start="", options=True):
    return next(
        q
        for q in world().questions
        if q.kind == kind and q.text.startswith(start) and bool(q.options) == options
    )


def frames(asked):
    return footage().at([segment.middle for segment in asked.evidence])


def noted(asked):
    """What a perfect captioner would note about the evidence."""
    lines = []
    for frame in frames(asked):
        said = SHARP.complete([say("user", "Describe.", Image(frame))], Options()).text
        lines.append(f"[{clock(frame.time)}] {said}")
    return "\n".join(lines)


def test_describe_with_and_without_a_form():
    asked = question("needle")
    frame = frames(asked)[0]
    plain = SHARP.complete([say("user", "What is here?", Image(frame))], Options()).text
    for name in ("caption", "description"):
        assert reply(SHARP, [say("user", "x", Image(frame))], fields(name))[name] == plain
    assert "At the" in plain


def test_several_pictures_are_described_with_their_times():
    asked = question("order")
    pictures = frames(asked)
    said = reply(SHARP, [say("user", *map(Image, pictures))], fields("caption"))["caption"]
    assert all(f"[{clock(picture.time)}]" in said for picture in pictures)


def test_why():
    asked = question("needle")
    said = reply(SHARP, shown(asked, frames(asked)), fields("reason"))["reason"]
    assert said.startswith(f"[{clock(int(asked.evidence[0].middle))}] At the")
    assert "guess" in reply(SHARP, shown(asked), fields("reason"))["reason"]


def test_grade():
    asked, grade = (
        question("order"),
        fields(confidence={"type": "integer", "minimum": 1, "maximum": 3}),
    )
    levels = [reply(SHARP, shown(asked, frames(asked)[:n]), grade)["confidence"] for n in (0, 1, 2)]
    assert levels == [1, 2, 3]


def segments(count=6):
    step = world().script.duration / count
    return "\n".join(f"{n + 1}. {clock(n * step)} to {clock((n + 1) * step)}" for n in range(count))


def wishes(asked, notes=""):
    body = f"The film is {clock(world().script.duration)} long.\n{notes}\nSegments:\n{segments()}"
    return reply(SHARP, shown(asked, notes=body), schema_for(WishesReply))["missing"]


def test_ask_for_more_names_segments_that_exist_and_what_to_look_for():
    asked = question("needle", "What does the person")
    wanted = wishes(asked)
    assert 1 <= len(wanted) <= 3
    assert {wish["segment"] for wish in wanted} <= set(range(1, 7))
    person = asked.text.split(" do with")[0].split("does ")[1][:20]
    assert all(person in wish["description"] for wish in wanted)


def test_ask_for_more_keeps_to_the_part_that_is_asked_about():
    asked = next(q for q in world().questions if "second half" in q.text or "at the end" in q.text)
    assert all(wish["segment"] >= 4 for wish in wishes(asked)[:2])


def test_ask_for_more_without_segments_asks_for_nothing():
    assert reply(SHARP, shown(question("needle")), schema_for(WishesReply)) == {"missing": []}


def test_gate():
    gate = fields(whole_video={"type": "boolean"})
    assert reply(SHARP, shown(question("count")), gate) == {"whole_video": True}
    assert reply(SHARP, shown(question("topic")), gate) == {"whole_video": True}
    assert reply(SHARP, shown(question("needle")), gate) == {"whole_video": False}


@pytest.mark.parametrize("name", ["key_information", "clue"])
def test_key_information_is_short_and_about_the_question(name):
    for asked in world().questions:
        said = reply(SHARP, shown(asked), fields(name))[name]
        assert 0 < len(said.split()) <= 50
    sign = question("onscreen")
    colour, place = sign.text.split()[3], sign.text.split()[-2]
    said = reply(SHARP, shown(sign), fields(name))[name]
    assert colour in said
    assert place in said


def test_key_information_turns_to_what_is_still_missing():
    asked = question("multihop")
    before = reply(SHARP, shown(asked), fields("clue"))["clue"]
    after = [reply(SHARP, shown(asked, [frame]), fields("clue"))["clue"] for frame in frames(asked)]
    assert any(clue != before for clue in after)


def test_decompose():
    asked = question("needle", "What does the person")
    said = OpenDecomposition.model_validate(
        reply(SHARP, shown(asked), schema_for(OpenDecomposition))
    )
    assert len(said.facets) == 4
    assert said.query_keywords
    assert said.vlm_query == asked.text
    assert len({facet.event_query for facet in said.facets}) == 4
    assert all(
        option in facet.entities for option, facet in zip(asked.options, said.facets, strict=True)
    )
    partial = reply(SHARP, shown(asked), fields(query_keywords=LIST))
    assert partial == {"query_keywords": said.query_keywords}


def test_timeline():
    pictures = footage().at(np.linspace(0, footage().duration - 1, 32).tolist())
    said = TimelineReply.model_validate(
        reply(SHARP, [say("user", *map(Image, pictures))], schema_for(TimelineReply))
    )
    assert said.events[0].start == "00:00:00"
    assert all(a.end <= b.start for a, b in zip(said.events, said.events[1:], strict=False))
    assert any("At the" in event.description for event in said.events)


def test_observe():
    asked = question("needle")
    form = fields("caption", "missing_keyword", needs_more_info={"type": "boolean"})
    settled = reply(SHARP, shown(asked, frames(asked)), form)
    assert settled["needs_more_info"] is False
    assert settled["missing_keyword"] == ""
    blank = reply(SHARP, shown(asked, footage().at([asked.evidence[0].end + 200.0])), form)
    assert blank["needs_more_info"] is True
    assert blank["missing_keyword"]


def test_relevance_is_high_where_the_evidence_is():
    form = fields("caption", "reason", score={"type": "integer", "minimum": 1, "maximum": 4})
    asked = question("needle")
    assert reply(SHARP, shown(asked, frames(asked)), form)["score"] == 4
    scores = [
        reply(SHARP, shown(asked, [f]), form)["score"]
        for f in footage().at(np.linspace(0, footage().duration - 1, 40).tolist())
    ]
    assert min(scores) == 1
    assert sum(score == 4 for score in scores) <= 2
    instruction = (
        f"Score these pictures: {reply(SHARP, shown(asked), fields('instruction'))['instruction']}"
    )
    assert reply(SHARP, [say("user", instruction, Image(frames(asked)[0]))], form)["score"] == 4


def test_peers_are_scored_by_what_supports_their_answer():
    asked = question("needle")
    good = reply(SHARP, shown(asked, frames(asked)), fields("reason"))["reason"]
    wrong = next(letter for letter in "ABCD" if letter != asked.answer)
    opinions = [
        Opinion("seer", asked.answer, "", good),
        Opinion("guesser", wrong, "", "It feels right."),
        Opinion("liar", wrong, "", good),
    ]
    agents = [Agent(opinion.agent, SHARP) for opinion in opinions]
    seer, guesser, liar = (each.score for each in judge_all(agents, opinions, asked.question))
    assert seer > liar > guesser


def test_same_meaning():
    answers = ["the green cup", "A green cup", "the red cup", "Green cup, the", "the map"]
    assert group_answers(SHARP, Question("What does she lift?"), answers) == [[0, 1, 3], [2], [4]]


def test_open_ended_answers_come_in_either_field():
    asked = question("open", "What does the", options=False)
    for name in ("answer", "text"):
        assert reply(SHARP, shown(asked, frames(asked)), fields(name))[name] == asked.answer_text


def test_every_field_is_in_the_documentation():
    page = (Path(__file__).parents[3] / "docs" / "lab.md").read_text()
    assert [
        name for name in {*VALUES, *LISTS, "agent", "tool", "agent_1"} if f"`{name}`" not in page
    ] == []


@pytest.mark.parametrize("name", ["summary", "explanation"])
def test_summarise(name):
    asked = question("needle")
    said = reply(SHARP, shown(asked, notes=noted(asked)), fields(name))[name]
    assert said.split(".")[0] in noted(asked)


def test_read_subtitles():
    asked = question("spoken")
    item = fields("text", start={"type": "number"}, end={"type": "number"})
    form = fields("sentiment", "topic", lines={"type": "array", "items": item}, entities=LIST)
    everything = spoken_in(world().script, [Segment(0.0, world().script.duration)])
    said = reply(SHARP, shown(asked, notes=everything), form)
    assert [line["start"] for line in said["lines"]] == [asked.evidence[0].start]
    assert said["sentiment"] == "neutral"
    assert said["entities"]


NAMES = [
    "caption", "missing", "agent", "foo", "events", "choice", "lines", "groups", "start", "tool",
    "facets", "segments", "agent_2",
]  # fmt: skip
NODE = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer", "minimum": 2, "maximum": 5},
            {"type": "number"},
            {"type": "boolean"},
            {"enum": ["x", "y"]},
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
            {"type": ["string", "null"]},
            {"const": 7},
            {"type": "string", "maxLength": 3},
            {},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(
            lambda nodes: {"type": "object", "properties": nodes},
            st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4),
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(
    nodes=st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=8), NODE, max_size=4), node=NODE
)
def test_no_form_is_too_odd(nodes, node):
    schema = {"type": "object", "properties": {**nodes, "events": node, "answer": node}}
    said = SHARP.complete(shown(question("needle")), Options(schema=schema)).text
    assert json.loads(said).keys() == schema["properties"].keys()


def test_passages_that_hold_the_answer():
    asked = question("spoken")
    line = spoken_in(world().script, asked.evidence)
    listed = f"1. [00:00:01] speech: What a day it has been so far.\n2. {line}"
    form = fields(passages={"type": "array", "items": {"type": "integer"}})
    assert reply(SHARP, shown(asked, notes=listed), form) == {"passages": [2]}
    assert reply(SHARP, shown(asked, notes="1. [00:00:01] Nothing."), form) == {"passages": []}


def plan(asked, history):
    body = f'<material name="history">\n{history or "(nothing yet)"}\n</material>'
    said = reply(SHARP, shown(asked, notes=body), schema_for(PlanReply, asked.question))
    return said["agent"], said


def test_plan_goes_from_grounding_to_perception_to_finish():
    asked = question("multihop")
    assert plan(asked, "")[0] == "grounding"
    assert (
        plan(asked, "grounding: 00:10:00 to 00:10:10, 00:20:00 to 00:20:10")[0]
        == "visual_perception"
    )
    agent, said = plan(asked, f"grounding: 00:10:00 to 00:10:10\nvisual_perception: {noted(asked)}")
    assert (agent, said["answer"]) == ("finish", asked.answer_text)
    assert plan(asked, "grounding: none\nvisual_perception: nothing")[0] == "grounding"
    assert plan(asked, "grounding: none\nvisual_perception: nothing\n" * 3)[0] == "finish"


def test_plan_sends_spoken_questions_to_the_subtitles():
    asked = question("spoken")
    assert plan(asked, "")[0] == "subtitles"
    heard = spoken_in(world().script, asked.evidence)
    agent, said = plan(asked, f"subtitles: {heard}")
    assert (agent, said["answer"]) == ("finish", asked.answer_text)


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
        ReasonedChoice,
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
            ReasonedChoice,
            default=None,
            question=asked.question,
            seen=noted(asked),
            length="00:30:00",
        )
        right += said is not None and said.choice == asked.answer
    assert 4 <= right <= 12
