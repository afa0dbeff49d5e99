"""Plugins with what real programs gave them, recorded by running them (``harness.py``).

The programs themselves are not installed: stand-ins take their place.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from pydantic import BaseModel

import longtake
from longtake import Answer, ConfigError, Evidence, Result, Segment, Usage

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ANSWER = Answer(
    choice="B", text="the cup", evidence=(Evidence(Segment(12, 14), "speech", "a cup"),)
)
RESULT = Result(ANSWER, Usage(calls=1, tokens_in=70, tokens_cached=20, tokens_out=5), "uniform")


def given(name):
    recorded = json.loads((HERE / "recorded" / "plugins" / f"{name}.json").read_text())
    assert recorded["made_by"].split()[1]  # the version that made it
    return recorded["given"]


class OpenedFilm:
    """Remembers what was asked."""

    def __init__(self):
        self.aio = SimpleNamespace(ask=self.ask_later)

    def open(self, path):
        self.path, self.bytes = path, path.read_bytes() if path.exists() else b""
        return self

    def ask(self, question, options, **how):
        self.question, self.options, self.how = question, list(options), how
        return RESULT

    async def ask_later(self, *given, **how):
        return self.ask(*given, **how)


@pytest.fixture
def film(monkeypatch):
    film = OpenedFilm()
    monkeypatch.setattr(longtake, "open", film.open, raising=False)
    return film


def plugin(monkeypatch, name, **stand_ins):
    """The plugin's module, imported beside stand-ins for the program."""
    for module, attributes in stand_ins.items():
        stand_in = ModuleType(module.replace("__", "."))
        vars(stand_in).update(attributes)
        monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.delitem(sys.modules, f"longtake.plugins.{name}", raising=False)
    return importlib.import_module(f"longtake.plugins.{name}")


class Choices(list):
    def mark_choice(self, index, correct):
        self[index].correct = correct


@pytest.fixture
def solvers(monkeypatch):
    known = {}

    def solver(name):
        return lambda build: known.setdefault(name, build)

    def from_content(model, content):
        return SimpleNamespace(model=model, message=SimpleNamespace(content=content))

    model = {"ModelOutput": SimpleNamespace(from_content=from_content), "ModelUsage": dict}
    types = {"Generate": None, "Solver": None, "TaskState": None, "solver": solver}
    plugin(monkeypatch, "inspect", inspect_ai={}, inspect_ai__model=model, inspect_ai__solver=types)
    return known


def task_state():
    plain = given("inspect-ai")
    state = json.loads(json.dumps(plain), object_hook=lambda each: SimpleNamespace(**each))
    state.metadata = plain["metadata"]
    state.choices = Choices(state.choices)
    state.user_prompt = SimpleNamespace(text=plain["messages"][0]["content"])
    return state


def solve(build, state, **arguments):
    return asyncio.run(build(**arguments)(state, None))


def test_inspect_ai_solves_with_every_method(solvers, film):
    assert {"uniform", "videoagent"} <= set(solvers)
    state = solve(solvers["uniform"], task_state(), model="lab", verify=False)
    assert film.path == Path("/data/videos/world.mp4")
    assert film.question.endswith("?")
    assert len(film.options) >= 2
    assert film.how == {"method": "uniform", "model": "lab", "verify": False}
    assert [choice.correct for choice in state.choices][:2] == [False, True]
    assert state.output.model == "longtake/uniform"
    assert state.messages[-1].content == "ANSWER: B"
    assert state.output.usage["total_tokens"] == 75
    assert state.output.metadata["evidence"][0]["segment"] == {"start": 12, "end": 14}


def test_inspect_ai_sends_films_as_data(solvers, film):
    state = task_state()
    state.metadata = {}
    video = SimpleNamespace(type="video", video="data:video/mp4;base64,Zm91cg==")
    state.messages[0].content = [video]
    solve(solvers["uniform"], state)
    assert (film.path.suffix, film.bytes) == (".mp4", b"four")
    assert not film.path.exists()


def test_a_sample_without_a_film_is_refused(solvers, film):
    state = task_state()
    state.metadata = {}
    with pytest.raises(ConfigError, match="no film"):
        solve(solvers["uniform"], state)


@pytest.fixture
def models(monkeypatch):
    stand_in = {"Options": BaseModel, "Model": object, "hookimpl": lambda function: function}
    known = []
    plugin(monkeypatch, "llm", llm=stand_in).register_models(known.append)
    return {model.model_id: model for model in known}


def prompt(**options):
    plain = given("llm")
    attachments = [SimpleNamespace(**each) for each in plain["attachments"]]
    given_options = SimpleNamespace(**{**plain["options"], **options})
    return SimpleNamespace(prompt=plain["prompt"], attachments=attachments, options=given_options)


def execute(model, prompt, response=None):
    # by name, as llm does
    pieces = model.execute(prompt, stream=False, response=response, conversation=None)
    return "".join(pieces)


def test_llm_has_every_method_as_a_model(models, film):
    usage = {}
    response = SimpleNamespace(set_usage=usage.update)
    model = models["longtake/videoagent"]
    assert "video/mp4" in model.attachment_types
    assert execute(model, prompt(), response) == "B"
    assert film.path == Path("/data/videos/world.mp4")
    assert "\n" not in film.question
    assert len(film.options) >= 2
    assert film.how["method"] == "videoagent"
    assert usage == {"input": 70, "output": 5}
    assert execute(model, prompt(evidence=True), response) == "B\n[00:00:12] speech a cup"


def test_llm_needs_one_film(models, film):
    without = prompt()
    without.attachments = []
    with pytest.raises(ConfigError, match="attach one film"):
        execute(models["longtake/uniform"], without)


def test_entry_points_name_the_plugins():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for group in ("inspect_ai", "llm"):
        module = points[group]["longtake"]
        assert (ROOT / "src" / f"{module.replace('.', '/')}.py").exists()
