"""Texts from outside, mutated: everything that parses them returns or raises in our own words."""

import random
from fractions import Fraction
from types import SimpleNamespace

import pytest
from attack.texts import TARGETS, attempt, change
from hypothesis import given
from hypothesis import strategies as st

from longtake.video.packets import LONGEST, UNKNOWN, _table, plan

CASES = 40
"""Mutations of each target in ``make test``; ``make attack`` goes on with fresh seeds."""


@pytest.mark.parametrize("name", TARGETS)
def test_mutations(name):
    target = TARGETS[name]
    for seed in range(CASES):
        files = change(target, random.Random(f"{name}{seed}"))
        assert attempt(target, files) == "", files


@pytest.mark.parametrize("name", TARGETS)
def test_the_files_that_are_mutated_are_read(name, tmp_path):
    """Otherwise mutations would test nothing but the refusal."""
    for file, text in TARGETS[name].files.items():
        (tmp_path / file).write_text(text)
    TARGETS[name].read(tmp_path)


extreme = st.integers(-(2**62), 2**62)
near, far = st.integers(-50, 50), st.integers(-(2**40), 2**40)
stamps = st.one_of(near, far, extreme, st.just(int(UNKNOWN)))
rows = st.lists(st.tuples(stamps, stamps, st.booleans(), st.booleans()), min_size=1, max_size=30)
rates = st.one_of(st.none(), st.fractions(0, 10**9))
ticks = st.one_of(st.none(), st.fractions(Fraction(1, 10**9), 10**9))


@given(rows, rates, ticks, st.integers(0, 2**62), st.one_of(st.none(), extreme))
def test_any_packets_make_a_table_that_can_be_planned(rows, rate, tick, last, sound):
    """Whatever a demuxer reports, the film has a length, frames, and a way to decode them."""
    audio = [SimpleNamespace(start_time=sound, time_base=tick)]
    form = SimpleNamespace(name="matroska")
    container = SimpleNamespace(format=form, streams=SimpleNamespace(audio=audio))
    stream = SimpleNamespace(
        time_base=tick, average_rate=rate, guessed_rate=None, base_rate=None, start_time=None
    )
    table = _table(rows, container, stream, last)
    assert len(table) > 0
    assert 0 < table.duration <= 2 * LONGEST
    times = [0.0, table.duration / 2, table.duration]
    positions = table.on_screen(times)
    assert set(positions) <= set(range(len(rows)))
    for run in plan(table, positions.tolist()):
        assert 0 <= run.first <= run.last < len(rows)
