"""Every method on one question about one film, with simulated models."""

from __future__ import annotations

import json

import pytest

from longtake import cli
from longtake.lab.film import make_world, write_world
from longtake.registry import methods


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    made = make_world(5, 2, 20)
    write_world(made, folder)
    return folder, next(asked for asked in made.questions if asked.kind == "needle")


@pytest.fixture(autouse=True)
def one_index(world, monkeypatch):
    monkeypatch.setenv("LONGTAKE_CACHE", str(world[0] / "cache"))


def test_all_methods_side_by_side(world, capsys):
    folder, asked = world
    options = [word for option in asked.question.options for word in ("--option", option)]
    code = cli.run(
        [
            "compare",
            str(folder / "film.mp4"),
            asked.question.text,
            *options,
            "--model",
            "lab/acuity=1",
            "--json",
        ]
    )
    out, err = capsys.readouterr()
    assert code == 0, err
    rows = {row["method"]: row for row in json.loads(out)["results"]}
    assert set(rows) == set(methods.names())
    assert {row["status"] for row in rows.values()} == {"answered"}
    sighted = [
        name for name, row in rows.items() if name != "blind" and row["choice"] == asked.answer
    ]
    assert len(sighted) >= len(rows) - 3, rows  # two minutes hold few needles that nobody finds
    for name in sighted:
        assert all(0 <= cited["start"] <= 120 for cited in rows[name]["evidence"])


def test_a_budget_ends_each_method_by_itself(world, capsys):
    folder, asked = world
    film = str(folder / "film.mp4")
    code = cli.run(
        [
            "compare",
            film,
            asked.question.text,
            "--model",
            "lab/acuity=1",
            "--max-calls",
            "2",
            "--json",
        ]
    )
    out, err = capsys.readouterr()
    assert code == 0, err
    statuses = {row["method"]: row["status"] for row in json.loads(out)["results"]}
    assert set(statuses) == set(methods.names())
    assert set(statuses.values()) <= {"answered", "abstained", "budget_spent"}
    assert statuses["symphony"] == "budget_spent"
