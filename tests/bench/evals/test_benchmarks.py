"""Loaders on small files in the formats that the benchmarks' authors publish."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from films import pictures, x264
from support.annotations import EGOSCHEMA, LONGVIDEOBENCH, LVBENCH, MLVU, NEXTQA, VIDEOMME

from longtake import cli
from longtake.errors import ConfigError
from longtake.types import Usage
from longtake.video.clip import write_film
from longtake_bench.benchmarks import about, benchmarks, load
from longtake_bench.benchmarks.long_videos import DEV
from longtake_bench.report import markdown, read
from longtake_bench.results import QuestionResult
from longtake_bench.runs import RunFolder
from longtake_bench.scoring import by_tag


def items(name, folder, **options):
    """A benchmark, and its questions as tuples."""
    benchmark = load(name, folder, options)
    rows = []
    for item in benchmark.items:
        asked, question = item.asked, item.asked.question
        tags = dict(item.tags)
        rows.append((asked.id, asked.video, question.text, question.options, item.label, tags))
    return benchmark, rows


FIVE = tuple(f"o{i}" for i in range(5))


def test_egoschema_subset_and_full(tmp_path):
    rows = [{"q_uid": "u1", **EGOSCHEMA}, {"q_uid": "u2", **EGOSCHEMA}]
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    (tmp_path / "subset_answers.json").write_text(json.dumps({"u2": 3}))
    _, subset = items("egoschema", tmp_path)
    assert subset == [("u2", "u2", "Why?", FIVE, "D", {})]
    benchmark, full = items("egoschema", tmp_path, split="full")
    # its authors score the full set, so known labels are left out as well
    assert [row[4] for row in full] == [None, None]
    assert set(benchmark.files) == {"questions.json", "subset_answers.json"}
    assert benchmark.options == {"split": "full"}


def test_egoschema_captions(tmp_path):
    (tmp_path / "subset_anno.json").write_text(json.dumps({"u1": {**EGOSCHEMA, "truth": 1}}))
    (tmp_path / "lavila_subset.json").write_text(json.dumps({"u1": ["#C C walks", "#C C sits"]}))
    benchmark, rows = items("egoschema-captions", tmp_path)
    assert rows == [("u1", "u1", "Why?", FIVE, "B", {})]
    assert benchmark.source.footage("u1").captions([1.0]) == ["#C C sits"]
    with pytest.raises(ConfigError, match="no captions of u9"):
        benchmark.source.footage("u9")
    # all clips have captions of their own
    (tmp_path / "questions.json").write_text(json.dumps([{"q_uid": "u9", **EGOSCHEMA}]))
    (tmp_path / "subset_answers.json").write_text("{}")
    (tmp_path / "lavila_fullset.json").write_text(json.dumps({"u9": ["#C C eats"]}))
    benchmark, _ = items("egoschema-captions", tmp_path, split="full")
    assert benchmark.source.footage("u9").captions([0.0]) == ["#C C eats"]


def test_nextqa_kinds_and_the_hard_subset(tmp_path):
    (tmp_path / "val.csv").write_text(
        NEXTQA + '7,9,1,1,"why, then",2,6,CW,a,b,c,d,e\n7,9,1,1,when,0,8,TN,a,b,c,d,e\n'
    )
    (tmp_path / "captions_1fps.json").write_text(json.dumps({"7": {"10": "later", "2": "first"}}))
    benchmark, rows = items("nextqa-captions", tmp_path)
    tags = {"type": "causal", "subtype": "CW"}
    assert rows[0] == ("7_6", "7", "why, then", tuple("abcde"), "C", tags)
    # ordered by number, not as strings
    assert benchmark.source.footage("7").captions([0.0, 1.0]) == ["first", "later"]
    (tmp_path / "atp_hard.txt").write_text("7_8\n")
    _, rows = items("nextqa-captions", tmp_path)
    assert [row[5]["atp_hard"] for row in rows] == ["no", "yes"]


def test_videomme_durations_and_subtitles(tmp_path):
    short = {**VIDEOMME, "question_id": "2-1", "duration": "short"}
    (tmp_path / "videomme.json").write_text(json.dumps([VIDEOMME, short]))
    benchmark, rows = items("videomme", tmp_path, duration="long", subtitles="yes")
    tags = {"duration": "long", "type": "T", "domain": "D"}
    assert rows == [("1-1", "x", "Q?", ("Pink.", "Blue.", "Red.", "Grey."), "B", tags)]
    assert benchmark.source.subtitles == tmp_path / "subtitle"
    assert load("videomme", tmp_path, {}).source.subtitles is None


def test_videomme_as_its_authors_publish_it(tmp_path):
    (tmp_path / "videomme").mkdir()
    (tmp_path / "data").mkdir()
    fixture = Path(__file__).parents[2] / "fixtures" / "videomme.parquet"
    published = tmp_path / "videomme" / "test-00000-of-00001.parquet"
    published.write_bytes(fixture.read_bytes())
    (tmp_path / "data" / "x.mp4").write_bytes(b"film")
    benchmark, rows = items("videomme", tmp_path, duration="long")
    tags = {"duration": "long", "type": "Counting Problem", "domain": "Knowledge"}
    assert rows == [("001-1", "x", "Q?", ("Pink.", "Blue.", "Red.", "Grey."), "B", tags)]
    assert benchmark.source.path("x") == tmp_path / "data" / "x.mp4"
    published.write_bytes(b"PAR1 damaged")
    with pytest.raises(ConfigError, match="test-00000-of-00001"):
        load("videomme", tmp_path, {})


def test_lvbench_as_its_authors_download_it(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "video_info.meta.jsonl").write_text(
        json.dumps(
            {"key": "Cm73ma6Ibcs", "qa": [LVBENCH, {**LVBENCH, "uid": 8, "question_type": []}]}
        )
    )
    videos = tmp_path / "scripts" / "videos" / "00000"
    videos.mkdir(parents=True)
    (videos / "00000003.mp4").write_bytes(b"film")
    address = "https://www.youtube.com/watch?v=Cm73ma6Ibcs"
    (videos / "00000003.json").write_text(json.dumps({"url": address, "status": "success"}))
    benchmark, rows = items("lvbench", tmp_path)
    assert rows[0][:5] == ("7", "Cm73ma6Ibcs", "Who?", ("Ada", "Bo"), "B")
    assert benchmark.source.path("Cm73ma6Ibcs") == videos / "00000003.mp4"
    # a question counts for each of its types, as its authors count
    rates = by_tag(benchmark.items, [True, False], "type")
    counted = {kind: (rate.value, rate.count) for kind, rate in rates.items()}
    assert counted == {"reasoning": (1, 1), "entity recognition": (1, 1), "other": (0, 1)}


def test_mlvu_as_its_authors_publish_it(tmp_path):
    # as in the real files: one question is empty, some options are equal, some answers are none
    empty = {**MLVU, "question": "", "candidates": ["", ""], "answer": ""}
    real = [empty, MLVU, {**MLVU, "candidates": ["y", "x", "y"]}, {**MLVU, "answer": "z"}]
    (tmp_path / "json").mkdir()
    for name in DEV:
        kept = real if name == "3_ego" else []
        (tmp_path / "json" / f"{name}.json").write_text(json.dumps(kept))
    film = tmp_path / "video" / "3_ego" / "ego_35.mp4"
    film.parent.mkdir(parents=True)
    film.write_bytes(b"film")
    benchmark, rows = items("mlvu", tmp_path)
    # the authors count the last of equal options as right, and no choice where none is the answer
    assert [(each[0], each[4]) for each in rows] == [("ego_1", "B"), ("ego_2", "C"), ("ego_3", "-")]
    assert benchmark.source.path("ego_35.mp4") == film


def test_longvideobench_subtitles_of_a_part_of_a_longer_video(tmp_path):
    (tmp_path / "lvb_val.json").write_text(json.dumps([LONGVIDEOBENCH]))
    (tmp_path / "videos").mkdir()
    (tmp_path / "subtitles").mkdir()
    write_film(tmp_path / "videos" / "v.mp4", pictures(20), x264())
    lines = [
        {"start": "00:01:30.000", "end": "00:01:35.000", "line": "before it begins"},
        {"start": "00:01:41.000", "end": "00:01:42.000", "line": "inside"},
    ]
    (tmp_path / "subtitles" / "v_en.json").write_text(json.dumps(lines))
    benchmark, rows = items("longvideobench", tmp_path)
    tags = {"duration": "60", "type": "S2A", "level": "L1"}
    assert rows == [("v_0", "v.mp4", "Q?", ("a", "b", "c"), "C", tags)]
    (line,) = benchmark.source.footage("v.mp4").speech()
    assert (line.text, line.segment.start) == ("inside", 1.0)
    # a file beside the film is no part of the benchmark
    (tmp_path / "videos" / "v.srt").write_text("1\n00:00:00,000 --> 00:00:02,000\nleaked\n")
    film = load("longvideobench", tmp_path, {"subtitles": "no"}).source.footage("v.mp4")
    assert (film.speech(), film.known_lines()[0]) == ([], [])


def test_mlvu_keeps_dev_and_test_apart(tmp_path):
    for name in DEV:
        (tmp_path / f"{name}.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"test_multi_choice_tasks\.json"):
        load("mlvu", tmp_path, {"split": "test"})
    with pytest.raises(ConfigError, match="dev or test"):
        load("mlvu", tmp_path, {"split": "both"})


@pytest.mark.parametrize("name", [name for name in benchmarks if not about(name).made])
def test_missing_files_are_named(name, tmp_path):
    with pytest.raises(ConfigError, match=str(tmp_path)):
        load(name, tmp_path, {})
    with pytest.raises(ConfigError, match="--data"):
        load(name, None, {})
    with pytest.raises(ConfigError, match="is not a folder"):
        load(name, tmp_path / "absent", {})
    with pytest.raises(ConfigError, match="colour"):
        load(name, tmp_path, {"colour": "red"})


def test_the_lab_needs_no_files():
    benchmark, rows = items("lab", None, seeds="3-4", minutes="5", questions="4")
    assert {row[1] for row in rows} == {"3:5", "4:5"}
    assert "captions" not in benchmark.source.footage("3:5").has
    for bad in ({"seeds": "x"}, {"seeds": "5-3"}, {"minutes": "0"}, {"questions": "many"}):
        with pytest.raises(ConfigError, match="lab"):
            load("lab", None, bad)


def test_lab_captions_say_everything_that_is_visible():
    benchmark, _ = items("lab-captions", None, seeds="3", minutes="5", questions="4")
    footage = benchmark.source.footage("3:5")
    (caption,) = footage.captions([0.0])
    assert "This is the " in caption
    assert footage.embeddings().shape[0] == 300


AUTHORS = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "authors_scores.json").read_text(encoding="utf-8")
)


def scored(name, folder, answers):
    """The report of a run with these answers; an empty one is an abstention."""
    benchmark = load(name, folder, {})
    run = RunFolder(folder / "run")
    asked = {"name": name, "files": dict(benchmark.files), "options": {}}
    spec = {"benchmark": asked, "method": {"name": "m"}, "models": {}, "seed": 0}
    run.open({**spec, "questions": len(answers)}, resume=False)
    for item in benchmark.items:
        choice = answers[item.asked.id] or None
        status = "answered" if choice else "abstained"
        row = {"id": item.asked.id, "video": item.asked.video, "status": status, "choice": choice}
        run.append(QuestionResult.of_row({**row, "text": "", "usage": asdict(Usage())}))
    return read(run, benchmark)


def test_lvbench_scores_and_answers_are_those_of_its_authors(tmp_path):
    given = AUTHORS["lvbench"]
    lines = "".join(json.dumps(video) + "\n" for video in given["videos"])
    (tmp_path / "video_info.meta.jsonl").write_text(lines)
    report = scored("lvbench", tmp_path, given["answers"])
    ours = {kind: rate.value for kind, rate in report.tags()["type"].items()}
    ours["acc"] = report.scored.accuracy.value
    assert ours == pytest.approx(given["authors"])
    # what their script was given
    file = tmp_path / "answers.json"
    line = ["report", str(report.folder), "--data", str(tmp_path), "--submission", str(file)]
    for _ in range(2):
        assert cli.run(line) == 0
        assert json.loads(file.read_text()) == given["answers"]
    # a file of something else is kept
    file.write_text('{"id": "0"}')
    assert cli.run(line) == 2
    assert file.read_text() == '{"id": "0"}'


def test_mlvu_scores_are_those_of_its_authors(tmp_path):
    given = AUTHORS["mlvu"]
    for name, rows in given["files"].items():
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    report = scored("mlvu", tmp_path, given["answers"])
    theirs = dict(given["authors"])
    mean = theirs.pop("Avg")
    assert f"| mean of 7 groups | {mean:.1f}% |" in markdown([report])
    ours = {kind: 100 * rate.value for kind, rate in report.tags()["type"].items()}
    assert ours == pytest.approx(theirs)


def test_mlvu_answers_are_submitted_as_its_authors_expect(tmp_path):
    row = {"video": "v.mp4", "question": "Q?", "candidates": ["x", "y"], "question_type": "ego"}
    rows = [{**row, "question_id": f"AR_{number}"} for number in range(2)]
    (tmp_path / "test_multi_choice_tasks.json").write_text(json.dumps(rows))
    questions = load("mlvu", tmp_path, {"split": "test"}).items
    text = about("mlvu").submission(list(zip(questions, ("B", None), strict=True)))
    assert json.loads(text) == [
        {"question_id": "AR_0", "question_type": "ego", "option": "B"},
        {"question_id": "AR_1", "question_type": "ego", "option": ""},
    ]


def test_videomme_scores_are_those_of_its_authors_but_for_questions_without_an_answer(tmp_path):
    given = AUTHORS["videomme"]
    (tmp_path / "videomme.json").write_text(json.dumps(given["rows"]))
    report = scored("videomme", tmp_path, given["answers"])
    ours = {name: 100 * rate.value for name, rate in report.tags()["duration"].items()}
    assert ours == pytest.approx({"short": 66.7, "medium": 66.7, "long": 50.0}, abs=0.05)
    # theirs leaves the one without an answer out: 3 of 5 instead of 3 of 6
    assert given["authors"] == {"short": 66.7, "medium": 66.7, "long": 60.0, "overall": 64.7}
    assert 100 * sum(report.scored.right) / report.given == pytest.approx(64.7, abs=0.05)


MODULE = """
from longtake_bench.benchmarks import BenchmarkInfo
from longtake_bench.benchmarks import BenchmarkQuestion, Benchmark, LabelledQuestion
from longtake.types import Question
from processes import Captions


class Videos(Captions):
    '''Defined here, so that a worker has to import this module.'''


def load(folder, options):
    question = Question("What is in the file?", ("red", "green"))
    label = (folder / "label.txt").read_text().strip()
    item = LabelledQuestion(BenchmarkQuestion("q0", "v0", question), label)
    return Benchmark("whatever", [item], Videos())


ABOUT = BenchmarkInfo(
    "A benchmark of one question",
    "nothing: the test writes it",
    "label.txt",
    "none",
    load=load,
    options={"split": "all"},
)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with one benchmark."""
    site = tmp_path / "site"
    metadata = site / "onequestion-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "onequestion.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: onequestion\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[longtake.benchmarks]\none-question = onequestion:ABOUT\n"
    )
    monkeypatch.syspath_prepend(site)
    # the registry has read its plug-ins already if another test used it
    monkeypatch.setattr(benchmarks, "_plugins_read", False)
    monkeypatch.setattr(benchmarks, "_targets", dict(benchmarks._targets))
    yield
    sys.modules.pop("onequestion", None)


@pytest.mark.usefixtures("package")
def test_a_benchmark_of_another_package_is_listed_run_and_reported(run, tmp_path):
    code, out, err = run("eval", "--list", "--json")
    assert code == 0, err
    listed = {row["name"]: row for row in json.loads(out)["benchmarks"]}
    assert listed["one-question"]["title"] == "A benchmark of one question"
    assert listed["one-question"]["options"] == {"split": "all"}
    _, out, _ = run("eval", "--list")
    assert "one-question: A benchmark of one question\n" in out

    data = tmp_path / "data"
    data.mkdir()
    (data / "label.txt").write_text("A\n")
    folder = tmp_path / "run"
    method = ("--method", "processes:FirstOption")
    code, out, err = run("eval", "one-question", "--data", data, *method, "--out", folder)
    assert code == 0, err
    assert "| run | one-question |" in out
    assert "100.0%" in out
    # the report loads the benchmark by the name it was run under
    code, out, err = run("report", folder, "--data", data)
    assert code == 0, err
    assert "| run | one-question |" in out


@pytest.mark.usefixtures("package")
def test_names_must_be_registered_and_lead_to_a_benchmark():
    benchmarks.add("wrong", "onequestion:load")
    with pytest.raises(ConfigError, match="wrong is not a benchmark: expected a BenchmarkInfo"):
        about("wrong")
    with pytest.raises(ConfigError, match="did you mean 'videomme'"):
        about("videome")
    with pytest.raises(ConfigError, match="unknown benchmark 'onequestion:ABOUT'"):
        about("onequestion:ABOUT")


def test_the_spec_of_a_run_does_not_decide_what_is_imported(run, tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    spec = {
        "benchmark": {"name": "stranger:ABOUT", "files": {}, "options": {}},
        "method": {"name": "blind"},
        "models": {},
        "questions": 1,
        "seed": 0,
    }
    RunFolder(tmp_path / "run").open(spec, resume=False)
    code, _, err = run("report", tmp_path / "run", "--data", tmp_path)
    assert code == 2
    assert "unknown benchmark 'stranger:ABOUT'" in err
