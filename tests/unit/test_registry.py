"""Names and addresses: what finds a method, and what is said of something that is none."""

import sys
from pathlib import Path

import pytest
from films import FILMS

from longtake import registry
from longtake.errors import ConfigError
from longtake.methods.baselines.method import Uniform
from longtake.methods.symphony.method import Symphony

OWN = """
from dataclasses import dataclass
from longtake.methods.baselines.method import Uniform
from longtake.types import Answer

@dataclass(frozen=True)
class Few(Uniform):
    name = "few"
    frames: int = 2

@dataclass(frozen=True)
class Bare:
    '''A method without bounds.'''

    name = "bare"
    paper = "none"
    roles = ("llm",)
    presets = {}

    def answer(self, footage, question, run):
        return Answer("A")

@dataclass
class Empty:
    name = "empty"
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module in the working folder, which is not on the path."""
    monkeypatch.setattr(
        sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))]
    )
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_methods.py").write_text(OWN)
    (tmp_path / "own_broken.py").write_text("def (")
    yield tmp_path
    sys.modules.pop("own_methods", None)


@pytest.mark.usefixtures("own")
def test_an_address_is_found_in_the_working_folder_after_everything_installed():
    kind = registry.methods.get("own_methods:Few")
    assert kind().frames == 2
    assert sys.path[-1] == str(Path.cwd())
    assert registry.methods.name_of(kind) == "own_methods:Few"


def test_a_registered_method_goes_by_its_name():
    registry.methods.get("symphony")
    assert (registry.methods.name_of(Uniform), registry.methods.name_of(Symphony)) == (
        "uniform",
        "symphony",
    )

    class Hidden(Uniform):
        pass

    assert registry.methods.name_of(Hidden) == ""


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("json:loads", "json:loads is not a method: a method is a dataclass"),
        ("own_methods:Empty", "is not a method: it has no paper, roles, presets, answer"),
        ("own_methods:Nobody", "cannot be loaded: module 'own_methods' has no attribute 'Nobody'"),
        ("own_broken:Any", "cannot be loaded: SyntaxError"),
    ],
)
def test_what_is_no_method_is_refused_in_words(address, says):
    with pytest.raises(ConfigError, match=says):
        registry.methods.get(address)


def test_a_method_by_address_is_described_asked_and_run_again(run, own, film_folder):
    film = FILMS[0].make(film_folder)
    code, out, err = run("methods", "own_methods:Few")
    assert code == 0, err
    assert "--set" not in out
    options = ("--option", "red", "--option", "green", "--model", "test/obliging")
    code, _, err = run(
        "ask", film, "Which?", *options, "--method", "own_methods:Few", "--trace", own / "run.jsonl"
    )
    assert code == 0, err
    code, _, err = run("replay", own / "run.jsonl", "--rerun", film)
    assert code == 2  # whoever sent the trace does not decide what is imported
    assert "pass --method own_methods:Few" in err
    code, _, err = run("replay", own / "run.jsonl", "--rerun", film, "--method", "own_methods:Few")
    assert code == 0, err
    assert "the same answer and evidence" in err
