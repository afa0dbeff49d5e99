"""benchmarks/lab2.py: cells are resumed, and the page shows both editions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from longtake.evals import runner
from longtake.evals.solving import answer_one

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "lab2.py"


@pytest.fixture
def lab2(monkeypatch):
    spec = importlib.util.spec_from_file_location("lab2", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lab2", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    # in this process: starting workers would take longer than the questions
    monkeypatch.setattr(runner, "run_all", in_this_process)
    return module


def in_this_process(solver, source, questions, *, workers):
    for asked in questions:
        yield answer_one(solver, source, asked)


def test_cells_are_resumed_and_the_page_has_both_editions(lab2, tmp_path):
    line = ["--out", str(tmp_path), "--methods", "blind", "--worlds", "1", "--questions", "3"]
    line += ["--minutes", "3"]
    lab2.main(line)
    first = (tmp_path / "lab2.md").read_text()
    results = sorted(path.stat().st_mtime_ns for path in tmp_path.glob("*/results.jsonl"))
    assert len(results) == 6  # two editions with two baselines: equal frames, equal tokens
    lab2.main([*line, "--page-only"])
    assert (tmp_path / "lab2.md").read_text() == first
    assert results == sorted(p.stat().st_mtime_ns for p in tmp_path.glob("*/results.jsonl"))
    assert "lab-1:" in first
    assert "lab-2:" in first
    assert "citation precision" in first
    assert (tmp_path / "lab2.svg").read_text().startswith("<svg")


def test_the_drawing_is_a_file_that_can_be_shown_alone(lab2, tmp_path):
    line = ["--out", str(tmp_path), "--methods", "blind", "--worlds", "1", "--questions", "1"]
    lab2.main([*line, "--minutes", "3", "--profiles", "lab-2"])
    root = ElementTree.parse(tmp_path / "lab2.svg").getroot()
    # browsers show an SVG file as text unless it names its namespace
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "whisker" in root.find("{http://www.w3.org/2000/svg}style").text
