from __future__ import annotations

import numpy as np
from PIL import Image
from support.detecting import Detectives, SceneFootage, play

from longtake.plots import draw_belief, read_belief_history
from longtake.tracing.events import ScoresSet
from longtake.types import Segment

FILM = ["sea", "cat", "tree", "dog", "car", "hill"]
FACETS = {"question": ["sea"], "A": ["cat"], "B": ["dog"], "C": ["car"]}


def searched():
    detectives = Detectives(FACETS, {n: (f"a {what}", n == 0, "") for n, what in enumerate(FILM)})
    result, heard = play(detectives, SceneFootage(FILM))
    return result.answer, read_belief_history(heard.of(ScoresSet))


def test_a_run_tells_its_search():
    _, search = searched()
    assert search.segments == tuple(Segment(10.0 * n, 10.0 * n + 10) for n in range(6))
    assert search.belief.shape == (7, 6)  # before, and after each of six looks
    assert [segment.start for segment, _ in search.observed[:4]] == [0, 10, 30, 40]
    assert search.anchors == {Segment(0, 10), Segment(10, 20), Segment(30, 40), Segment(40, 50)}
    assert len(search.selected) == 6


def test_other_traces_hold_no_search():
    assert (
        read_belief_history(
            [ScoresSet(label="similarity", segments=(Segment(0, 1),), values=(0.5,))]
        )
        is None
    )


def test_the_search_is_drawn_and_looks_differ_by_what_was_believed(tmp_path):
    answer, search = searched()
    strip = SceneFootage(FILM).uniform(12)
    draw_belief(search, answer, strip, 60.0, tmp_path / "one.png")
    one = np.asarray(Image.open(tmp_path / "one.png").convert("RGB"), int)
    assert one.shape[1] > 1000
    search.belief[:, 2] = 5.0
    draw_belief(search, answer, strip, 60.0, tmp_path / "two.png")
    two = np.asarray(Image.open(tmp_path / "two.png").convert("RGB"), int)
    assert one.shape == two.shape
    assert (np.abs(one - two).max(axis=2) > 40).mean() > 0.05
