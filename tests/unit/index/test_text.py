import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import write_line

from longtake.errors import RunError
from longtake.index.store import LayerKey
from longtake.index.text import TextStore, union
from longtake.types import Line, Segment

KEY, OTHER = LayerKey("speech", 1), LayerKey("onscreen", 1)


@pytest.fixture
def text(tmp_path):
    store = TextStore(tmp_path / "text.db")
    store.add(
        KEY,
        [
            Line(Segment(1, 3), "The red boat is leaving"),
            Line(Segment(10, 12), "Nobody leaves the harbour"),
        ],
        [Segment(0, 20)],
    )
    store.add(OTHER, [Line(Segment(5, 5), "HARBOUR STREET 12")], [Segment(5, 6)])
    return store


def test_lines_by_layer_and_time(text):
    assert [line.text for line in text.lines(KEY)] == [
        "The red boat is leaving",
        "Nobody leaves the harbour",
    ]
    assert [line.segment.start for line in text.lines(KEY, Segment(2, 5))] == [1]
    assert text.lines(KEY, Segment(3, 10)) == []
    assert [line.text for line in text.lines(OTHER, Segment(5, 6))] == ["HARBOUR STREET 12"]


def test_coverage_grows_and_joins(text):
    text.add(OTHER, [], [Segment(6, 8), Segment(0, 1)])
    assert text.covered(OTHER) == [Segment(0, 1), Segment(5, 8)]
    assert text.covered(LayerKey("unknown", 1)) == []
    assert not text.has(LayerKey("unknown", 1))


@pytest.mark.processes
def test_processes_write_side_by_side(tmp_path):
    path = tmp_path / "text.db"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(write_line, [path] * 24, range(24)))
    store = TextStore(path)
    assert [line.text for line in store.lines(KEY)] == [f"line {n}" for n in range(24)]
    assert store.covered(KEY) == [Segment(0, 24)]


def test_opening_waits_for_a_process_that_is_making_the_tables(tmp_path):
    path = tmp_path / "text.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, other.execute, ["COMMIT"])
    release.start()
    assert not TextStore(path).has(KEY)
    release.join()
    other.close()


segments = st.tuples(st.integers(0, 40), st.integers(0, 10)).map(
    lambda t: Segment(t[0], t[0] + t[1])
)


@given(st.lists(segments))
def test_union_covers_the_same_moments_without_overlap(parts):
    joined = union(parts)
    for moment in range(60):
        assert any(moment + 0.5 in s for s in joined) == any(moment + 0.5 in s for s in parts)
    assert all(a.end < b.start for a, b in zip(joined, joined[1:], strict=False))  # noqa: RUF007


@pytest.mark.parametrize("spoil", ["garbage", "tables"])
def test_a_damaged_file_is_named_with_the_remedy(text, tmp_path, spoil):
    path = tmp_path / "text.db"
    if spoil == "garbage":
        path.write_bytes(b"garbage" * 1000)
    else:
        with sqlite3.connect(path) as base:
            base.execute("DROP TABLE layers")
    for use in (lambda: text.has(KEY), lambda: text.add(KEY, [], [Segment(0, 1)])):
        with pytest.raises(
            RunError, match=f"text.db.*damaged.*longtake cache clear {tmp_path.name}"
        ):
            use()
