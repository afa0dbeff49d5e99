"""Plots of accuracy."""

import sys
from xml.etree import ElementTree

import pytest

from longtake.errors import MissingExtra
from longtake_bench.plots import Mark, as_svg, bars, scatter

SVG = "{http://www.w3.org/2000/svg}"
FIRST = [Mark(10, 0.5, 0.4, 0.7, "first <b>", 0), Mark(1000, 0.75, 0.6, 0.9, "first <b>", 0)]
OTHER = [Mark(100, 0.0, 0.0, 0.2, "other, $5", 1)]


def texts(figure):
    return [each.text for each in ElementTree.fromstring(as_svg(figure)).iter(f"{SVG}text")]


def test_marks_are_drawn_at_their_places_with_their_intervals():
    (axes,) = scatter(FIRST, x_name="frames").axes
    first, second = axes.containers
    assert first.lines[0].get_xydata().tolist() == [[10, 0.5]]
    ((low, high),) = second.lines[2][0].get_segments()
    assert low.tolist() == pytest.approx([1000, 0.6])
    assert high.tolist() == pytest.approx([1000, 0.9])


def test_each_name_is_in_the_legend_once():
    drawn = texts(scatter([*FIRST, *OTHER], x_name="frames"))
    assert drawn.count("first <b>") == 1
    assert "other, $5" in drawn


def test_bars_lie_in_named_groups():
    figure = bars([("counting", [FIRST[0], OTHER[0]]), ("causal", [FIRST[1]])])
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.5, 0.0, 0.75]
    assert {"counting", "causal", "50%", "0%", "75%"} <= set(texts(figure))


def test_the_same_plot_gives_the_same_file():
    assert as_svg(bars([("all", OTHER)])) == as_svg(bars([("all", OTHER)]))


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"longtake\[report\]"):
        bars([("all", OTHER)])
