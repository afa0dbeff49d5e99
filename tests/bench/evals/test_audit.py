"""The audit: what it changes in each pass, and which methods it flags."""

import math
import random
from dataclasses import replace

import pytest
from support import audited

from longtake import registry
from longtake.algorithms import intervals
from longtake.config import AnswerSettings, BudgetSettings, Settings
from longtake.errors import RunError
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import Segment
from longtake_bench import report as reports
from longtake_bench.audit import FLAGS, PASSES, altered, audit_runs
from longtake_bench.results import QuestionResult
from longtake_bench.runner import Solver, answer_one, collect
from longtake_bench.runs import RunFolder

COUNT = 16
METHODS = ("Honest", "CitesAtRandom", "AnswersBlind", "ReadsTiming", "KnowsLetters")


def solver(method, **settings):
    settings = Settings(answers=AnswerSettings(verify=False), **settings)
    return Solver(method, Session(settings, ModelAssignment(("lab/acuity=1",))))


def in_this_process(asked_of, source, questions):
    return (answer_one(asked_of, source, asked) for asked in questions)


def ran(folder, method, **settings):
    benchmark = audited.colours(COUNT)
    collect(solver(method, **settings), benchmark, RunFolder(folder), ask_all=in_this_process)
    return reports.read(RunFolder(folder), benchmark), benchmark


def asking(log):
    def ask(report, changed, folder):
        def counted(*arguments):
            for row in in_this_process(*arguments):
                log.append(row.id)
                yield row

        return collect(solver(report.method), changed, folder, ask_all=counted, resume=True)

    return ask


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("audited")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry.methods, "_addresses", dict(registry.methods._addresses))
        listed = [ran(base / "blind", "blind")]
        yield listed + [ran(base / name, f"support.audited:{name}") for name in METHODS]


@pytest.fixture(scope="module")
def audits(runs):
    return {each.report.name: each for each in audit_runs(runs, asking([]))}


@pytest.mark.parametrize(
    ("method", "flags"),
    [
        ("Honest", []),
        ("CitesAtRandom", ["citations not needed"]),
        ("AnswersBlind", ["footage not needed", "citations not needed"]),
        (
            "ReadsTiming",
            ["footage not needed", "citations not needed", "knows more than the footage"],
        ),
        ("KnowsLetters", list(FLAGS)),
    ],
)
def test_cheats_are_flagged_and_an_honest_method_is_not(audits, method, flags):
    assert audits[method].flags == flags


def test_what_an_honest_method_owes_to_each_thing(audits):
    honest = audits["Honest"].plain()
    assert honest["accuracy"]["value"] == 1.0
    assert honest["evidence_f1"] is not None
    assert {name: each["stays"]["value"] for name, each in honest["passes"].items()} == {
        "shuffled": 1.0,
        "emptied": pytest.approx(honest["passes"]["emptied"]["accuracy"]["value"]),
        "uncited": pytest.approx(honest["passes"]["uncited"]["accuracy"]["value"]),
        "thinned": 1.0,
    }
    assert audits["blind"].plain()["blind_too"]["value"] == 1.0
    assert audits["blind"].flags == []


def test_a_pass_asks_only_what_has_no_result_yet(runs, audits):
    folder = runs[1][0].folder / "audit" / "uncited" / "results.jsonl"
    lines = folder.read_bytes().splitlines(keepends=True)
    folder.write_bytes(b"".join(lines[:-2]))
    asked = []
    again = {each.report.name: each for each in audit_runs(runs[:2], asking(asked))}
    assert len(asked) == 2
    assert again["Honest"].plain() == audits["Honest"].plain()


def test_a_pass_made_from_other_answers_is_rejected(runs, audits):
    report, benchmark = runs[1]
    rows = [replace(row, evidence=[Segment(0, 2)]) for row in report.rows]
    with pytest.raises(RunError, match="made from other answers; delete it"):
        audit_runs([runs[0], (replace(report, rows=rows), benchmark)], asking([]))


def test_runs_that_cannot_be_compared_are_rejected(runs, tmp_path):
    with pytest.raises(RunError, match="no run of blind on colours"):
        audit_runs(runs[1:2], asking([]))
    limited = ran(tmp_path / "limited", "support.audited:Honest", budget=BudgetSettings(calls=1))
    with pytest.raises(RunError, match=r"cannot be compared with .*budget was"):
        audit_runs([runs[0], limited], asking([]))
    report, benchmark = runs[1]
    short = replace(report, scored=replace(report.scored, items=report.scored.items[:3]))
    with pytest.raises(RunError, match=r"3 of 16 results with labels"):
        audit_runs([runs[0], (short, benchmark)], asking([]))


def test_every_option_gets_another_letter():
    benchmark = audited.colours(COUNT)
    asked_ids = [item.asked.id for item in benchmark.items]
    rows = {each: QuestionResult(each, "answered") for each in asked_ids}
    for before, after in zip(
        benchmark.items, altered("shuffled", benchmark, rows).items, strict=True
    ):
        one, other = before.asked.question.options, after.asked.question.options
        assert sorted(one) == sorted(other)
        assert not any(map(str.__eq__, one, other))
        assert one["ABCD".index(before.label)] == other["ABCD".index(after.label)]


def test_as_many_seconds_are_removed_elsewhere():
    benchmark = audited.colours(4)
    evidence = ([[3.0, 5.0], [4.0, 6.0]], [[7.0, 7.0]], [[0.0, 18.0]], [])
    rows = {}
    for item, pairs in zip(benchmark.items, evidence, strict=True):
        cited = [Segment(*pair) for pair in pairs]
        rows[item.asked.id] = QuestionResult(item.asked.id, "answered", choice="A", evidence=cited)
    cited, others = (altered(name, benchmark, rows).items for name in ("uncited", "thinned"))
    # what covers more than half of the video, or is not there, cannot be compared
    assert [item.asked.id for item in cited] == ["q0", "q1"] == [i.asked.id for i in others]
    assert [item.asked.removed for item in cited] == [(Segment(3, 6),), (Segment(6.5, 7.5),)]
    for one, other in zip(cited, others, strict=True):
        removed = sum(each.duration for each in other.asked.removed)
        assert removed == pytest.approx(sum(each.duration for each in one.asked.removed))
        assert not any(a.overlap(b) for a in one.asked.removed for b in other.asked.removed)
    emptied = altered("emptied", benchmark, rows).items
    assert {item.asked.removed for item in emptied} == {(Segment(0, math.inf),)}
    assert set(PASSES) == {"shuffled", "emptied", "uncited", "thinned"}


def test_stretches_elsewhere_are_disjoint_and_as_long():
    for seed in range(50):
        chance = random.Random(seed)
        taken = intervals.union(
            Segment(start, start + chance.uniform(0.1, 4.0))
            for start in (chance.uniform(0, 40) for _ in range(5))
        )
        total = sum(each.duration for each in taken)
        found = intervals.elsewhere(taken, 45.0, chance)
        assert sum(each.duration for each in intervals.union(found)) == pytest.approx(total)
        assert sum(a.overlap(b) for a in taken for b in found) == pytest.approx(0)
        assert min(found).start >= 0
        assert max(each.end for each in found) <= 45.0 + 1e-9
    with pytest.raises(ValueError, match="more than half"):
        intervals.elsewhere([Segment(0, 6)], 10.0, random.Random(0))
