"""The benchmark of real films: found by content, scored by phrases, abstentions where due."""

import pytest

from longtake.errors import ConfigError
from longtake.index.source import fingerprint
from longtake.types import Question
from longtake_bench import benchmarks
from longtake_bench.benchmarks import NOT_TOLD, BenchmarkQuestion, LabelledQuestion, films
from longtake_bench.results import QuestionResult
from longtake_bench.scoring import sound


@pytest.fixture
def one_film(tmp_path, monkeypatch):
    """A data folder with the only film of the benchmark, deep inside and under another name."""
    place = tmp_path / "deep" / "renamed.bin"
    place.parent.mkdir()
    place.write_bytes(b"the film")
    (tmp_path / "another.bin").write_bytes(b"not film")  # as long as the film
    known = {"name": "kitchen", "bytes": 8, "fingerprint": fingerprint(place), "origin": "a shelf"}
    monkeypatch.setattr(films, "films", lambda: [known])
    return place


def test_films_are_found_by_their_content(one_film, tmp_path):
    loaded = benchmarks.load("films", tmp_path, {"films": "present"})
    assert loaded.source.paths == {"kitchen": one_film}
    assert {item.asked.video for item in loaded.items} == {"kitchen"}


def test_a_missing_film_is_named_with_its_origin(one_film, tmp_path):
    one_film.unlink()
    with pytest.raises(ConfigError, match="kitchen: a shelf"):
        benchmarks.load("films", tmp_path, {})


@pytest.mark.parametrize("options", [{"split": "best"}, {"films": "some"}])
def test_unknown_parts_are_rejected(options, tmp_path):
    with pytest.raises(ConfigError, match=f"not {next(iter(options.values()))}"):
        benchmarks.load("films", tmp_path, options)


def test_the_questions_are_whole():
    rows = films.questions()
    known = {film["name"] for film in films.films()}
    assert len({row["id"] for row in rows}) == len(rows) >= 30
    assert {row["film"] for row in rows} == known
    for row in rows:
        assert bool(row["accept"]) == (row["kind"] == "words")
        assert row["split"] in ("dev", "test")
        assert row["evidence"] or row["kind"] == "absent"


def test_where_nothing_tells_an_abstention_is_right_and_an_error_is_not():
    item = LabelledQuestion(BenchmarkQuestion("q", "v", Question("What colour?")), NOT_TOLD)
    assert sound(item, QuestionResult("q", "abstained", text=""))
    assert not sound(item, QuestionResult("q", "error"))
    assert not sound(item, QuestionResult("q", "answered", text="green"))


def test_any_accepted_phrase_is_right():
    item = LabelledQuestion(
        BenchmarkQuestion("q", "v", Question("Which?")), "Webb", accepted=("the telescope",)
    )
    assert sound(item, QuestionResult("q", "answered", text="It is the Telescope."))
    assert not sound(item, QuestionResult("q", "answered", text="Webbed feet"))
