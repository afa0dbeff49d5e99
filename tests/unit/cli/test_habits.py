"""Everyday use: conversations, many questions, many films, completion, addresses."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
import threading

import numpy as np
import pytest
from support.models import waiting
from support.patience import PATIENCE

from longtake.cli.answers import StatusSink
from longtake.cli.output import in_one_line, wrapped
from longtake.runner.rendering import longest_gap
from longtake.tracing.events import ChatCalled, Drafted, FramesSeen, Noted, RunStarted, StepBegan
from longtake.video.clip import write_film

MODEL = ("--model", "test/obliging", "--no-verify")


pytestmark = pytest.mark.usefixtures("test_models")


@pytest.fixture(autouse=True)
def shared_cache(module_cache, monkeypatch):
    """One index for all tests."""
    monkeypatch.setenv("LONGTAKE_CACHE", str(module_cache))


def rows(out):
    return [json.loads(line) for line in out.splitlines()]


def test_questions_from_a_file_are_answered_as_json_lines(run, film, tmp_path):
    place = tmp_path / "questions.txt"
    choice = {"question": "Which?", "options": ["x", "y"]}
    place.write_text(f"# mine\nWhat is it?\n\n{json.dumps(choice)}\n")
    code, out, err = run("ask", film, "--questions", place, *MODEL)
    assert code == 0, err
    first, second = rows(out)
    assert (first["schema"], first["question"], first["text"]) == (1, "What is it?", "a plain word")
    assert (second["choice"], second["film"]) == ("A", film)


def test_questions_from_a_pipe_and_one_that_fails(run, film, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("What?\nWho?\n"))
    code, out, _ = run("ask", film, "--questions", "-", "--model", "test/gone")
    assert code == 4
    assert [row["status"] for row in rows(out)] == ["error", "error"]


def test_a_sound_file_has_no_frames_to_save(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sound = tmp_path / "talk.mka"
    write_film(sound, (), sound=np.zeros(32_000, np.float32))
    monkeypatch.setattr(sys, "stdin", io.StringIO("/frames 1\n"))
    code, out, err = run("chat", sound, *MODEL)
    assert (code, out, "has sound only, no pictures" in err) == (0, "", True)
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "no question"), ("{", "malformed JSON"), ('{"q": 1}', "write {"), ("\xff", "UTF-8")],
)
def test_files_without_questions(run, film, tmp_path, text, says):
    place = tmp_path / "questions"
    place.write_bytes(text.encode("latin-1"))
    code, _, err = run("ask", film, "--questions", place, *MODEL)
    assert (code, says in err) == (2, True), err


def test_a_folder_is_asked_film_by_film_and_a_broken_one_is_reported(run, film, tmp_path):
    folder = tmp_path / "films"
    folder.mkdir()
    shutil.copy(film, folder / "a.mp4")
    (folder / "b.mp4").write_text("no film")
    code, out, err = run("ask", folder, "What is it?", *MODEL)
    assert code == 2
    assert "a.mp4" in out
    assert "a plain word" in out
    assert "b.mp4" in err
    code, out, _ = run("ask", folder, film, "What is it?", *MODEL, "--json")
    assert [row["status"] for row in rows(out)] == ["answered", "error", "answered"]
    code, _, err = run("ask", folder, film, "What?", *MODEL, "--trace", "t")
    assert (code, "are for one film and one question" in err) == (2, True)


@pytest.mark.parametrize(("kind", "begins"), [("md", "## What"), ("html", "<!doctype html>")])
def test_formats(run, film, kind, begins):
    code, out, err = run("ask", film, "What is it?", *MODEL, "--format", kind)
    assert code == 0, err
    assert out.startswith(begins)
    assert "a plain word" in out


def test_quiet_and_verbose(run, film):
    _, out, err = run("ask", film, "What is it?", *MODEL, "--quiet")
    assert err == ""
    assert all(line.startswith(("a plain", "  [")) for line in out.splitlines())
    _, out, err = run("ask", film, "What is it?", *MODEL, "--verbose")
    assert "videoagent" in err
    assert "    test/obliging: " in out


def test_no_escapes_without_a_terminal_and_none_with_no_color(run, film, monkeypatch):
    _, out, _ = run("ask", film, "What is it?", *MODEL)
    assert "\x1b" not in out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b[1m" in run("ask", film, "What is it?", *MODEL, "-q")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("ask", film, "What is it?", *MODEL, "-q")[1]


def test_narrow_terminals(monkeypatch):
    assert wrapped("word " * 40) == "word " * 40
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, wrapped("word " * 40, indent="  ").splitlines())) <= 40
    assert len(in_one_line("word " * 40, taken=8)) <= 32


def test_the_longest_stretch_without_a_look():
    assert longest_gap([], 100) is None
    assert longest_gap([10, 20], 100) == (20, 100)
    assert longest_gap([50, 90], 100) == (0, 50)


def test_what_is_being_done_in_one_line():
    lines = []
    sink = StatusSink(lambda *shown: lines.append("\n".join(shown)), drafts=True)
    sink.handle(RunStarted(method="videoagent", question="", options=(), film=""))
    sink.handle(StepBegan(name="look [x]", data={"round": 2}))
    sink.handle(ChatCalled(model="m", prompt="p"))
    sink.handle(FramesSeen(frames=()))
    assert lines[-1] == "look [x] 2 · 1 calls, 0 frames"
    found = [{"start": 10.0 * number, "end": 10.0 * number + 5, "text": "…"} for number in range(6)]
    sink.handle(Noted(label="passages_found", data={"passages": found}))
    reading = "reading 00:00:00–00:00:05, 00:00:10–00:00:15, 00:00:20–00:00:25, 00:00:30–00:00:35"
    assert lines[-1].splitlines()[1:] == [f"{reading} and 2 more"]
    for draft in (Drafted(text="It"), Drafted(text="A [d", anew=True), Drafted(text="og]\n\x1b")):
        sink.handle(draft)
    assert lines[-1].splitlines()[2:] == [r"draft, not checked yet: A [dog] \x1b"]
    sink.handle(ChatCalled(model="m", prompt="p"))
    assert lines[-1].splitlines()[2:] == [r"checking: A [dog] \x1b"]


def typed(monkeypatch, *lines):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_a_conversation_carries_what_was_said_and_shows_it(run, film, monkeypatch):
    typed(monkeypatch, "What is it?", "And then?", "/history", "/forget", "Alone?", "/quit", "No")
    code, out, err = run("chat", film, *MODEL)
    assert code == 0, err
    assert err.count("carried from the conversation") == 1
    assert "  | Q: What is it?\n  | A: a plain word" in err
    assert "And then?\n  a plain word" in out


def test_commands_of_a_conversation(run, film, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lines = ("/why", "What?", "/why", "/frames 0:01", "/search red", "/open 1", "/serch", "/help")
    typed(monkeypatch, *lines)
    code, out, err = run("chat", film, *MODEL)
    assert code == 0, err
    assert "ask a question first" in err
    assert "[1] 00:00:0" in out
    assert [path.name for path in tmp_path.glob("*.png")] == ["plain_00-00-01.000.png"]
    assert "did you mean '/search'" in err
    assert "/forget" in out


def test_ctrl_c_ends_the_question_and_not_the_conversation(run, film, monkeypatch):
    waiting.clear()

    def interrupt():
        # an interrupt that comes at another time would end the tests
        if waiting.wait(PATIENCE):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    typed(monkeypatch, "What is it?", "/carried", "/history")
    code, out, err = run("chat", film, "--model", "test/slow", "--no-verify", "--no-cache")
    thread.join()
    assert code == 0, err
    assert "cancelled; this is the best answer so far" in out
    assert "(nothing)" in out


def test_an_address_is_downloaded_only_on_request_and_once(run, film, monkeypatch, tmp_path):
    url = "https://video.example/watch?v=1"
    monkeypatch.setitem(sys.modules, "fsspec", None)
    code, _, err = run("ask", url, "What is it?", *MODEL)
    assert (code, "without 'ask --download' needs an extra" in err) == (2, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run("ask", url, "What is it?", *MODEL, "--download")
    assert (code, "needs yt-dlp" in err) == (2, True)
    program = tmp_path / "yt-dlp"
    program.write_text(
        f"#!{sys.executable}\nimport shutil, sys\n"
        "out = sys.argv[sys.argv.index('--output') + 1]\n"
        f"shutil.copy({film!r}, out.replace('%(ext)s', 'mp4'))\n"
    )
    program.chmod(0o755)
    code, _, err = run("ask", url, "What is it?", *MODEL, "--download")
    assert code == 0, err
    assert "having the right to" in err
    program.unlink()
    assert run("ask", url, "What is it?", *MODEL, "--download")[0] == 0
    code, _, err = run("ask", url, "What is it?", *MODEL, "--download", "--offline")
    assert (code, "--offline forbids" in err) == (2, True)


@pytest.mark.processes
def test_completion(run, monkeypatch):
    code, out, _ = run("setup", "--completion", "bash")
    assert (code, "_LONGTAKE_COMPLETE" in out) == (0, True)
    monkeypatch.setenv("_LONGTAKE_COMPLETE", "bash_complete")
    for words, expected in (
        ("longtake ch", "chat"),
        ("longtake ask f q --method vid", "videoagent"),
        ("longtake ask f q --model oll", "ollama/"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert f"plain,{expected}" in run()[1]
    monkeypatch.setenv("COMP_WORDS", "longtake ask fil")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert "file,fil" in run()[1]


def test_occurrences_need_no_weights_of_the_built_in_model(
    run, film, tmp_path, monkeypatch, lend_models
):
    lend_models(tmp_path / "cache")
    monkeypatch.setenv("LONGTAKE_CACHE", str(tmp_path / "cache"))
    copy = tmp_path / "film.mp4"
    shutil.copy(film, copy)
    lines = "1\n00:00:01,000 --> 00:00:02,000\nThe walrus sings.\n"
    copy.with_suffix(".srt").write_text(lines)
    code, out, err = run("ask", copy, "List every time that a walrus is mentioned.")
    assert code == 0, err
    assert "“The walrus sings.”" in out
    code, _, err = run("ask", copy, "Who sings?")
    assert (code, "not downloaded yet" in err) == (4, True), err
