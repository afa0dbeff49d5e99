import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import write_line

from longtake.algorithms import lexical
from longtake.errors import RunError
from longtake.index.store import LayerKey
from longtake.index.text import TextStore, WordCache, union
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


@pytest.fixture
def few(monkeypatch):
    """A memory is filled with three common words instead of twenty thousand."""
    monkeypatch.setattr(lexical, "_common_words", lambda: ["houses", "washes", "went"])
    yield
    lexical.remember_in(None)


@pytest.mark.usefixtures("few")
def test_words_met_before_need_no_tables(tmp_path, monkeypatch):
    book = WordCache(tmp_path / "cache" / "words.db")
    lexical.remember_in(book)
    told = lexical.lemma("lanterns"), lexical.idf("lantern"), lexical.idf("zzqx")
    rare = lexical._looked_up_rarity("harbour")
    book.save()

    def refuse(word):
        raise AssertionError(f"looked up {word}")

    for name in ("_looked_up_form", "_looked_up_rarity"):
        monkeypatch.setattr(lexical, name, refuse)
    lexical.remember_in(WordCache(tmp_path / "cache" / "words.db"))
    assert (lexical.lemma("lanterns"), lexical.idf("lantern"), lexical.idf("zzqx")) == told
    # common words are known although nobody asked for them, and numbers are their own base form
    assert [lexical.lemma(word) for word in ("washes", "2026")] == ["wash", "2026"]
    # all plain words are kept at once
    assert (lexical.idf("harbour"), lexical.idf("qqzzx")) == (rare, lexical.UNKNOWN_IDF)
    with pytest.raises(AssertionError, match="harbours"):
        lexical.lemma("harbours")
    with pytest.raises(AssertionError, match="2027"):
        lexical.idf("2027")


@pytest.mark.usefixtures("few")
def test_what_other_tables_said_is_forgotten(tmp_path):
    path = tmp_path / "words.db"
    book = WordCache(path)
    book.keep({"washes": "nonsense"}, {})
    book.save()
    assert WordCache(path).form("washes") == "nonsense"
    with sqlite3.connect(path) as base:
        base.execute("UPDATE tables SET versions = 'older'")
    assert WordCache(path).form("washes") is None


@pytest.mark.usefixtures("few")
def test_without_a_usable_file_the_tables_are_asked(tmp_path):
    path = tmp_path / "words.db"
    path.write_bytes(b"no database at all" * 100)
    lexical.remember_in(WordCache(path))
    assert lexical.lemma("washes") == "wash"
    assert lexical.idf("the") < lexical.idf("lantern")


def test_rarities_of_plain_words_are_what_the_tables_say():
    kept = lexical._plain_rarities()
    for word in ("the", "harbour", "creative", "commons", "vibrant", "you're", "don't"):
        assert kept[word] == lexical._looked_up_rarity(word)
    assert not {"zzqxv", "'tis", "2027", "Paris", "café", ""} & set(kept)
