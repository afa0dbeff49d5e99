"""A calibration is fitted to results with labels; a confidence becomes a probability."""

from __future__ import annotations

import json

import pytest
from support.footages import TestFootage

from longtake.agents.calibration import Calibration
from longtake.agents.run import Run
from longtake.evals.benchmarks import BenchmarkQuestion, LabelledQuestion
from longtake.evals.calibration import Ending, ReplayedRule, corrected, end, fit_runs, of_run
from longtake.evals.calibration import passages as through
from longtake.evals.runner import Scored
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.auto.method import shipped
from longtake.methods.baselines.method import Blind
from longtake.runner.session import solve
from longtake.types import Question

QUESTION = Question("Who leaves?", ("a", "b", "c", "d"))


def stage(name, choice, tokens, **signals):
    return {"stage": name, "choice": choice, "text": "", "tokens": tokens, "signals": signals}


@pytest.fixture
def scored():
    """The cheap stage is right where it finds support, which is half the time; the dear one always
    but for one film."""
    items, rows, right = [], [], []
    for number in range(80):
        supported = number % 2 == 0
        cheap = stage("cheap", "A" if supported else "B", 100, supported=float(supported))
        dear = stage("dear", "C" if number % 16 == 3 else "A", 50_000, supported=1.0)
        items.append(
            LabelledQuestion(BenchmarkQuestion(f"q{number}", f"film {number % 8}", QUESTION), "A")
        )
        rows.append({"status": "answered", "choice": dear["choice"], "stages": [cheap, dear]})
        right.append(dear["choice"] == "A")
    return Scored(items, rows, right)


def test_auto_learns_to_stop_where_the_cheap_stage_finds_support(scored):
    rule = fit_runs([("auto", scored)], {"benchmark": "made up"})
    ends = [end(ReplayedRule(passage, rule), rule) for passage in through(scored)]
    assert [point.visited[-1] for point in ends[:4]] == ["cheap", "dear", "cheap", "dear"]
    assert rule.stages["cheap"].stopped == pytest.approx(0.5)
    assert rule.stages["dear"].reached == pytest.approx(0.5)
    assert rule.provenance["auto"]["accuracy"] > 0.9
    assert rule.provenance["calibration_error"]["cheap"]["after"] < 0.2


def test_the_final_probability_is_fitted_to_the_questions_that_auto_stopped_at(scored):
    for row in scored.rows:
        row["stages"] = [row["stages"][0] | {"standing": 0.9}, {"stage": "dear", "tokens": 1}]
    ends = of_run(Scored(scored.items, scored.rows, [number % 5 > 0 for number in range(80)]))
    rule = corrected(Calibration(stop_at=0.7), ends, {"questions": 80})
    assert rule.final_probability(0.9, ends[0].kind) == pytest.approx(0.8, abs=0.01)
    assert (rule.stop_at, rule.provenance["final"]["before"]) == (0.7, 0.1)
    assert rule.provenance["final"]["calibration_error"] < 0.1


def test_the_final_probability_tells_kinds_of_questions_apart():
    kinds = {"counting": 5, "plain": 9}  # of ten right
    ends = []
    for number in range(200):
        asked = ("counting", "plain")[number % 2]
        right = number // 2 % 10 < kinds[asked]
        ends.append(Ending(0.8, right, f"film {number % 20}", asked))
    rule = corrected(Calibration(), ends, {})
    assert rule.final_probability(0.8, "counting") == pytest.approx(0.5, abs=0.06)
    assert rule.final_probability(0.8, "plain") == pytest.approx(0.9, abs=0.06)
    # an older calibration, or a kind that it never met
    assert Calibration(final={"odds": 1.0}).final_probability(0.8, "order") == pytest.approx(0.8)


def test_a_confidence_is_a_probability_where_the_method_is_calibrated():
    rule = Calibration(methods={"blind": {"bias": 1.0, "unchecked": -1.0}})
    run = Run({"llm": ScriptedChat(['{"reason": "so", "choice": "B"}'])})
    result = solve(Blind(), TestFootage(5), QUESTION, run, rule=rule)
    assert result.answer.confidence == 0.5
    other = Run({"llm": ScriptedChat(['{"reason": "so", "choice": "B"}'])})
    assert solve(Blind(), TestFootage(5), QUESTION, other).answer.confidence is None


def test_the_command_fits_and_writes_with_provenance(run, tmp_path):
    """Slow: it evaluates before it fits."""
    out, kept = tmp_path / "calibration.json", tmp_path / "run"
    lab = ["--on", "lab", "--of", "seeds=7", "--of", "minutes=4", "--of", "questions=6"]
    model = ["--model", "lab/profile=lab-2", "--set", 'auto.stages=["lookup", "videoagent"]']
    code, told, err = run("calibrate", *lab, *model, "--keep", kept, "--out", out)
    assert code == 0, err
    written = json.loads(out.read_text())
    assert written["provenance"]["questions"] == 6
    assert written["provenance"]["runs"][0]["seeds"] == [7]
    assert "ECE before" in told
    # a run in which auto stopped by itself corrects what it states in the end, and nothing else
    asked = ["eval", "lab", *lab[2:], *model, "--method", "auto", "--out", tmp_path / "stopped"]
    code, _, err = run(*asked)
    assert code == 0, err
    code, _, err = run("calibrate", tmp_path / "stopped", kept, "--out", tmp_path / "both.json")
    assert code != 0
    assert "give no others" in err
    code, told, err = run("calibrate", tmp_path / "stopped", "--out", tmp_path / "final.json")
    assert code == 0, err
    assert "final probabilities" in told
    assert json.loads((tmp_path / "final.json").read_text())["pool"] == shipped().pool
    # the same from the run that was kept
    again = tmp_path / "again.json"
    code, _, err = run("calibrate", kept, "--out", again)
    assert code == 0, err
    assert json.loads(again.read_text())["pool"] == written["pool"]
