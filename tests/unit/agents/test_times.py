"""Times as models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake._util.timecode import clock
from longtake.agents.tools import ToolError, at_least, read_stretch
from longtake.types import Segment

HOUR = 3600.0


@pytest.mark.parametrize("start", ["00:03:21", "3:21", "201 s", "201", 201, 201.0, " 00:03:21 "])
def test_one_moment_in_many_spellings(start):
    assert read_stretch(start, "00:04:00", HOUR).segment == Segment(201, 240)


@pytest.mark.parametrize(
    ("start", "end", "seconds", "repaired"),
    [
        ("00:05:00", "00:04:00", (240, 300), "wrong way round"),
        ("03:21:00", "03:41:00", (201, 221), "hours"),
        ("00:59:00", "01:10:30", (3540, 3600), "ends at 01:00:00"),
    ],
)
def test_repairs(start, end, seconds, repaired):
    read = read_stretch(start, end, HOUR)
    assert read.segment == Segment(*seconds)
    assert repaired in read.repaired
    # possible as it stands
    assert read_stretch("01:00:00", "01:30:00", 3 * HOUR).segment == Segment(3600, 5400)


def test_beyond_the_end():
    with pytest.raises(ToolError, match="beyond the end: the film is 01:00:00 long"):
        read_stretch("02:00:05", "02:10:10", HOUR)


@pytest.mark.parametrize("bad", ["soon", "", "00:99:00", "1:2:3:4"])
def test_what_is_no_time_is_refused_with_the_form_to_use(bad):
    with pytest.raises(ToolError, match="HH:MM:SS"):
        read_stretch(bad, "00:01:00", HOUR)


@given(st.floats(0, 5000), st.floats(0, 5000), st.floats(1, 4000))
def test_whatever_is_read_lies_in_the_film(a, b, duration):
    try:
        segment = read_stretch(clock(a), clock(b), duration).segment
    except ToolError:
        return
    assert 0 <= segment.start <= segment.end <= duration
    wide = at_least(segment, 10, duration)
    assert wide.duration >= min(10, duration) - 1e-6
    assert 0 <= wide.start <= wide.end <= duration
