import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake._util.timecode import clock, parse_range, parse_time
from longtake.algorithms import sampling
from longtake.errors import ConfigError, unknown
from longtake.registry import Registry
from longtake.types import Frame, Question, Segment, Usage


def test_segments():
    a = Segment(1.0, 4.0)
    assert (a.duration, a.middle) == (3.0, 2.5)
    assert 1.0 in a
    assert 4.0 not in a
    assert a.overlap(Segment(3, 9)) == 1.0
    assert a.overlap(Segment(4, 9)) == 0.0
    with pytest.raises(ValueError, match="cannot end"):
        Segment(2, 1)
    with pytest.raises(ValueError, match="cannot end"):
        Segment(0, float("nan"))


def test_questions_have_no_options_or_two_to_26():
    assert Question("Why?", ("a", "b", "c")).letters == "ABC"
    assert Question("Why?").letters == ""
    for options in (("a",), ("x",) * 27):
        with pytest.raises(ValueError, match="2 to 26"):
            Question("Why?", options)
    with pytest.raises(ValueError, match="empty"):
        Question("  ")


def test_usage_adds_and_an_unknown_cost_stays_unknown():
    first = Usage(calls=1, tokens_in=10, cost=0.5)
    second = Usage(calls=2, tokens_in=5, seconds=1.5, cost=0.25)
    total = first + second
    assert total == Usage(calls=3, tokens_in=15, seconds=1.5, cost=0.75)
    assert total - first == second
    assert (total + Usage(calls=1, cost=None)).cost is None
    assert (total - Usage(calls=1, cost=None)).cost is None


def test_a_frame_shows_its_time_and_shape_not_its_pixels():
    assert repr(Frame(1.5, np.zeros((90, 160, 3), np.uint8))) == "Frame(time=1.500, 160×90)"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12.5", 12.5),
        ("201 s", 201),
        ("3:21", 201),
        ("00:03:21", 201),
        ("1:00:00", 3600),
        ("00:03:21,500", 201.5),
        ("90", 90),
        ("100:00:00", 360_000),
    ],
)
def test_times_as_people_write_them(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3", "1:75", "1:75:00", "1:2:3:4", "1e3", "nan"])
def test_invalid_times(text):
    with pytest.raises(ConfigError, match="not a time"):
        parse_time(text)


@given(st.floats(0, 1e6))
def test_formatted_times_parse_back(seconds):
    assert parse_time(clock(seconds, millis=True)) == pytest.approx(seconds, abs=6e-4)


def test_ranges():
    assert parse_range("00:10:00-20:00") == Segment(600, 1200)
    for bad in ("5", "9-3", "a-b"):
        with pytest.raises(ConfigError):
            parse_range(bad)


@given(st.integers(0, 500), st.integers(0, 500))
def test_samples_are_distinct_sorted_and_inside(count, n):
    picked = sampling.uniform(count, n)
    assert len(picked) == min(n, count)
    assert np.all(np.diff(picked) > 0)
    assert np.all((picked >= 0) & (picked < count))


def test_uniform_includes_both_ends():
    assert sampling.uniform(9, 3).tolist() == [0, 4, 8]
    assert sampling.uniform(9, 1).tolist() == [4]


def test_unknown_names_suggest_the_nearest():
    near = unknown("method", "videoagnet", ["a4vl", "videoagent"])
    assert "did you mean 'videoagent'" in str(near)
    far = unknown("method", "zzz", ["symphony", "a4vl"])
    assert "known: a4vl, symphony" in str(far)


def test_registry_imports_late_and_names_the_nearest():
    targets = {"path": "pathlib:Path", "broken": "no_such_module:x"}
    registry = Registry("thing", "longtake.nothing", targets)
    assert registry.get("path").__name__ == "Path"
    assert "broken" in registry
    with pytest.raises(ConfigError, match="did you mean 'path'"):
        registry.get("paht")
    registry.add("mine", "pathlib:PurePath")
    assert registry.names() == ["path", "broken", "mine"]
