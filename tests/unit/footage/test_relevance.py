"""How well moments fit a text, from pictures and words together."""

import numpy as np
from support.footages import TestFootage

from longtake.footage.look import fused
from longtake.types import Line, Segment


class Signs(TestFootage):
    """Two signs, and a picture that looks like the first one's words."""

    def known_lines(self):
        return [], [
            Line(Segment(10, 16), "SUMMER FERRY 55"),
            Line(Segment(20, 23.5), "WINTER TUNNEL 16"),
        ]


def test_where_the_text_itself_is_shown_no_picture_stands_out_more():
    scores = fused(Signs(40, {"summer ferry 5S": [30]}), "summer ferry 5S")  # one letter misread
    assert np.flatnonzero(scores == scores.max()).tolist() == list(range(10, 16))
    assert np.argsort(-scores)[6] == 30


def test_words_that_are_only_alike_are_weighed_against_pictures():
    scores = fused(Signs(40, {"a winter day": [30]}), "a winter day")
    assert scores.argmax() == 30
    assert scores[20] == scores[23] > scores[10]
