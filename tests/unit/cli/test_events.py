"""``longtake info --blocks``: the film divided where its content changes."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from drawings import KNOWN

from longtake import cli
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.video.clip import Encoding, write_film

FEW = ("--set", "a4vl.events.max_feature_frames=42")
"""Encoding frames is what takes time here."""


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Twelve seconds of an abacus, sixteen of a crossword, fourteen of a traffic light."""
    path = tmp_path_factory.mktemp("film") / "three.mp4"
    shown = [("abacus", 12), ("crossword puzzle", 16), ("traffic light", 14)]
    drawn = {name: np.asarray(KNOWN[name]().convert("RGB").resize((320, 320))) for name, _ in shown}
    pictures = (drawn[name] for name, seconds in shown for _ in range(4 * seconds))
    write_film(path, pictures, Encoding(fps=Fraction(4), gop=8))
    return path


@pytest.fixture
def run(capsys, model_cache, monkeypatch):
    def run(*arguments):
        code = cli.run([str(a) for a in arguments])
        return code, *capsys.readouterr()

    made = EfficientNetLite2(model_cache)  # prepared once for the whole run
    monkeypatch.setattr("longtake.perception.encoders.EfficientNetLite2", lambda *_, **__: made)
    return run


def test_blocks_with_strength_and_votes(run, film):
    code, out, err = run("info", film, "--blocks", "--json", *FEW)
    assert code == 0, err
    facts = json.loads(out)
    blocks = facts["blocks"]
    assert [block["start"] for block in blocks] == pytest.approx([0, 12, 28], abs=1)
    assert blocks[0]["strength"] is None
    assert blocks[0]["heads"] == []
    assert all(block["strength"] > 0 and "ssm" in block["heads"] for block in blocks[1:])
    assert blocks[-1]["end"] == pytest.approx(facts["duration"])
    code, out, _ = run("info", film, "--blocks", "--set", "a4vl.events.max_blocks=2", *FEW)
    assert code == 0
    assert out.startswith("file")
    assert "strength" in out.splitlines()[-1]
