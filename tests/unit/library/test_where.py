"""Filters over a library."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.library.catalog import Entry, parse

LECTURE = Entry(
    "f1",
    "Week 1",
    3600.0,
    (Path("/films/Lectures/w1.mp4"),),
    "2025-03-14",
    "Lyon",
    ("lectures", "ml"),
)
UNDATED = Entry("f2", "holiday", 90.0)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("tag=lecture", True),
        ("TAG = ML and year>=2025", True),
        ("tag=lecture and year>2025", False),
        ("tag=cooking or minutes=60", True),
        ("not tag=cooking", True),
        ("not (tag=lecture or tag=ml)", False),
        ("tag=cooking or tag=lecture and year=2024", False),
        ("(tag=cooking or tag=lecture) and year=2025", True),
        ("name~'week'", True),
        ('name="Week 1"', True),
        ("path~lectures", True),
        ("place!=Paris", True),
        ("date=2025-03", True),
        ("date>=2025-03-15", False),
        ("date<2026", True),
        ("minutes<59.5", False),
        ('name="and"', False),
    ],
)
def test_filters(text, holds):
    assert parse(text)(LECTURE) is holds


def test_what_is_unknown_is_in_no_order():
    assert not parse("year<2030")(UNDATED)
    assert not parse("date>1900")(UNDATED)
    assert parse("year!=2025")(UNDATED)
    assert parse("not year>2000")(UNDATED)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tags=x", "did you mean 'tag'"),
        ("tag", "expected one of"),
        ("tag=", "expected a value at character 5"),
        ("tag=x year=3", "expected 'and' or 'or' at character 7"),
        ("(tag=x", r"expected '\)'"),
        ("year=soon", "year is a number"),
        ("year~20", "year is a number; use"),
        ("name<b", "name has no order"),
        ("tag='x", "close the quotes"),
        ("and", "unknown field"),
        ("tag;drop table", "unknown field"),
        ("not " * 60 + "tag=x", "more than 50 levels"),
    ],
)
def test_mistakes_are_explained(text, told):
    with pytest.raises(ConfigError, match=told):
        parse(text)


@given(st.text(alphabet="tag=x()\"'~<>! andornty2", max_size=40))
def test_nothing_else_can_happen(text):
    with contextlib.suppress(ConfigError):
        parse(text)(LECTURE)
