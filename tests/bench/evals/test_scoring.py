import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.types import Question, Segment
from longtake_bench import scoring
from longtake_bench.benchmarks import BenchmarkQuestion, LabelledQuestion, load
from longtake_bench.results import QuestionResult
from longtake_bench.scoring import (
    Difference,
    Metric,
    accuracy,
    clustered_error,
    correct,
    mcnemar,
    measure_citations,
    paired,
    wilson,
)

CHOICE = LabelledQuestion(BenchmarkQuestion("q", "v", Question("?", ("a", "b"))), "B")
WORDS = LabelledQuestion(BenchmarkQuestion("q", "v", Question("?")), "the red umbrella")


@pytest.mark.parametrize(
    ("item", "choice", "text", "right"),
    [
        (CHOICE, "B", "", True),
        (CHOICE, "A", "", False),
        (CHOICE, None, "b", False),
        # without case, articles and punctuation
        (WORDS, None, "It is a Red Umbrella.", True),
        (WORDS, None, "a blue umbrella", False),
        (WORDS, None, "", False),
    ],
)
def test_right_answers(item, choice, text, right):
    assert correct(item, choice, text) == right


def test_items_without_labels_cannot_be_scored():
    with pytest.raises(ValueError, match="no public label"):
        correct(replace(CHOICE, label=None), "A", "")


def test_clustered_error_by_hand():
    values = np.array([1.0, 1.0, 0.0, 0.0])
    # clusters {1, 1} and {0, 0}: sums of residuals are 1 and −1
    assert clustered_error(values, ["x", "x", "y", "y"]) == pytest.approx(math.sqrt(2 / 1 * 2) / 4)
    # singletons: the ordinary standard error with n − 1
    assert clustered_error(values, list("abcd")) == pytest.approx(math.sqrt(4 / 3 * 1.0) / 4)
    assert clustered_error(values, ["x"] * 4) is None


def test_questions_that_stand_and_fall_together_say_less():
    right = [True] * 10 + [False] * 10
    together = accuracy(right, ["a"] * 10 + ["b"] * 10)
    apart = accuracy(right, [str(i) for i in range(20)])
    assert together.value == apart.value == 0.5
    assert together.high - together.low > apart.high - apart.low


def test_few_videos_that_agree_by_chance_do_not_give_certainty():
    rate = accuracy([True, False, False] * 2, ["a"] * 3 + ["b"] * 3)
    assert (rate.low, rate.high) == pytest.approx(wilson(2, 6))


def test_wilson_by_hand():
    low, high = wilson(5, 10)
    assert (low, high) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert wilson(0, 10)[0] == 0.0
    assert wilson(0, 10)[1] == pytest.approx(0.2775, abs=1e-4)


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(1, 9) == pytest.approx(2 * (1 + 10) / 1024)
    assert mcnemar(5, 5) == 1.0


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 5)), min_size=1, max_size=60)
)
def test_a_paired_difference_is_antisymmetric_and_inside_its_interval(rows):
    first, second = [r[0] for r in rows], [r[1] for r in rows]
    videos = [str(r[2]) for r in rows]
    one, two = paired(first, second, videos), paired(second, first, videos)
    assert one.value == pytest.approx(-two.value)
    assert one.p == two.p
    assert one.low <= one.high
    assert paired(first, first, videos).value == 0.0


def test_no_questions_give_no_difference_and_no_nan():
    assert paired([], [], []) == Difference(0.0, -1.0, 1.0, 0, 0, 1.0)


HEAD = "video_id,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"


def item(*evidence):
    return LabelledQuestion(
        BenchmarkQuestion("q", "v", Question("What?", ("a", "b"))), "A", {}, evidence
    )


def cites(*evidence):
    return QuestionResult("q", "answered", evidence=evidence)


def test_a_new_figure_about_citations_appears_in_text_and_json(monkeypatch):
    cited = Metric("citations", lambda each: float(len(each.cited)))
    monkeypatch.setitem(scoring.CITATION_METRICS, "cited", cited)
    measured = measure_citations([item(Segment(0, 1))], [cites(Segment(5, 6))], [True])
    assert measured.figures()["citations"] == measured.plain()["cited"] == 1.0


def test_an_interval_that_is_one_point_is_left_out():
    assert str(Difference(0.0, 0.0, 0.0, 0, 0, 1.0)) == "+0.0%, p = 1"
    assert str(Difference(0.1, 0.0, 0.2, 1, 0, 1.0)) == "+10.0% [+0.0%, +20.0%], p = 1"


def test_precision_and_recall_are_those_of_right_answers():
    items = [item(Segment(10, 20)), item(Segment(10, 20)), item(Segment(50, 60))]
    results = [cites(Segment(12, 14), Segment(90, 91)), cites(Segment(200, 201)), cites()]
    measured = measure_citations(items, results, [True, False, True])
    assert measured.questions == 3
    assert measured.means["precision"] == 0.5  # the third cites nothing: it has no precision
    assert measured.means["recall"] == 0.5
    assert measured.means["uncited"] == 0.5
    assert measured.means["cited_right"] == pytest.approx(1 / 3)
    assert measured.means["miop"] == pytest.approx(1 / 3)
    assert measured.means["miou"] == pytest.approx(0.2 / 3)
    assert measured.means["acc_gqa"] == pytest.approx(1 / 3)


def test_seconds_count_over_all_questions():
    items = [item(Segment(10, 20)), item(Segment(10, 20)), item(Segment(50, 60))]
    results = [cites(Segment(15, 35)), cites(), cites(Segment(50, 60))]
    measured = measure_citations(items, results, [False, False, False])
    assert measured.means["overlapping"] == pytest.approx(2 / 3)
    assert measured.means["seconds_precision"] == pytest.approx((0.25 + 1) / 2)
    assert measured.means["seconds_recall"] == pytest.approx((0.5 + 1) / 3)
    assert measured.means["seconds_f1"] == pytest.approx((1 / 3 + 1) / 3)


def test_a_benchmark_without_intervals_has_no_figures():
    assert measure_citations([item()], [cites(Segment(1, 2))], [True]) is None


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
