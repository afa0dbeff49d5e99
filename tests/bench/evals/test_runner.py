import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import SECRET, Captions, masked

from longtake._util.process_pool import spawn
from longtake.config import AnswerSettings, PerceptionSettings, Settings
from longtake.config.entries import OpenAIEntry
from longtake.errors import LongtakeError, RunError
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import GIVEN, Answer, Question, Result, Usage
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion, LabelledQuestion
from longtake_bench.benchmarks.files import FilmSource
from longtake_bench.benchmarks.films import FilmFiles
from longtake_bench.benchmarks.lab import LabSource
from longtake_bench.runner import Solver, answer_one, collect, evaluate, file_name, specify
from longtake_bench.runs import RunFolder, differences

OPTIONS = ("one", "two")


def benchmark(count=6, videos=3, labels="AB", broken=False):
    """Questions about captioned videos; the video of the first one can be broken."""
    items = []
    for i in range(count):
        video = "broken" if broken and i == 0 else f"v{i % videos}"
        asked = BenchmarkQuestion(f"q{i}", video, Question(f"Question {i}?", OPTIONS))
        tags = {"type": "odd" if i % 2 else "even"}
        items.append(LabelledQuestion(asked, labels[i % len(labels)], tags))
    return Benchmark("toy", items, Captions())


def solver(method="processes:FirstOption", **fields):
    return Solver(method, Session().with_fields(method, fields))


@pytest.mark.worker_processes
def test_every_question_is_asked_once_and_scored(tmp_path):
    log = tmp_path / "log"
    scored = evaluate(solver(log=str(log)), benchmark(), RunFolder(tmp_path / "run"), workers=2)
    assert [row.choice for row in scored.rows] == ["A"] * 6
    assert scored.right == [True, False] * 3
    assert scored.accuracy.value == 0.5
    workers = {}
    for line in log.read_text().splitlines():
        pid, video = line.split()
        workers.setdefault(video, set()).add(pid)
    assert len(log.read_text().splitlines()) == 6
    assert all(len(pids) == 1 for pids in workers.values())
    assert str(os.getpid()) not in {pid for pids in workers.values() for pid in pids}


def test_films_are_opened_with_the_settings_of_the_run(tmp_path):
    settings = Settings(perception=PerceptionSettings(images="clip-vit-base-patch32"))
    asking = Solver("blind", Session(settings))
    seen = []

    def ask_all(_solver, source, _questions):
        seen.append(source.settings.perception.images)
        return iter(())

    for source in (FilmSource(tmp_path), FilmFiles({}), LabSource()):
        collect(asking, Benchmark("toy", [], source), ask_all=ask_all)
    assert seen == ["clip-vit-base-patch32"] * 3


def test_errors_are_results_and_count_as_wrong(tmp_path):
    folder = RunFolder(tmp_path / "run")
    scored = evaluate(solver(), benchmark(broken=True), folder)
    assert scored.rows[0].status == "error"
    assert "no captions" in scored.rows[0].error
    assert scored.right[0] is False
    assert len(scored.rows) == 6


def test_a_run_continues_where_it_stopped(tmp_path):
    folder, log = RunFolder(tmp_path / "run"), tmp_path / "log"
    whole = evaluate(solver(log=str(log)), benchmark(), folder)
    results = folder.path / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    # the fourth line is incomplete
    results.write_bytes(b"".join(lines[:3]) + lines[3][:10])
    log.unlink()
    again = evaluate(solver(log=str(log)), benchmark(), folder, resume=True)
    assert len(log.read_text().splitlines()) == 3
    assert [r.id for r in again.rows] == [r.id for r in whole.rows]
    ids = [json.loads(line)["id"] for line in results.read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 6


def test_only_errors_are_tried_again(tmp_path):
    folder, log = RunFolder(tmp_path / "run"), tmp_path / "log"
    evaluate(solver(log=str(log)), benchmark(broken=True), folder)
    log.unlink()
    evaluate(solver(log=str(log)), benchmark(broken=True), folder, resume=True, retry_errors=True)
    assert not log.exists()  # the broken video was tried, and is still broken
    assert sum(1 for _ in (folder.path / "results.jsonl").open()) == 7


def test_a_different_spec_is_rejected_and_the_difference_named(tmp_path):
    folder = RunFolder(tmp_path / "run")
    evaluate(solver(), benchmark(), folder)
    with pytest.raises(RunError, match=r"seed was 0, is 5"):
        evaluate(replace(solver(), session=Session(seed=5)), benchmark(), folder, resume=True)
    with pytest.raises(RunError, match="pass --resume"):
        evaluate(solver(), benchmark(), folder)
    assert differences({"a": {"b": 1}}, {"a": {"b": 2}, "c": 3}) == [
        "a.b was 1, is 2",
        "c was null, is 3",
    ]


def test_the_spec_has_everything_that_determines_the_results(tmp_path):
    folder, asked = RunFolder(tmp_path / "run"), benchmark(count=1)
    settings = Settings(models={"mine": OpenAIEntry(model="a")})
    first = Solver("blind", Session(settings, ModelAssignment(("lab/acuity=1",))))

    def changed(solver, **changes):
        return replace(solver, session=replace(solver.session, **changes))

    evaluate(first, asked, folder)
    words = tmp_path / "prompts" / "baselines"
    words.mkdir(parents=True)
    (words / "blind.md").write_text("$question\n\nGuess. $manner\n")
    with pytest.raises(RunError, match=r"prompts\.baselines/blind was"):
        evaluate(changed(first, prompts=words.parent), asked, folder, resume=True)
    coarse = replace(settings, index=replace(settings.index, fps=0.2))
    with pytest.raises(RunError, match=r"index was .*fps=1.0.*fps=0.2"):
        evaluate(changed(first, settings=coarse), asked, folder, resume=True)
    named = changed(first, assignment=ModelAssignment(("mine",)))
    spec = specify(named, asked)
    slower = changed(named, settings=Settings(models={"mine": OpenAIEntry(model="a", timeout=9.0)}))
    assert differences(spec, specify(slower, asked)) == []
    other = changed(
        named, settings=Settings(models={"mine": OpenAIEntry(model="b", temperature=1.5)})
    )
    assert differences(spec, specify(other, asked)) == [
        'entries.mine.model was "a", is "b"',
        "entries.mine.temperature was 0.0, is 1.5",
    ]


def test_a_fault_in_a_method_is_a_result_with_what_it_used(tmp_path):
    unchecked = Settings(answers=AnswerSettings(verify=False))
    session = Session(unchecked, ModelAssignment(("lab/acuity=1",)))
    faulty = Solver("processes:Faulty", session)
    scored = evaluate(faulty, benchmark(), RunFolder(tmp_path / "run"))
    assert [row.status for row in scored.rows] == ["answered", "error", "answered"] * 2
    assert scored.rows[1].error == "ZeroDivisionError: division by zero"
    assert scored.rows[1].usage.calls == 1
    assert scored.mean("calls") == 1.0


def test_a_full_disk_ends_the_run_and_is_no_result(tmp_path):
    folder = RunFolder(tmp_path / "run")
    session = Session(assignment=ModelAssignment(("lab/acuity=1",)))
    faulty = Solver("processes:Faulty", session.with_fields("processes:Faulty", {"full": "v2"}))
    with pytest.raises(LongtakeError, match="No space left"):
        evaluate(faulty, benchmark(), folder)
    assert {row.video for row in folder.results().values()} == {"v0", "v1"}


def test_one_process_at_a_time_works_on_a_run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.working(), pytest.raises(RunError, match="another process"):
        evaluate(solver(), benchmark(), RunFolder(folder.path))
    evaluate(solver(), benchmark(), folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="this is a file"):
        evaluate(solver(), benchmark(), RunFolder(tmp_path / "file"))


def test_results_without_a_spec_and_damaged_ones_are_rejected_by_name(tmp_path):
    folder = RunFolder(tmp_path / "run")
    evaluate(solver(), benchmark(), folder)
    results, spec = folder.path / "results.jsonl", folder.path / "spec.json"
    kept = spec.read_text()
    spec.unlink()
    with pytest.raises(RunError, match="of unknown origin"):
        evaluate(solver(), benchmark(), folder)
    spec.write_text("{}")
    with pytest.raises(RunError, match=r"spec\.json: is not the spec"):
        evaluate(solver(), benchmark(), folder, resume=True)
    spec.write_text(kept)
    for damage in (b"\n", b"garbage\n", b"[1]\n", b'{"id": "q9"}\n'):
        results.write_bytes(results.read_bytes().splitlines(keepends=True)[0] + damage)
        with pytest.raises(RunError, match=r"results\.jsonl:2: is not a result"):
            evaluate(solver(), benchmark(), folder, resume=True)


def test_workers_ignore_ctrl_c():
    here, process = spawn(masked)
    assert here.recv() is True
    process.join()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


@pytest.mark.worker_processes
def test_no_label_reaches_a_solver(tmp_path):
    items = benchmark(labels=(SECRET,))
    folder = RunFolder(tmp_path / "run")
    scored = evaluate(solver("processes:Snoop", folder=str(folder.path)), items, folder)
    assert {row.choice for row in scored.rows} == {"A"}, scored.rows[0].text


@pytest.mark.campaign
@pytest.mark.worker_processes
def test_the_snoop_finds_what_is_there(tmp_path):
    """The test above can fail: a label in the run folder is found."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    (folder.path / "leak.txt").write_text(SECRET)
    scored = evaluate(
        solver("processes:Snoop", folder=str(folder.path)), benchmark(count=1), folder
    )
    assert scored.rows[0].choice == "B"


def lines(folder):
    file = folder / "results.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.campaign
def test_killed_and_resumed_equals_unbroken(tmp_path):
    """A run that is killed at a random moment gives the same results, one per question.

    It takes long because each start is three processes; ``make chaos`` kills for an hour.
    """
    driver = tmp_path / "test_runner_driver.py"
    driver.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from bench.evals.test_runner import RunFolder, benchmark, evaluate, solver\n"
        "if __name__ == '__main__':\n"
        "    folder = RunFolder(Path(sys.argv[1]))\n"
        "    evaluate(solver(), benchmark(60, 20, 'A'), folder, workers=2, resume=True)\n"
    )
    folder, unbroken = tmp_path / "run", tmp_path / "unbroken"
    # the package itself may be on the path and not installed
    paths = [str(tmp_path), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    evaluate(solver(), benchmark(60, 20, "A"), RunFolder(unbroken))
    moments = random.Random()
    slowly = {**environment, "TEST_PAUSE": "0.02"}
    command = [sys.executable, str(driver), str(folder)]
    process = subprocess.Popen(command, env=slowly)
    enough = moments.randint(1, 9)
    while process.poll() is None and lines(folder) < enough:
        time.sleep(0.005)
    time.sleep(moments.uniform(0, 0.01))
    assert process.poll() is None  # still at work
    process.kill()
    process.wait()
    subprocess.run(command, env=environment, check=True, timeout=120)

    def rows(run):
        lines = (run / "results.jsonl").read_text().splitlines()
        return sorted(
            (row["id"], row["status"], row["choice"], row["text"], row["usage"]["calls"])
            for row in map(json.loads, lines)
        )

    assert rows(folder) == rows(unbroken)


def test_samples_by_video_have_one_question_each_and_contain_smaller_ones():
    whole = benchmark(count=40, videos=10)
    few, more, every = (whole.draw(videos=count, seed=3) for count in (4, 7, 99))
    assert [len(each.items) for each in (few, more, every)] == [4, 7, 10]
    assert len({item.asked.video for item in every.items}) == 10
    ids = [[item.asked.id for item in each.items] for each in (few, more, every)]
    assert set(ids[0]) < set(ids[1]) < set(ids[2])
    assert ids[2] == [item.asked.id for item in whole.items if item.asked.id in ids[2]]
    assert ids[0] != [item.asked.id for item in whole.draw(videos=4, seed=4).items]
    assert few.settings["videos"] == 4


TOPIC = Question("What is this film mostly about?", ("kitchen", "garden", "office", "travel"))


@given(st.text(st.characters(), max_size=300))
def test_a_file_name_is_always_valid(identity):
    name = file_name(identity)
    assert name.isascii()
    assert 0 < len(name) < 140
    assert not name.startswith(".")
    assert "/" not in name
    assert "\0" not in name


def test_a_result_tells_frames_and_rounds():
    session = Session(assignment=ModelAssignment(("lab/acuity=0.8",)))
    solver = Solver("videoagent", session)
    row = answer_one(solver, LabSource(captions=True), BenchmarkQuestion("q", "3:5", TOPIC))
    assert row.usage.frames == 0  # captions are read, not shown
    assert row.seen >= 5
    assert 1 <= row.rounds <= 3


def test_traces_of_similar_identities_do_not_overwrite_each_other(tmp_path):
    solver = Solver("processes:FirstOption", traces=tmp_path)
    question = Question("Which?", ("one", "two"))
    for identity in ("a/b", "a_b"):
        row = answer_one(solver, Captions(), BenchmarkQuestion(identity, "v0", question))
        assert row.status in GIVEN
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert len(names) == 2
    assert names[1] == "a_b.jsonl"
    assert names[0].startswith("a_b-")


def test_an_answer_whose_check_failed_is_an_error_that_is_asked_again():
    """Another answer may stand once it was checked, so it must not be kept as a result."""

    class Session:
        def __init__(self, why):
            self.why = why

        def under_way(self, *sinks):
            return nullcontext()

        def answer(self, method, footage, question):
            return Result(Answer("A", unchecked=self.why), Usage(calls=1), method)

    asked = BenchmarkQuestion("q", "v", Question("Which?", ("one", "two")))
    source = SimpleNamespace(footage=lambda video: None)
    for why, status in (("model", "error"), ("budget", "answered"), ("", "answered")):
        row = answer_one(Solver("blind", Session(why)), source, asked)
        assert row.status == status
        assert row.usage.calls == 1
