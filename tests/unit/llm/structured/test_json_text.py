import json
import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtake.llm.structured.json_text import (
    MAX_BROKEN,
    NotJson,
    is_cut,
    parse,
    values,
    without_mark,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("{'a': 'it'}", {"a": "it"}),
        ("{a: true, b: None}", {"a": True, "b": None}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('{"a": 1, // why\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": -1.5e3}', {"a": -1500.0}),
        ('{"a": "\\u00e9\\ud83d\\ude00"}', {"a": "é😀"}),
        ("{“a”: “b”}", {"a": "b"}),
    ],
)
def test_json_as_models_write_it(text: str, value: object) -> None:
    assert parse(text) == value
    assert [found.value for found in values(f"Sure! Here it is: {text} Hope that helps.")] == [
        value
    ]


def whole(value: object) -> object:
    """A value without what was cut off."""
    if isinstance(value, dict):
        pairs = {key: whole(part) for key, part in value.items() if not is_cut(key)}
        return {key: part for key, part in pairs.items() if part is not None}
    if isinstance(value, list):
        return [part for part in map(whole, value) if part is not None]
    return None if is_cut(value) else value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": "because the m', {"a": 1}),
        ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1]}),
        ('{"a": 1, "b": [1, 2,', {"a": 1, "b": [1, 2]}),
        ('{"a": 1, "b": [', {"a": 1, "b": []}),
        ('{"a": 1, "b": [{', {"a": 1, "b": [{}]}),
        ('{"a": 1, "b": [{}', {"a": 1, "b": [{}]}),
        ('{"a": 1, "', {"a": 1}),
        ('{"a": 1, "sco', {"a": 1}),
        ('{"a": 1, "score"', {"a": 1}),
        ('{"a": 1, "score":', {"a": 1}),
        ('{"a": 1, "score": 1', {"a": 1}),
        ('{"a": 1, "score": -', {"a": 1}),
        ('{"a": 1, "score": tr', {"a": 1}),
        ('{"a": [{"b": "x', {"a": [{}]}),
        ('{"a": "x, y', {}),
    ],
)
def test_what_was_cut_off_is_marked(text: str, value: object) -> None:
    (found,) = values(text)
    assert is_cut(found.value)
    assert whole(found.value) == value


def test_the_mark_is_not_part_of_the_text() -> None:
    (found,) = values('{"a": "whole", "b": ["whole", "hal')
    assert found.value["a"] == "whole"
    assert [without_mark(text) for text in found.value["b"]] == ["whole", "hal"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "b": "c" "a": 2}',
        '{"a": "x" or',
        '{"a": 1 "b": {"a": 2}}',
        '{"a": {"b": 1} {"b": 2}}',
        '{"a": ' + "9" * 500 + "}",
    ],
)
def test_what_is_broken_is_not_mended_by_guessing(text: str) -> None:
    with pytest.raises(NotJson):
        list(values(text))
    with pytest.raises(NotJson):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": maybe}', {"a": "maybe"}),
        ('{"a": 8/10}', {"a": "8/10"}),
        ('{"a": 3-4, "b": 1}', {"a": "3-4", "b": 1}),
        ('{"a": "x"\n"b": "y"}', {"a": "x", "b": "y"}),
        ('{"a" = "x", "b" = 2}', {"a": "x", "b": 2}),
        ('{"a": "x" or "y"}', {"a": 'x" or "y'}),
        ('{"a": "she says "go" and goes", "b": "B"}', {"a": 'she says "go" and goes', "b": "B"}),
        ("{'a': 'it's a dog's', 'b': 'B'}", {"a": "it's a dog's", "b": "B"}),
        ('{"a": the red dog, "b": B}', {"a": "the red dog", "b": "B"}),
        ('{"a": [{"b": 1}, {"b": 2}}', {"a": [{"b": 1}, {"b": 2}]}),
        ('{"a": ["x "y" z", "w"], "b": 1 }', {"a": ['x "y" z', "w"], "b": 1}),
        ('{"a": [one, two]}', {"a": ["one", "two"]}),
    ],
)
def test_what_is_broken_is_mended_where_it_can_mean_one_thing(text: str, value: object) -> None:
    (read,) = values(text)
    assert whole(read.value) == value


@pytest.mark.parametrize(
    "text",
    [
        "{/*" * 40_000,
        "{" * 120_000,
        "{“" * 60_000,
        '{"a":"' * 20_000,
        '{"a": "x" ' * 12_000,
        '{"a": x, ' * 12_000,
        '{"a": ' + "[" * 100_000,
        '{"a": "' + '" ' * 60_000 + '", "a": 1}',
        '{"a": x' + " " * 120_000 + "y, ",
        '{"a": "b"' + "\n" * 120_000,
        "[" * 100_000,
    ],
    ids=range(11),
)
def test_reading_takes_time_linear_in_the_text(text: str) -> None:
    began = time.process_time()
    for read in (parse, lambda text: list(values(text))):
        with suppress(NotJson):
            read(text)
    assert time.process_time() - began < 2


def test_deep_json_is_refused_and_exhausts_nothing() -> None:
    with pytest.raises(NotJson):
        parse('{"a":' * 100_000 + "1" + "}" * 100_000)
    assert parse("[" * 60 + "]" * 60)


def test_what_is_broken_and_long_is_not_mended() -> None:
    with pytest.raises(NotJson, match="longer than"):
        values('{"a": "' + "x" * MAX_BROKEN)


def test_a_lone_surrogate_in_a_string_is_dropped() -> None:
    assert parse('{"a": "x\\ud83dy"}') == {"a": "xy"}


def test_braces_in_prose_are_not_json() -> None:
    assert [found.value for found in values('The set {x, y} and {} then {"a": 1}')] == [
        {},
        {"a": 1},
    ]
    assert list(values("no braces at all")) == []


@given(VALUES)
def test_valid_json_is_read_as_the_standard_reads_it(value: object) -> None:
    text = json.dumps({"k": value})
    assert parse(text) == {"k": value}
    assert [found.value for found in values(f"text {text} text")] == [{"k": value}]


WORDS = st.text("abc ,.é", min_size=1, max_size=12)
PLAIN = st.recursive(
    st.booleans() | st.integers(-(10**12), 10**12) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN, st.integers(0, 200))
@example([False, -1_000_000_000, [-1]], 35)
def test_a_prefix_of_json_never_holds_more_than_the_whole(value: object, length: int) -> None:
    text = json.dumps({"k": value, "z": [1, "two", {"three": True}]}, ensure_ascii=False)
    with suppress(NotJson):
        for found in values(text[:length]):
            assert_part(whole(found.value), json.loads(text))


def assert_part(part: object, whole: object) -> None:
    if isinstance(part, dict):
        assert isinstance(whole, dict)
        for key, value in part.items():
            assert_part(value, whole[key])
    elif isinstance(part, list):
        assert isinstance(whole, list)
        for one, other in zip(part, whole, strict=False):
            assert_part(one, other)
    elif isinstance(part, str):
        assert isinstance(whole, str)
        assert whole.startswith(part)
    else:
        assert part == whole


@given(st.text(alphabet="{}[]\":,\\'`/* \nabtrue01", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(NotJson):
        list(values(text))
