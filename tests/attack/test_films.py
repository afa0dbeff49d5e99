"""Damaged and odd films: every one gives frames, or an error in our own words."""

import json
from pathlib import Path

import pytest
from attack.campaign import CRASHES, exercise_films, exercise_seeds
from attack.texts import TARGETS, attempt


@pytest.mark.parametrize(
    ("first", "last"), [(0, 20), pytest.param(20, 200, marks=pytest.mark.campaign)]
)
def test_films_of_many_seeds(tmp_path, first, last):
    count, refused, findings = exercise_seeds(tmp_path, first, last)
    assert findings == []
    assert count == last - first
    # a generator that only makes rubbish would test nothing but the refusal
    assert refused < 0.6 * count


FOUND = sorted(path for path in CRASHES.glob("[!.]*") if path.suffix != ".txt")


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_crashed_once_does_not_crash_again(tmp_path: Path, path: Path):
    if path.suffix == ".json":
        kept = json.loads(path.read_text())
        files = {name: text.encode("latin-1") for name, text in kept["files"].items()}
        assert attempt(TARGETS[kept["target"]], files) == ""
    else:
        assert exercise_films(tmp_path, [str(path)])[2] == []
