"""Requests as real clients sent them, recorded by running them (``tests/clients/harness.py``)."""

import json
from pathlib import Path

import pytest

from longtake.server.openai.requests import NamedFilm, SentVideo, read_request

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_a_recorded_request_is_understood(file):
    recorded = json.loads(file.read_text())
    assert recorded["made_by"].split()[1]  # the version that made it
    wish = read_request(recorded["body"], ["uniform", "videoagent"])
    assert wish.footage in (SentVideo("file:///data/videos/world.mp4"), NamedFilm("world.mp4"))
    assert wish.method in ("uniform", "videoagent")
    assert len(wish.asked.options) >= 2
    assert "\n" not in wish.asked.text
    assert wish.asked.labels[0] == "A"
    assert wish.carried == ""
