"""Runs as a page, as tables and as a submission."""

import json
import re
import sys
from html.parser import HTMLParser

import pytest

from longtake.errors import MissingExtra, RunError
from longtake.types import Question, Usage
from longtake_bench import report
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion, LabelledQuestion
from longtake_bench.benchmarks.short_clips import egoschema_submission
from longtake_bench.presets import Published
from longtake_bench.report import html_report, markdown
from longtake_bench.results import QuestionResult
from longtake_bench.runs import RunFolder, list_errors

USAGE = {"frames": 4, "calls": 2, "tokens_in": 90, "tokens_out": 10, "seconds": 1.5, "cost": 0.01}
HOSTILE = "<script>alert(1)</script>\x1b[31m red | \"quoted\" 'too'"


class Seen(HTMLParser):
    """What a browser would see."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.metas, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        if tag == "a":
            self.links.append(values["href"])
        if tag == "meta":
            self.metas.append(values)
        assert not [name for name in values if name.startswith("on")]


def made(folder, choices, *, labels="ABAB", text="Why?", benchmark="toy", **spec):
    """The report of a run with these choices; the label ``-`` stands for none."""
    items = []
    for i, label in enumerate(labels):
        asked = BenchmarkQuestion(f"q{i}", f"v{i // 2}", Question(text, ("one", "two")))
        if label == "-":
            items.append(LabelledQuestion(asked, None))
        else:
            items.append(LabelledQuestion(asked, label, {"type": text[:40]}))
    run = RunFolder(folder)
    default_spec = {
        "method": {"name": "m"},
        "models": {"llm": "m/1"},
        "questions": len(items),
        "seed": 0,
        "benchmark": {"name": benchmark, "files": {}},
    }
    run.open({**default_spec, **spec}, resume=False)
    for item, choice in zip(items, choices, strict=False):
        row = {
            "id": item.asked.id,
            "video": item.asked.video,
            "status": "answered" if choice else "abstained",
            "choice": choice,
            "text": text,
            "confidence": 0.5,
            "evidence": [[3.0, 4.0]],
            "usage": USAGE,
            "notes": {text: 2},
        }
        run.append(QuestionResult.of_row(row))
    return report.read(run, Benchmark(benchmark, items, None))


def test_the_page_escapes_what_films_and_models_say(tmp_path):
    reported = made(tmp_path / "evil", ["A", "B", "A", None], text=HOSTILE, models={"llm": HOSTILE})
    text = html_report(
        [reported], beside=tmp_path, published={HOSTILE: [Published(50.0, HOSTILE, HOSTILE)]}
    )
    seen = Seen(text)
    assert "script" not in seen.tags
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert "\\x1b[31m" in text
    policies = [m for m in seen.metas if m.get("http-equiv") == "Content-Security-Policy"]
    policy = policies[0]["content"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)


def test_the_page_links_to_existing_traces(tmp_path):
    reported = made(tmp_path / "runs" / "one", "AB")
    (reported.folder / "traces").mkdir()
    (reported.folder / "traces" / "q1.jsonl").write_text("{}\n")
    assert Seen(html_report([reported], beside=tmp_path, published={})).links == [
        "runs/one/traces/q1.jsonl"
    ]


def test_the_page_sets_runs_side_by_side(tmp_path):
    first, second = made(tmp_path / "first", "ABAB"), made(tmp_path / "second", "BBBB")
    published = {"p": [Published(60.2, "Theirs", "Table 2")]}
    text = html_report([first, second], beside=tmp_path, published=published)
    assert "100.0%" in text
    assert "first − second" in text
    assert "+50.0%" in text
    assert text.index("Published, not measured here") < text.index("60.2 %")
    assert (
        text.count("data:image/svg+xml") >= 4
    )  # against frames, tokens, money; by tag; calibration
    tables = markdown([first, second], published)
    assert "| published, not measured here |" in tables


def test_runs_are_compared_with_the_first_on_their_benchmark(tmp_path):
    runs = []
    for benchmark in ("toy", "other"):
        for number, choices in enumerate(("ABAB", "BBBB")):
            folder = tmp_path / f"{benchmark}-{number}"
            runs.append(made(folder, choices, benchmark=benchmark))
    names = [names for names, _ in report.differences(runs)]
    assert names == ["toy-0 − toy-1", "other-0 − other-1"]
    for text in (html_report(runs, beside=tmp_path, published={}), markdown(runs)):
        assert all(name in text for name in names)
        assert "toy-0 − other-0" not in text
        assert "m/1" in text


def test_models_are_named_once_and_a_team_by_its_members(tmp_path):
    models = {"a": "m/1", "b": "m/2", "c": "m/2"}
    team = [{"name": name, "model": model} for name, model in models.items()]
    reported = made(tmp_path / "team", "AB", models={"llm": "m/0", "team": team})
    assert reported.models == "m/0, m/1, m/2"
    assert "| m/0, m/1, m/2 |" in markdown([reported])


def test_runs_without_labels_are_shown_and_can_be_submitted(tmp_path):
    reported = made(tmp_path / "full", ["B", "A", None, "B"], labels="----")
    assert "no public labels" in html_report([reported], beside=tmp_path, published={})
    assert "no public labels" in markdown([reported])
    assert report.plain([reported])[0]["accuracy"] is None
    submitted = egoschema_submission(report.answers(reported))
    assert submitted == "q_uid,answer\nq0,1\nq1,0\nq2,-1\nq3,1\n"
    json.dumps(report.plain([reported]))


def test_an_unfinished_run_cannot_be_submitted(tmp_path):
    with pytest.raises(RunError, match="2 of 4"):
        report.answers(made(tmp_path / "half", "AB"))


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"longtake\[report\]"):
        html_report([made(tmp_path / "run", "AB")], beside=tmp_path, published={})


def test_errors_are_listed_by_frequency_and_the_rest_counted(tmp_path):
    reported = made(tmp_path / "run", "")
    run = RunFolder(reported.folder)
    for number, error in enumerate("aabcdefg"):
        run.append(QuestionResult(f"q{number}", "error", error=error, usage=Usage(**USAGE)))
    items = [
        LabelledQuestion(BenchmarkQuestion(f"q{i}", "v", Question("Why?", ("one", "two"))), "A")
        for i in range(8)
    ]
    failed = report.read(run, Benchmark("toy", items, None))
    assert failed.ended == "8 error"
    assert failed.errors == {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}
    assert failed.mean("calls") == 0.0
    assert list_errors(failed.errors, 2) == ["2 × a", "1 × b", "5 × something else"]
    lines = [line for line in markdown([failed]).splitlines() if line.startswith("- ")]
    assert lines == ["- 2 × a", *(f"- 1 × {name}" for name in "bcde"), "- 2 × something else"]
