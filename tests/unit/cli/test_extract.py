"""``longtake extract``."""

from __future__ import annotations

import csv
import json

import jsonschema
import pytest
from pydantic import BaseModel, Field
from unit.library.shelf import SETTINGS, add, film

import longtake
from longtake import cli
from longtake.library import Library
from longtake.llm import catalog
from longtake.llm.backends.scripted import ScriptedChat

SCHEMA = {
    "type": "object",
    "properties": {
        "animal": {"type": "string", "description": "Which rare animal sings loudly?"},
        "age": {"type": ["integer", "null"], "description": "How old is the volcano?"},
    },
}
QUICK = ("--set", "perception.reader=false", "--set", "perception.listener=none")


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LONGTAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        catalog.ModelCatalog,
        "open",
        lambda self, name, **rest: ScriptedChat(lambda messages, options: "a walrus"),
    )
    monkeypatch.setattr(catalog.ModelCatalog, "check", lambda self, names: None)
    # the default model is small, and fills nothing
    monkeypatch.setattr(catalog.ModelCatalog, "is_small", lambda self, name, **rest: False)
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))

    def act(*words, schema=schema):
        code = cli.run(["extract", *map(str, words), "--schema", str(schema), *QUICK])
        return code, *capsys.readouterr()

    return act


@pytest.fixture
def walrus(tmp_path, film_folder):
    return film(tmp_path / "films", "w.mp4", film_folder, "a rare walrus sings loudly", "it swims")


def test_json_is_valid_and_cites_every_value(run, walrus):
    code, out, said = run(walrus, "--json")
    assert code == 0
    data = json.loads(out)
    (table,) = data["films"]
    jsonschema.validate(table["data"], data["schema"])
    assert table["data"] == {"animal": "a walrus", "age": None}
    assert table["citations"]["animal"]["text"] == "a rare walrus sings loudly"
    assert (table["cells"], table["nulls"], table["citations"]["age"]) == (2, 1, None)
    assert "2 cells, 1 of them null" in said
    assert "may be null although the schema forbids it: animal" in said


def test_a_folder_is_written_as_csv_with_a_line_per_film(run, walrus, tmp_path, film_folder):
    film(walrus.parent, "x.mp4", film_folder, "nothing at all", "is said", frames=50)
    out = tmp_path / "table.csv"
    for _ in range(2):  # a table of ours may be written again
        assert run(walrus.parent, "--out", out)[0] == 0
    first, second = csv.DictReader(out.open())
    assert (first["animal"], first["animal at"]) == ("a walrus", "00:00:00")
    assert first["animal quote"] == "a rare walrus sings loudly"
    assert (second["animal"], second["animal at"], second["animal quote"]) == ("", "", "")


def test_values_are_shown_with_their_times(run, walrus):
    assert '  animal: "a walrus"  [00:00:00]\n  age: null\n' in run(walrus)[1]


def test_a_small_model_is_refused_before_anything_is_read(run, walrus, monkeypatch):
    monkeypatch.setattr(catalog.ModelCatalog, "is_small", lambda self, name, **rest: True)
    code, out, said = run(walrus)
    assert (code, out) == (2, "")
    assert "is too small to fill a table: name a larger model" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "malformed JSON"), ("[]", "must be an object"), ('{"type": "array"}', "must be")],
)
def test_a_schema_that_cannot_be_used_is_one_line(run, walrus, tmp_path, text, why):
    wrong = tmp_path / "wrong.json"
    wrong.write_text(text)
    code, _, said = run(walrus, schema=wrong)
    assert (code, why in said) == (2, True)


def test_other_wrong_uses(run, walrus, tmp_path):
    assert "none.json" in run(walrus, schema=tmp_path / "none.json")[2]
    assert "name films, or pass --library" in run()[2]
    assert "the library is empty" in run("--library")[2]
    assert ".csv or .json" in run(walrus, "--out", tmp_path / "table.xls")[2]
    (tmp_path / "empty").mkdir()
    assert "no films in this folder" in run(tmp_path / "empty")[2]


def test_every_film_of_the_library_has_rows(run, walrus):
    add(Library(settings=SETTINGS), walrus)
    code, out, _ = run("--library", "--json")
    assert code == 0
    assert [table["data"]["animal"] for table in json.loads(out)["films"]] == ["a walrus"]


def test_a_class_of_pydantic_from_python(run, walrus):
    class Song(BaseModel):
        animal: str | None = Field(description="Which rare animal sings loudly?")

    table = longtake.open(walrus, settings=SETTINGS).extract(Song, method="lookup")
    assert Song(**table.data).animal == "a walrus"
    assert table.rows[0]["animal"].evidence.source == "speech"
