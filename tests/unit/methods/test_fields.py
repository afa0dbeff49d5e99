"""What a method's fields may be set to."""

import dataclasses

import pytest
from support.footages import TestFootage

from longtake.agents.run import Run
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.base import configure
from longtake.methods.baselines.method import Blind, Uniform
from longtake.registry import methods
from longtake.runner.session import solve
from longtake.types import Question


@pytest.mark.parametrize(
    "setting",
    [
        "videoagent.max_rounds", "videoagent.initial_frames", "videoagent.max_requests",
        "symphony.max_steps", "symphony.grounding.scored_seconds",
        "symphony.grounding.scored_frames", "symphony.perception.inspector_frames",
        "a4vl.events.max_blocks", "a4vl.block_frames", "a4vl.inference_frames", "lvagent.chunks",
        "lvagent.preview_frames", "videodetective.frames", "videodetective.looking.window",
        "videodetective.graph.top", "uniform.frames",
    ],
)  # fmt: skip
def test_a_field_that_leaves_nothing_to_do_is_refused_by_name(setting):
    name, *path, last = setting.split(".")
    values = {last: 0}
    for part in reversed(path):
        values = {part: values}
    with pytest.raises(ConfigError, match=f"{last} must be .* or more"):
        configure(methods.get(name), values)


@pytest.mark.parametrize(
    "name", ["videoagent", "symphony", "a4vl", "lvagent", "videodetective", "uniform", "blind"]
)
def test_every_preset_is_allowed(name):
    kind = methods.get(name)
    for preset in kind.presets:
        assert dataclasses.is_dataclass(configure(kind, {"preset": preset}))


@pytest.mark.parametrize(("kind", "role"), [(Uniform, "vlm"), (Blind, "llm")])
@pytest.mark.parametrize(
    ("options", "reply", "answer"),
    [
        (("a cat", "a dog"), '{"choice": "B"}', ("B", "a dog")),
        ((), '{"answer": "a dog"}', (None, "a dog")),
    ],
)
def test_baselines_give_a_reason_first_or_the_answer_alone(kind, role, options, reply, answer):
    asked = []

    def say(messages, _):
        asked.append("\n".join(message.text for message in messages))
        return (
            reply
            if "reason" not in asked[-1].replace("without a reason", "")
            else reply[:-1] + ', "reason": "r"}'
        )

    question, run = Question("What is it?", options), Run({role: ScriptedChat(say)})
    result = solve(kind(reason=False), TestFootage(20), question, run).answer
    assert (result.choice, result.text, result.reason) == (*answer, "")
    assert "without a reason" in asked[-1]
    result = solve(kind(), TestFootage(20), question, run).answer
    assert (result.choice, result.text, result.reason) == (*answer, "r")
    assert "Give your reason in one or two sentences, then the answer." in asked[-1]
