"""Citations of a run, and the loader of the benchmark that has intervals."""

from __future__ import annotations

import json

import pytest

from longtake.errors import ConfigError
from longtake.evals.benchmarks import BenchmarkQuestion, LabelledQuestion, load
from longtake.evals.scoring import measure_citations
from longtake.types import Question, Segment

HEAD = "video_id,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"


def item(*evidence):
    return LabelledQuestion(
        BenchmarkQuestion("q", "v", Question("What?", ("a", "b"))), "A", {}, evidence
    )


def test_precision_and_recall_are_those_of_right_answers():
    items = [item(Segment(10, 20)), item(Segment(10, 20)), item(Segment(50, 60))]
    rows = [
        {"evidence": [[12.0, 14.0], [90.0, 91.0]]},
        {"evidence": [[200.0, 201.0]]},
        {"evidence": []},
    ]
    measured = measure_citations(items, rows, [True, False, True])
    assert measured.questions == 3
    assert measured.precision == 0.5  # the third cites nothing: it has no precision
    assert measured.recall == 0.5
    assert measured.uncited == 0.5
    assert measured.cited_right == pytest.approx(1 / 3)
    assert measured.miop == pytest.approx(1 / 3)
    assert measured.miou == pytest.approx(0.2 / 3)
    assert measured.acc_gqa == pytest.approx(1 / 3)


def test_seconds_count_over_all_questions():
    items = [item(Segment(10, 20)), item(Segment(10, 20)), item(Segment(50, 60))]
    rows = [{"evidence": [[15.0, 35.0]]}, {"evidence": []}, {"evidence": [[50.0, 60.0]]}]
    measured = measure_citations(items, rows, [False, False, False])
    assert measured.overlapping == pytest.approx(2 / 3)
    assert measured.seconds_precision == pytest.approx((0.25 + 1) / 2)
    assert measured.seconds_recall == pytest.approx((0.5 + 1) / 3)
    assert measured.seconds_f1 == pytest.approx((1 / 3 + 1) / 3)


def test_a_benchmark_without_intervals_has_no_figures():
    assert measure_citations([item()], [{"evidence": [[1, 2]]}], [True]) is None


def test_nextgqa_in_its_native_format(tmp_path):
    (tmp_path / "val.csv").write_text(
        HEAD + "7,100,640,480,what does the girl do,feed horse,6,TN,grab,feed horse,run,sit,cry\n"
    )
    located = {"7": {"duration": 20, "location": {"6": [[5.1, 6.7], [8.4, 11.2]]}, "fps": 29.97}}
    (tmp_path / "gsub_val.json").write_text(json.dumps(located))
    (tmp_path / "captions_1fps.json").write_text(json.dumps({"7": {"0": "a girl", "1": "a horse"}}))
    benchmark = load("nextgqa-captions", tmp_path, {})
    (only,) = benchmark.items
    assert only.label == "B"
    assert only.evidence == (Segment(5.1, 6.7), Segment(8.4, 11.2))
    assert only.tags == {"type": "temporal", "subtype": "TN"}
    (tmp_path / "val.csv").write_text(
        HEAD + "7,100,640,480,what does the girl do,fly,6,TN,grab,feed horse,run,sit,cry\n"
    )
    with pytest.raises(ConfigError, match="7_6: the answer is not among the options"):
        load("nextgqa-captions", tmp_path, {})
