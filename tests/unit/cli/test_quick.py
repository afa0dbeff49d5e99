"""When a question starts with a first look."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from longtake.cli import ask
from longtake.types import Question


@pytest.mark.parametrize(
    ("method", "duration", "seconds", "text"),
    [
        ("videoagent", 3600.0, None, "Who?"),
        ("lookup", 60.0, None, "Who?"),
        ("lookup", 3600.0, 30.0, "Who?"),
        ("lookup", 3600.0, None, "How often is the price mentioned?"),
    ],
)
def test_films_that_are_short_or_looked_at_and_limited_questions_take_the_usual_way(
    method, duration, seconds, text
):
    budget = SimpleNamespace(seconds=seconds)
    session = SimpleNamespace(settings=SimpleNamespace(budget=budget))
    manner = SimpleNamespace(method=method, session=session)
    assert not ask.wants_first_look(manner, SimpleNamespace(duration=duration), Question(text))
