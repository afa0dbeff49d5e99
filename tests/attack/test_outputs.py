"""An output never destroys an input, or a file that is something else."""

import inspect
import json

import click
import pytest
from films import Recipe, begin_film

from longtake import cli

ASKED = ("Which?", "--option", "red", "--option", "green", "--model", "lab/acuity=1")
METHOD = ("--method", "blind", "--no-verify")


@pytest.fixture
def film(tmp_path):
    path = Recipe("film.mp4", count=20).make(tmp_path)
    path.with_suffix(".srt").write_text("1\n00:00:00,100 --> 00:00:01,000\nHello\n")
    return path


def untouched(run, files, *arguments):
    """Carry out a command that must be refused; every file must hold what it held."""
    before = [file.read_bytes() for file in files]
    code, _, err = run(*arguments)
    assert [file.read_bytes() for file in files] == before
    assert code == 2, err
    return err


@pytest.mark.parametrize("place", ["film", "subtitles", "link", "hard link", "notes"])
def test_ask_does_not_write_over_a_film_or_anything_else(run, film, place):
    suffix = ".jsonl"
    link, hard = film.with_name(f"link{suffix}"), film.with_name(f"hard{suffix}")
    link.symlink_to(film)
    hard.hardlink_to(film)
    notes = film.with_name(f"notes{suffix}")
    notes.write_text("what I must not forget\n")
    subtitles = film.with_suffix(".srt")
    places = {"film": film, "subtitles": subtitles, "link": link, "hard link": hard, "notes": notes}
    files = (film, subtitles, notes)
    untouched(run, files, "ask", film, *ASKED, *METHOD, "--trace", places[place])


def test_a_trace_may_be_written_again(run, film):
    trace = film.with_name("trace.jsonl")
    for _ in range(2):
        code, _, err = run("ask", film, *ASKED, *METHOD, "--trace", trace)
        assert code == 0, err
    assert not list(film.parent.glob(".*"))


def test_devices_are_fine(run, film):
    assert run("ask", film, *ASKED, *METHOD, "--trace", "/dev/null")[0] == 0


def test_report_keeps_the_run(run, tmp_path):
    folder = tmp_path / "run"
    worlds = ("--of", "seeds=0-0", "--of", "minutes=3", "--of", "questions=2")
    line = ("lab-captions", *worlds, "--model", "lab/acuity=1", *METHOD, "--workers", 1)
    assert run("eval", *line, "--out", folder)[0] == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    for file in (folder / "results.jsonl", folder / "spec.json"):
        untouched(run, files, "report", folder, "--html", file)
        untouched(run, files, "report", folder, "--submission", file)
    page = tmp_path / "page.html"
    for _ in range(2):
        assert run("report", folder, "--html", page)[0] == 0
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["film.mp4", "film.srt", "script.json", "questions.json"])
def test_lab_make_keeps_what_it_did_not_make(run, film, name):
    folder = film.parent / "mine"
    folder.mkdir()
    (folder / name).write_bytes(film.read_bytes())
    untouched(run, [folder / name], "lab", "make", "--minutes", 1, "--out", folder)
    assert [path.name for path in folder.iterdir()] == [name]


def test_lab_make_keeps_what_links_lead_to(run, film):
    folder = film.parent / "mine"
    folder.mkdir()
    (folder / "film.mp4").symlink_to(film)
    untouched(run, [film], "lab", "make", "--minutes", 1, "--out", folder)


def test_lab_make_makes_a_world_again(run, tmp_path, monkeypatch):
    monkeypatch.setattr("longtake_bench.lab.film.write_film", begin_film)
    for _ in range(2):
        code, _, err = run("lab", "make", "--minutes", 1, "--questions", 1, "--out", tmp_path)
        assert code == 0, err


def test_select_keeps_its_library(run, tmp_path):
    library = tmp_path / "library.toml"
    agent = '[[agent]]\nname = "a{0}"\nmodel = "lab/acuity=0.{0}"\n'
    library.write_text("".join(agent.format(number) for number in (5, 6, 7)))
    line = ("select", "lab", "--of", "seeds=0-0", "--of", "minutes=3", "--library", library)
    untouched(run, [library], *line, "--sample", 2, "--top", 1, "--out", library)
    notes = tmp_path / "notes.txt"
    notes.write_text("what I must not forget\n")
    untouched(run, [notes], *line, "--sample", 2, "--top", 1, "--out", notes)


def test_frames_keep_other_files(run, film):
    stills = film.parent / "stills"
    stills.mkdir()
    note = stills / "001_00-00-01.000.png"
    note.write_text("what I must not forget\n")
    untouched(run, [note], "frames", film, "--at", "1", "--out", stills)


def test_train_retriever_keeps_its_data(run, tmp_path):
    data = tmp_path / "head.json"
    data.write_text(json.dumps([{"video": "v", "start": 0, "end": 1, "caption": "a dog runs"}]))
    untouched(run, [data], "train-retriever", data, "--out", tmp_path, "--dry-run")


def commands(group):
    """Every command below a group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from commands(command) if isinstance(command, click.Group) else [command]


def test_every_option_that_names_an_output_is_checked():
    """A new option must be thought about: the file of its command must call ``check_place``."""
    outputs = {"--trace", "--html", "--submission"}
    checked = []
    for command in commands(cli.root):
        names = {name for parameter in command.params for name in parameter.opts}
        if names & outputs:
            module = inspect.getmodule(inspect.unwrap(command.callback))
            assert "check_place(" in inspect.getsource(module), command.name
            checked.append(command.name)
    assert {"ask", "report", "audit"} <= set(checked)
