"""Damaged and odd films: every one gives frames, or an error in our own words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attack.campaign import CRASHES, exercise_films, exercise_seeds
from attack.texts import TARGETS, attempt

SEEDS = 200
"""Films made and used in ``make test``; ``make attack`` goes on with fresh seeds."""


@pytest.mark.parametrize("part", range(2))
def test_films_of_many_seeds(tmp_path, part):
    first, last = part * SEEDS // 2, (part + 1) * SEEDS // 2
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
