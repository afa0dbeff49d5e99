"""Filters over a library."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError, MediaError
from longtake.library.add import date_in_name, facts_from
from longtake.library.catalog import Entry, parse
from longtake.video.container import films_in

LECTURE = Entry(
    "f1",
    "Week 1",
    3600.0,
    (Path("/films/Lectures/w1.mp4"),),
    "2025-03-14",
    "Lyon",
    ("lectures", "ml"),
)
UNDATED = Entry("f2", "holiday", 90.0)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("tag=lecture", True),
        ("TAG = ML and year>=2025", True),
        ("tag=lecture and year>2025", False),
        ("tag=cooking or minutes=60", True),
        ("tag=cooking or tag=lecture and year=2024", False),
        ("tag=lecture and year=2025 OR tag=cooking", True),
        ("name~'week'", True),
        ('name="Week 1"', True),
        ("path~lectures", True),
        ("place!=Paris", True),
        ("date=2025-03", True),
        ("date>=2025-03-15", False),
        ("date<2026", True),
        ("minutes<59.5", False),
        ('name="and"', False),
    ],
)
def test_filters(text, holds):
    assert parse(text)(LECTURE) is holds


def test_what_is_unknown_is_in_no_order():
    assert not parse("year<2030")(UNDATED)
    assert not parse("date>1900")(UNDATED)
    assert parse("year!=2025")(UNDATED)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tags=x", "did you mean 'tag'"),
        ("tag", "expected a field"),
        ("tag=", "expected a field"),
        ("tag=x year=3", "expected 'and' or 'or' after 'tag=x'"),
        ("(tag=x)", "unknown field"),
        ("year=soon", "year is a number"),
        ("year~20", "year is a number; use"),
        ("name<b", "name has no order"),
        ("tag='x", "expected a field"),
        ("tag=x and", "after 'tag=x and'"),
        ("tag=x;drop table", "expected 'and' or 'or'"),
    ],
)
def test_mistakes_are_explained(text, told):
    with pytest.raises(ConfigError, match=told):
        parse(text)


@given(st.text(alphabet="tag=x()\"'~<>! andornty2", max_size=40))
def test_nothing_else_can_happen(text):
    with contextlib.suppress(ConfigError):
        parse(text)(LECTURE)


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("VID_20250314_101112", "2025-03-14"),
        ("2019-07-04 fireworks", "2019-07-04"),
        ("meeting 2024.12", "2024-12"),
        ("Metropolis (1927)", "1927"),
        ("clip_1080p", ""),
        ("film2160p_x", ""),
        ("IMG_0019", ""),
        ("2025-02-31", ""),
        ("call +4420191234567", ""),
    ],
)
def test_dates_in_names(name, date):
    assert date_in_name(name) == date


def test_facts_from_metadata_name_and_folders():
    metadata = {
        "title": "  Week  one ",
        "creation_time": "2025-01-02T03:04:05Z",
        "genre": "Lecture; Maths",
        "location": "+48.8577+002.2950/",
    }
    path = Path("/films/Uni/2025/week1 #q3-plan [raw].mp4")
    facts = facts_from(path, metadata, 60.0, Path("/films/Uni"))
    assert (facts.name, facts.date, facts.place) == ("Week one", "2025-01-02", "48.8577, 2.295")
    assert facts.tags == ("q3-plan", "raw", "uni", "lecture", "maths")


def test_a_date_in_the_name_is_meant_and_an_epoch_is_not():
    dated = facts_from(Path("2020-05-06.mp4"), {"creation_time": "2025-01-02"}, 1.0)
    assert dated.date == "2020-05-06"
    unset = facts_from(Path("x.mp4"), {"creation_time": "1904-01-01T00:00:00Z"}, 1.0)
    assert (unset.name, unset.date, unset.tags) == ("x", "", ())


def test_films_are_found_once_and_hidden_ones_are_not(tmp_path):
    for name in ("b.MP4", "a/c.mkv", "a/notes.txt", ".trash/d.mp4", "a/.e.mp4"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = [
        place.path.relative_to(tmp_path).as_posix()
        for place in films_in([tmp_path, tmp_path / "a", tmp_path / "a" / "notes.txt"])
    ]
    # a file that is named outright is taken whatever its name
    assert found == ["b.MP4", "a/c.mkv", "a/notes.txt"]
    with pytest.raises(MediaError, match="no such file or folder"):
        list(films_in([tmp_path / "gone"]))
