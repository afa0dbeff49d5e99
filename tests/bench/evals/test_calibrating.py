"""A calibration is fitted to results with labels; a confidence becomes a probability."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from support.footages import TestFootage

from longtake.agents.calibration import Fit, Vote, fits_from, read, shipped
from longtake.agents.run import Run
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.baselines.method import Blind
from longtake.runner.session import solve
from longtake.types import Question
from longtake_bench.benchmarks import BenchmarkQuestion, LabelledQuestion
from longtake_bench.calibration import fits_of
from longtake_bench.report import RunReport
from longtake_bench.results import QuestionResult
from longtake_bench.runner import Scored

QUESTION = Question("Who leaves?", ("a", "b", "c", "d"))


def record(name, choice, tokens, **vote):
    return asdict(Vote(name, choice, **vote)) | {"tokens": tokens, "footage": "captions"}


def report(every_stage=True):
    """The cheap stage is right where it finds support, which is half the time; the dear one always
    but for one film."""
    items, rows = [], []
    for number in range(80):
        supported = number % 2 == 0
        cheap = record("cheap", "A" if supported else "B", 100, stated=0.9, supported=supported)
        dear = record("dear", "C" if number % 16 == 3 else "A", 50_000, supported=True)
        asked = BenchmarkQuestion(f"q{number}", f"film {number % 8}", QUESTION)
        items.append(LabelledQuestion(asked, "A"))
        stages = [cheap, dear]
        rows.append(QuestionResult(asked.id, "answered", choice=dear["choice"], stages=stages))
    right = [row.choice == "A" for row in rows]
    method = {"name": "auto", "fields": {"every_stage": every_stage}}
    spec = {"benchmark": {"name": "made up"}, "method": method, "models": {"llm": "m", "vlm": "v"}}
    return RunReport(Path("run"), spec, items, rows, Scored(items, rows, right))


def test_auto_learns_to_stop_where_the_cheap_stage_finds_support():
    (fit,) = fits_of([report()], None, {})
    assert fit.about == ("auto", "m", "captions")
    right, tokens = fit.provenance["stopping"][str(fit.stop_at)]
    assert right > 0.9
    assert 20_000 < tokens < 30_000
    assert fit.provenance["stopping"]["0.0"] == (0.5, 100)
    told = fit.provenance["measured"]["made up"]
    assert (told["right"], told["ECE stated"]) == (right, pytest.approx(0.45, abs=0.1))
    assert sum(count for *_, count in told["reliability"]) == told["answers"] == 80


def test_where_it_never_pays_to_go_on_only_first_answers_are_fitted():
    run = report()
    for row in run.rows:  # the dear stage repeats the cheap one's answer
        row.stages[1]["choice"] = row.stages[0]["choice"]
    scored = Scored(run.items, run.rows, run.scored.right)
    (fit,) = fits_of([replace(run, scored=scored)], None, {})
    assert fit.stop_at == 0
    assert "agreeing" not in fit.weights


def test_where_stages_were_cut_short_only_the_probability_is_fitted():
    (fit,) = fits_of([report(every_stage=False)], "local/other", {})
    assert (fit.model, fit.stop_at) == ("local/other", None)


def test_a_confidence_is_a_probability_where_the_method_is_calibrated():
    def ask(fits, **more):
        run = Run({"llm": ScriptedChat(['{"reason": "so", "choice": "B"}'])})
        return solve(Blind(), TestFootage(5), QUESTION, run, fits=fits, **more).answer

    fit = Fit("blind", "scripted", "pictures", {"bias": 1.0, "silent": -1.0})
    assert ask([fit]).confidence == 0.5
    assert ask([]).confidence is None
    assert ask([Fit("blind", "other", "pictures", {})]).confidence is None
    # below what is asked for, or unknown, it is withheld
    assert ask([fit], min_confidence=0.5).choice == "B"
    low = ask([fit], min_confidence=0.6)
    assert (low.choice, low.status, low.confidence) == (None, "abstained", 0.5)
    assert "50% is below 60%" in low.reason
    assert "probability is unknown" in ask([], min_confidence=0.1).reason


@pytest.mark.parametrize("text", ['{"stop_at": 0.8}', "[1]", "[", '[{"method": "auto"}]', ""])
def test_a_file_that_is_no_calibration_is_rejected_in_a_line(tmp_path, text):
    file = tmp_path / "calibration.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as problem:
        read(file)
    assert str(problem.value).startswith(str(file))
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
@pytest.mark.parametrize("field", ["weights", "stop_at"])
def test_numbers_in_a_calibration_are_finite(field, number, tmp_path):
    path = tmp_path / "calibration.json"
    values = {"weights": '{"bias": 1}', "stop_at": "0.5"}
    values[field] = f'{{"bias": {number}}}' if field == "weights" else number
    fields = ", ".join(f'"{name}": {value}' for name, value in values.items())
    path.write_text(f'[{{"method": "auto", "model": "m", "footage": "words", {fields}}}]')
    # otherwise every answer would be called nearly certain
    with pytest.raises(ConfigError, match="finite number"):
        read(path)


def test_the_command_fits_and_writes_with_provenance(run, tmp_path):
    """Slow: it evaluates before it fits."""
    out, kept = tmp_path / "calibration.json", tmp_path / "run"
    lab = ["--on", "lab", "--of", "seeds=7-8", "--of", "minutes=2", "--of", "questions=10"]
    model = ["--model", "lab/profile=lab-3", "--set", 'auto.stages=["lookup", "search@8"]']
    code, told, err = run("calibrate", *lab, *model, "--keep", kept, "--out", out)
    assert code == 0, err
    (fit,) = fits_from(json.loads(out.read_text()), "test")
    assert fit.about == ("auto", "lab/profile=lab-3", "pictures")
    assert "by chance" in told
    # the same from the run that was kept, beside what the file holds for another model
    code, _, err = run("calibrate", kept, "--for", "another", "--out", out)
    assert code == 0, err
    both = read(out)
    assert [each.model for each in both] == ["another", "lab/profile=lab-3"]
    assert both[0].weights == both[1].weights
    code, _, err = run("calibrate", *lab, "--limit", 1, *model, "--out", tmp_path / "few.json")
    assert code == 2
    assert "at least 20" in err


def test_the_shipped_fits_are_about_the_built_in_model_and_say_how_true_they_are():
    for fit in shipped():
        assert fit.model == "local/qwen2.5-coder-1.5b"
        for told in fit.provenance["measured"].values():
            assert told["ECE"] <= told["by chance"] + 0.03
            assert told["Brier"] < told["constant"]
            assert told["AUROC"] > 0.5
