"""Who answers: models by role, and teams."""

from pathlib import Path

import pytest

from longtake.agents.team import DEFAULT_TEAM
from longtake.config import IndexSettings, Settings
from longtake.errors import ConfigError
from longtake.methods.symphony.method import Symphony
from longtake.runner.assignment import ModelAssignment
from longtake_bench.benchmarks.lab import lab


@pytest.mark.parametrize(
    ("models", "each"),
    [
        (("lab/acuity=1",), "lab/acuity=1"),
        (("team=lab/acuity=1",), "lab/acuity=1"),
        (("a", "team=b", "llm=c"), "b"),
        (("http://127.0.0.1/v1#x",), "http://127.0.0.1/v1#x"),
    ],
)
def test_a_model_named_for_the_team_or_for_all_makes_three_agents(models, each):
    assert [member.model for member in ModelAssignment(models).members()] == [each] * 3
    assert ModelAssignment(("llm=c",)).members() is DEFAULT_TEAM


@pytest.mark.parametrize(
    ("models", "llm", "vlm"),
    [
        (["x"], "x", "x"),
        (["vlm=y", "x"], "x", "y"),
        (["x", "z"], "z", "z"),
        (["lab/acuity=0.8"], "lab/acuity=0.8", "lab/acuity=0.8"),
        (["x", "vlm=http://h/v1?a=b#m"], "x", "http://h/v1?a=b#m"),
    ],
)
def test_one_model_for_all_roles_or_for_one(models, llm, vlm):
    assert ModelAssignment(models).names(("llm", "vlm")) == {"llm": llm, "vlm": vlm}


def test_a_single_agent_may_have_a_model_of_its_own():
    named = ModelAssignment(("a", "planner=b")).names(Symphony.roles)
    assert named == {"llm": "a", "vlm": "a", "planner": "b"}
    with pytest.raises(ConfigError, match="planner"):
        ModelAssignment(("planner=b",)).names(("llm", "vlm"))


def test_an_unknown_role_is_rejected_with_the_nearest_one():
    with pytest.raises(ConfigError, match="did you mean 'vlm'"):
        ModelAssignment(["vml=y"]).names(("llm", "vlm"))


def test_a_role_that_no_built_in_model_takes_must_be_named():
    with pytest.raises(ConfigError, match="--model judge=NAME"):
        ModelAssignment().names(("llm", "judge"))
    assert ModelAssignment(("judge=x",)).names(("llm", "judge"))["judge"] == "x"


def test_encoded_worlds_are_opened_with_the_settings_given(tmp_path):
    mine = Settings(index=IndexSettings(fps=0.5))
    assert lab([0], 3, 2, films=tmp_path, opened_with=mine).source.settings is mine


@pytest.mark.parametrize(
    ("assignment", "method"),
    [
        (ModelAssignment(), "lookup"),
        (ModelAssignment(("local/qwen2.5-coder-1.5b",)), "lookup"),
        (ModelAssignment(("llm=local/smollm2-135m", "captioner=senses/words")), "lookup"),
        (ModelAssignment(("vlm=lab/acuity=1",)), "videoagent"),
        (ModelAssignment(("http://127.0.0.1/v1#x",)), "auto"),
        (ModelAssignment(("http://127.0.0.1/v1#x", "captioner=senses")), "auto"),
        (ModelAssignment(("http://127.0.0.1/v1#x",), team=Path("team.toml")), "auto"),
        (ModelAssignment(("local/qwen2.5-coder-1.5b", "vlm=http://127.0.0.1/v1#x")), "videoagent"),
        (ModelAssignment(team=Path("team.toml")), "videoagent"),
    ],
)
def test_built_in_models_look_things_up_and_one_model_for_all_decides_how_closely_to_look(
    assignment, method
):
    assert assignment.default_method == method
