"""Words whose base forms and rarities are known from an earlier process."""

from __future__ import annotations

import sqlite3

import pytest

from longtake.algorithms import lexical
from longtake.index.text import WordCache


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
