"""The packed table of rarities."""

from __future__ import annotations

from longtake.algorithms import lexical, rarities


def test_words_are_found_whole_with_the_rarity_of_their_line():
    packed = rarities.pack([(0.5, ["the", "and"]), (1.25, ["harbour", "lantern"]), (2.0, ["he"])])
    words = ("the", "and", "harbour", "lantern", "he", "an", "lanter", "arbour")
    expected = [0.5, 0.5, 1.25, 1.25, 2.0, None, None, None]
    assert [rarities.find(packed, word) for word in words] == expected
    assert rarities.find(b"", "the") is None


def test_the_packed_table_says_what_the_tables_say():
    packed = lexical._packed_table()
    for word in ("the", "harbour", "creative", "commons", "vibrant", "you're", "don't"):
        assert rarities.find(packed, word) == lexical._looked_up_rarity(word)
    assert rarities.find(packed, "zzqxv") is None
    assert not any(map(rarities.is_plain, ("'tis", "2027", "Paris", "café", "")))
