import json
import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtake.llm.structured.tolerant_json import CutText, NotJson, objects, parse

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
    assert [found.value for found in objects(f"Sure! Here it is: {text} Hope that helps.")] == [
        value
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": "because the m', {"a": 1, "b": "because the m"}),
        ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1]}),
        ('{"a": 1, "b": [1, 2,', {"a": 1, "b": [1, 2]}),
        ('{"a": 1, "b": [', {"a": 1}),
        ('{"a": 1, "', {"a": 1}),
        ('{"a": 1, "sco', {"a": 1}),
        ('{"a": 1, "score"', {"a": 1}),
        ('{"a": 1, "score":', {"a": 1}),
        ('{"a": 1, "score": 1', {"a": 1}),
        ('{"a": 1, "score": -', {"a": 1}),
        ('{"a": 1, "score": tr', {"a": 1}),
        ('{"a": [{"b": "x', {"a": [{"b": "x"}]}),
    ],
)
def test_a_cut_off_tail_is_closed_and_nothing_is_made_up(text: str, value: object) -> None:
    (found,) = objects(text)
    assert found.value == value


def test_a_string_without_its_end_is_marked() -> None:
    (found,) = objects('{"a": "whole", "b": ["whole", "hal')
    assert not isinstance(found.value["a"], CutText)
    assert [isinstance(text, CutText) for text in found.value["b"]] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "b": "c" "a": 2}',
        '{"a": }',
        '{"a": 1, 2}',
        '{"a": {"b": 1} {"b": 2}}',
        "{" + '"a":{' * 200,
        '{"a": ' + "9" * 500 + "}",
    ],
)
def test_what_is_broken_is_not_mended_by_guessing(text: str) -> None:
    with pytest.raises(NotJson):
        list(objects(text))
    with pytest.raises(NotJson):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": maybe}', {"a": "maybe"}),
        ('{"a": 8/10}', {"a": "8/10"}),
        ('{"a": 3-4, "b": 1}', {"a": "3-4", "b": 1}),
        ('{"a": 1 "b": {"a": 2}}', {"a": 1, "b": {"a": 2}}),
        ('{"a": "x"\n"b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": "x"\nb: "y"}', {"a": "x", "b": "y"}),
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
    (read,) = objects(text)
    assert read.value == value


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
    for read in (parse, lambda text: list(objects(text))):
        with suppress(NotJson):
            read(text)
    assert time.process_time() - began < 2


def test_deep_json_is_refused_and_exhausts_nothing() -> None:
    for depth in (100, 900, 100_000):
        with pytest.raises(NotJson):
            parse('{"a":' * depth + "1" + "}" * depth)
    assert parse("[" * 60 + "]" * 60)


def test_a_lone_surrogate_in_a_string_is_dropped() -> None:
    assert parse('{"a": "x\\ud83dy"}') == {"a": "xy"}


def test_braces_in_prose_are_not_json() -> None:
    assert [found.value for found in objects('The set {x, y} and {} then {"a": 1}')] == [
        {},
        {"a": 1},
    ]
    assert list(objects("no braces at all")) == []


@given(VALUES)
def test_valid_json_is_read_as_the_standard_reads_it(value: object) -> None:
    text = json.dumps({"k": value})
    assert parse(text) == {"k": value}
    assert [found.value for found in objects(f"text {text} text")] == [{"k": value}]


@given(VALUES, st.integers(0, 200))
@example([False, -1_000_000_000, [None, -1]], 35)
@example(["", None], 12)
def test_a_prefix_of_json_never_holds_more_than_the_whole(value: object, length: int) -> None:
    text = json.dumps({"k": value, "z": [1, "two", {"three": True}]}, ensure_ascii=False)
    for found in objects(text[:length]):
        assert_part(found.value, json.loads(text))


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
        list(objects(text))
