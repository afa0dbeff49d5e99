"""Answers that are shown while they are written."""

from __future__ import annotations

import io
import json
import shutil
import sys

import pytest
from support.server import Request, Send, completion, serve, stream

from longtake import cli
from longtake.cli.answers import StatusSink
from longtake.tracing.events import Drafted

QUESTION = "Where does the ship leave from?"
LINES = "1\n00:00:00,000 --> 00:00:01,500\nThe ship leaves from Bremen at noon.\n"

pytestmark = pytest.mark.usefixtures("shared_cache")


class Pipe(io.TextIOWrapper):
    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def getvalue(self):
        return self.buffer.getvalue().decode()


class Terminal(Pipe):
    def isatty(self):
        return True


@pytest.fixture
def subtitles(tmp_path):
    file = tmp_path / "film.srt"
    file.write_text(LINES)
    return file


@pytest.fixture
def ask(film, subtitles, monkeypatch):
    """Asks on a terminal; returns the exit code, what was printed, and what was shown meanwhile."""
    monkeypatch.setenv("COLUMNS", "200")

    def ask(url, *options, command="ask", out=Terminal):
        monkeypatch.setattr(sys, "stdout", out())
        monkeypatch.setattr(sys, "stderr", Terminal())
        question = [QUESTION] if command == "ask" else []
        words = [command, film, *question, "--subtitles", subtitles, "--method", "lookup"]
        code = cli.run([*map(str, words), "--model", f"{url}#m", "--no-cache", *options])
        return code, sys.stdout.getvalue(), sys.stderr.getvalue()

    return ask


def answering(*texts):
    def act(asked: Request) -> Send:
        if not asked.path.endswith("/chat/completions"):
            return Send(404)
        return stream(*texts) if "stream" in asked.body else completion("".join(texts))

    return act


def streamed(served):
    asked = [each for each in served.requests if each.path.endswith("/chat/completions")]
    return [each.body.get("stream", False) for each in asked]


def test_a_terminal_shows_what_is_read_and_the_draft(ask):
    with serve(answering("It leaves ", "from Bremen.")) as served:
        code, out, shown = ask(served.url)
    assert code == 0
    assert out.startswith("\x1b[1mIt leaves from Bremen.")
    assert "reading 00:00:00–00:00:0" in shown
    assert "checking: It leaves from Bremen." in shown
    assert streamed(served) == [True]


def test_a_conversation_shows_drafts_too(ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{QUESTION}\n"))
    with serve(answering("It leaves ", "from Bremen.")) as served:
        code, out, shown = ask(served.url, command="chat")
    assert code == 0
    assert "It leaves from Bremen." in out
    assert "checking: It leaves from Bremen." in shown


def test_the_library_shows_drafts_too(film, subtitles, monkeypatch):
    beside = shutil.copy(film, subtitles.with_suffix(".mp4"))
    quiet = ["--set", "perception.reader=false", "--set", "perception.listener=none"]
    assert cli.run(["library", "add", str(beside), *quiet]) == 0
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    with serve(answering("It leaves ", "from Bremen.")) as served:
        words = ["library", "ask", QUESTION, "--method", "lookup", "--model", f"{served.url}#m"]
        code = cli.run([*words, *quiet])
    assert code == 0
    assert "checking: It leaves from Bremen." in sys.stderr.getvalue()


def test_a_draft_that_the_film_does_not_hold_is_not_the_answer(ask):
    with serve(answering("It leaves from ", "Valparaiso.")) as served:
        code, out, shown = ask(served.url)
    assert code == 3
    assert "checking: It leaves from Valparaiso." in shown
    assert "Valparaiso" not in out
    assert "not found" in out


@pytest.mark.parametrize("option", ["--json", "--quiet", "--verbose", "piped"])
def test_elsewhere_nothing_is_drafted(ask, option):
    options, out = ((), Pipe) if option == "piped" else ((option,), Terminal)
    with serve(answering("It leaves ", "from Bremen.")) as served:
        code, printed, shown = ask(served.url, *options, out=out)
    assert code == 0
    assert streamed(served) == [False]
    assert "not checked yet" not in shown
    assert "checking" not in shown
    if option == "--json":
        assert json.loads(printed)["text"] == "It leaves from Bremen."


def test_an_interrupt_while_a_draft_is_written_loses_nothing(ask, monkeypatch):
    handle = StatusSink.handle

    def interrupt(sink, event):
        handle(sink, event)
        if isinstance(event, Drafted):
            raise KeyboardInterrupt

    with serve(answering("It leaves ", "from Bremen.")) as served:
        assert ask(served.url)[0] == 0
        with monkeypatch.context() as patched:
            patched.setattr(StatusSink, "handle", interrupt)
            code, out, shown = ask(served.url)
        assert (code, out) == (130, "")
        assert "draft, not checked yet: It leaves" in shown
        assert "interrupted after" in shown
        assert ask(served.url)[0] == 0
