"""Which films of a library are meant, and what is known about a film."""

from pathlib import Path

import pytest

from longtake.errors import MediaError
from longtake.library.add import date_in_name, facts_from
from longtake.library.catalog import Entry, matches
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", True), ("week", True), ("LECTURES/w1", True), (" ml ", True), ("cooking", False)],
)
def test_films_are_chosen_by_name_path_and_tag(text, expected):
    assert matches(LECTURE, text) is expected


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
