"""Damaged and odd films: every one gives frames, or an error in our own words."""

import json

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


FOUND = sorted(path for path in CRASHES.glob("[!.]*") if path.suffix not in (".txt", ".json"))


def test_films_that_crashed_once_do_not_crash_again(tmp_path):
    count, _, findings = exercise_films(tmp_path, [str(path) for path in FOUND])
    assert (count, findings) == (len(FOUND), [])


@pytest.mark.parametrize("path", sorted(CRASHES.glob("[!.]*.json")), ids=lambda path: path.name)
def test_texts_that_failed_once_do_not_fail_again(path):
    kept = json.loads(path.read_text())
    files = {name: text.encode("latin-1") for name, text in kept["files"].items()}
    assert attempt(TARGETS[kept["target"]], files) == ""
