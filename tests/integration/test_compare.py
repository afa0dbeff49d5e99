"""Every method on one question about one film, with simulated models."""

from __future__ import annotations

import json

import pytest

from longtake import cli
from longtake.lab.film import make_world, write_world
from longtake.registry import methods

# simulated models see the pictures themselves; reading and listening would take longer than they do
SENSES = ("--set", "perception.reader=false", "--set", "perception.listener=none")
# enough to part two minutes into blocks
FEW = ("--set", "a4vl.events.max_feature_frames=40")
SIMULATED = ("--model", "lab/acuity=1", "--no-verify", *SENSES, *FEW)


@pytest.fixture(scope="module")
def world(tmp_path_factory, lend_models):
    folder = tmp_path_factory.mktemp("world")
    lend_models(folder / "cache")
    made = make_world(5, 2, 20)
    write_world(made, folder)
    return folder, next(asked for asked in made.questions if asked.kind == "needle")


@pytest.fixture(autouse=True)
def one_index(world, monkeypatch):
    monkeypatch.setenv("LONGTAKE_CACHE", str(world[0] / "cache"))


def test_all_methods_side_by_side(world, capsys):
    """Slow: it indexes two minutes, the shortest film with questions, for nine methods."""
    folder, asked = world
    options = [word for option in asked.question.options for word in ("--option", option)]
    film = str(folder / "film.mp4")
    code = cli.run(["compare", film, asked.question.text, *options, *SIMULATED, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    rows = {row["method"]: row for row in json.loads(out)["results"]}
    assert set(rows) == set(methods.names())
    # lookup sees no pictures, so it abstains if the answer is neither said nor written
    looking = [row for name, row in rows.items() if name != "lookup"]
    assert {row["status"] for row in looking} == {"answered"}
    sighted = [
        name for name, row in rows.items() if name != "blind" and row["choice"] == asked.answer
    ]
    assert len(sighted) >= len(rows) - 3, rows  # two minutes hold few needles that nobody finds
    for name in sighted:
        assert all(0 <= cited["start"] <= 120 for cited in rows[name]["evidence"])


def test_a_budget_ends_each_method_by_itself(world, capsys):
    folder, asked = world
    film = str(folder / "film.mp4")
    limited = [*SIMULATED, "--max-calls", "2"]
    code = cli.run(["compare", film, asked.question.text, *limited, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    statuses = {row["method"]: row["status"] for row in json.loads(out)["results"]}
    assert set(statuses) == set(methods.names())
    assert set(statuses.values()) <= {"answered", "abstained", "budget_spent"}
    assert statuses["symphony"] == "budget_spent"
