"""Choosing a team without labels."""

import json

import pytest
from processes import Captions

from longtake import registry
from longtake.agents.team import Member, read_team, write_team
from longtake.errors import RunError
from longtake.runner.session import Session
from longtake.types import Question
from longtake_bench.benchmarks import Benchmark, BenchmarkQuestion, LabelledQuestion
from longtake_bench.runs import RunFolder
from longtake_bench.selection import select

OPTIONS = ("one", "two", "three")
LIBRARY = [
    Member(name=name, model=f"lab/{text}")
    for name, text in {
        "dim": "acuity=0.1,seed=1",
        "ann": "acuity=0.9,seed=2",
        "bob": "acuity=0.9,seed=3",
        "cid": "acuity=0.9,seed=4",
    }.items()
]


def unlabelled(count=4, question="Question {}?", options=OPTIONS):
    items = [
        LabelledQuestion(
            BenchmarkQuestion(f"q{i}", f"v{i % 2}", Question(question.format(i), options)), None
        )
        for i in range(count)
    ]
    return Benchmark("toy", items, Captions())


@pytest.fixture
def library_file(tmp_path):
    write_team(tmp_path / "library.toml", LIBRARY)
    return tmp_path / "library.toml"


def test_a_team_file_reads_as_it_was_written(tmp_path):
    members = [
        Member(
            name='a "quoted"\nname',
            model="http://127.0.0.1:1/v1#x\\y",
            temperature=0.5,
            channels=("speech", "tags"),
        ),
        Member(name="ü", model="lab/acuity=1", max_new_tokens=7),
    ]
    write_team(tmp_path / "team.toml", members, ["one note\nin two lines", "[[agent]]"])
    assert list(read_team(tmp_path / "team.toml")) == members


def test_no_labels_are_needed(tmp_path):
    selection = select(LIBRARY, unlabelled(), Session(), tmp_path / "runs")
    assert len(selection.ranking) == 4
    assert all(ranked.answered == 4 for ranked in selection.ranking)
    assert selection.team(2) == [ranked.member for ranked in selection.ranking[:2]]
    assert selection.margin(4) is None
    last, outside = selection.ranking[1:3]
    gap = last.agreement.value - outside.agreement.value
    assert selection.margin(2).value == pytest.approx(gap)


def test_a_selection_continues_where_it_stopped(tmp_path):
    asked = []

    def note(name, row):
        asked.append(name)

    first = select(LIBRARY[:2], unlabelled(), Session(), tmp_path, progress=note)
    assert asked == ["dim"] * 4 + ["ann"] * 4
    results = tmp_path / "ann" / "results.jsonl"
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:3]))
    asked.clear()
    again = select(LIBRARY[:2], unlabelled(), Session(), tmp_path, progress=note)
    assert asked == ["ann"]
    assert [r.agrees for r in again.ranking] == [r.agrees for r in first.ranking]
    with pytest.raises(RunError, match="seed was 0, is 3"):
        select(LIBRARY[:2], unlabelled(), Session(seed=3), tmp_path)


def test_each_agent_is_asked_alone_through_perception_and_action(tmp_path):
    select(LIBRARY[:1], unlabelled(2), Session(), tmp_path)
    fields = RunFolder(tmp_path / "dim").spec()["method"]["fields"]
    expected = {"team_size": 1, "max_rounds": 1, "reasons": False, "chunks": 6}
    assert {name: fields[name] for name in expected} == expected
    row = RunFolder(tmp_path / "dim").results()["q0"]
    assert row.usage.calls <= 3, "gate, key information, answer"


def test_open_answers_are_compared_by_meaning(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")
    library = [Member(name=name, model="lab/acuity=1") for name in ("ann", "bob")]
    said = unlabelled(2, "What does the narrator say {}?", ())
    selection = select(library, said, Session(), tmp_path)
    assert [ranked.agreement.value for ranked in selection.ranking] == [1.0, 1.0]


def test_if_no_agent_can_answer_the_error_is_shown(tmp_path):
    items = [LabelledQuestion(BenchmarkQuestion("q0", "broken", Question("Which?", OPTIONS)), None)]
    with pytest.raises(RunError, match="no captions"):
        select(LIBRARY[:2], Benchmark("toy", items, Captions()), Session(), tmp_path)


def test_the_command_writes_a_team_that_ask_takes(run, library_file, tmp_path):
    out = tmp_path / "team.toml"
    of = ("--of", "seeds=0", "--of", "minutes=3", "--of", "questions=4")
    command = ("select", "lab", *of, "--library", library_file, "--sample", 4, "--out", out)
    code, text, err = run(*command)
    assert code == 0, err
    assert "ann: 4 of at most 4" in err
    assert "the last in the team leads the first outside by" in text
    team = read_team(out)
    assert len(team) == 3
    assert {member.name for member in team} <= {member.name for member in LIBRARY}
    assert "4 questions of lab" in out.read_text()
    code, text, _ = run(*command, "--json")
    plain = json.loads(text)
    assert code == 0
    assert [row["name"] for row in plain["ranking"]][:3] == [member.name for member in team]
    assert plain["questions"] == 4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lab", "--top", "9"], "has only 4 agents"),
        (["nextqa"], "--data"),
        (["lab", "--of", "minute=3"], "did you mean 'minutes'"),
        (["lab", "--of", "minutes=x"], "invalid literal"),
    ],
)
def test_mistakes(run, library_file, tmp_path, arguments, says):
    files = ("--library", library_file, "--out", tmp_path / "team.toml")
    code, out, err = run("select", *arguments, *files)
    assert (code, out) == (2, ""), err
    assert says in err


def test_a_dry_run_asks_nobody(run, library_file, tmp_path):
    out = tmp_path / "team.toml"
    sample = ("select", "lab", "--of", "seeds=0", "--library", library_file, "--sample", 2)
    code, text, _ = run(*sample, "--dry-run", "--out", out)
    assert code == 0
    assert "4 agents × 2 questions of lab" in text
    assert not out.exists()
    _, text, _ = run(*sample, "--dry-run", "--json", "--out", out)
    counts = {"schema": 1, "benchmark": "lab", "agents": 4, "questions": 2}
    assert json.loads(text) == counts


def test_a_question_about_each_video_is_asked_unless_a_number_of_questions_is_given(
    run, library_file, tmp_path
):
    of = ("--of", "seeds=0-1", "--of", "minutes=3", "--of", "questions=3")
    shared = ("select", "lab", *of, "--library", library_file, "--out", tmp_path / "team.toml")

    def calls(*more):
        _, text, err = run(*shared, *more, "--dry-run", "--json")
        return json.loads(text)["questions"] if text else err

    assert calls() == calls("--videos", 2) == 2 * calls("--videos", 1)
    assert calls("--sample", 6) == 3 * calls()
