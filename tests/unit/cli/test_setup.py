"""setup, doctor's advice and the list of models: what is found, what is used, what is written."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import tomllib

import pytest
from support.server import Send, completion, serve

from longtake import config
from longtake.cli import setup as command
from longtake.cli.setup import Advice, Findings, advise, with_setting, write_setting
from longtake.config import entries
from longtake.errors import ConfigError
from longtake.llm import catalog

NOTHING = Findings([], [], "", "", "", [], has_weights=False, vision="", model="")


class Terminal(io.StringIO):
    """Someone who types these lines."""

    def isatty(self):
        return True


@pytest.fixture
def types(monkeypatch):
    def types(*lines):
        monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))
        monkeypatch.setattr(command, "on_terminal", lambda: True)

    return types


@pytest.fixture(autouse=True)
def nothing_nearby(monkeypatch):
    """Whatever runs on the machine of the test is not found."""
    for variable in catalog.KEYS.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(catalog, "PRESETS", ())


@pytest.fixture
def ollama(monkeypatch):
    """A server that is taken for Ollama."""

    def act(request):
        if request.path == "/v1/models":
            return Send(200, {"data": [{"id": "nomic-embed"}, {"id": "seer:7b"}, {"id": "m:1b"}]})
        return completion('{"animal": "horse"}' if "animal" in request.text else "red blue")

    with serve(act) as served:
        port = int(served.url.rpartition(":")[2].partition("/")[0])
        real = next(each for each in entries.PRESETS if each.label == "Ollama")
        near = dataclasses.replace(real, base_url=served.url, port=port)
        others = [each for each in entries.PRESETS if not each.is_server]
        monkeypatch.setattr(entries, "PRESETS", (*others, near))
        monkeypatch.setattr(catalog, "PRESETS", (*others, near))
        yield served


def written():
    return tomllib.loads(config.user_config_file().read_text())


def test_a_server_is_found_chosen_tried_and_written_down(run, types, ollama):
    types("1", "ollama/m:1b", "")
    code, out, err = run("setup")
    assert code == 0, err
    assert "Ollama, on this machine" in out
    assert "nomic-embed" not in out
    assert "ollama/m:1b: reachable" in out
    assert written() == {"answers": {"model": "ollama/m:1b"}}
    assert config.load().answers.model == "ollama/m:1b"


def test_nothing_is_sent_to_a_server_that_is_only_found(run, types, ollama):
    types("99", "2")
    assert run("doctor")[0] == run("models", "list")[0] == 0
    assert ollama.requests == []


def test_interrupted_at_any_question_nothing_is_written(run, types, ollama):
    for lines in ((), ("1",), ("1", "ollama/m:1b"), ("1", "ollama/m:1b", "n")):
        types(*lines)
        code, _, err = run("setup")
        assert code == 130
        assert "nothing was written" in err
        assert not config.user_config_file().exists()


def test_yes_takes_a_server_on_this_machine_and_no_key(run, monkeypatch, ollama):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-marked")
    code, out, err = run("setup", "--yes", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["model"], told["found"]["keys"]) == ("ollama/seer:7b", ["OPENAI_API_KEY"])
    assert "sk-marked" not in out + err
    assert all("Authorization" not in request.headers for request in ollama.requests)


def test_a_key_is_offered_with_where_things_would_go(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-marked")
    monkeypatch.setattr(catalog, "PRESETS", entries.PRESETS)
    found = dataclasses.replace(NOTHING, keys=catalog.found_keys())
    first, last, _ = command.choices(found)
    assert "api.anthropic.com" in first.line
    assert "sk-marked" not in first.line
    assert "1.1 GB" in last.line


def test_a_download_is_asked_for(run, types, tmp_path):
    types("", "n")
    code, out, _ = run("setup")
    assert code == 130
    assert "local/qwen2.5-coder-1.5b, on this machine: reads, downloads 1.1 GB" in out
    assert "on this machine: sees pictures, downloads" in out
    assert "download 1.1 GB?" in out


def test_without_a_terminal_nothing_is_asked_used_or_written(run, monkeypatch, ollama):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, out, err = run("setup")
    assert code == 2
    assert "Ollama" in out
    assert "pass --yes" in err
    assert (ollama.requests, config.user_config_file().exists()) == ([], False)


def test_a_model_that_does_not_answer_is_not_written_down(run):
    code, _, err = run("setup", "--yes", "--model", "http://127.0.0.1:9/v1#m")
    assert code == 4, err
    assert not config.user_config_file().exists()


def test_the_configured_model_answers_where_none_is_named(run, film_folder):
    write_setting(config.user_config_file(), "answers", "model", "nobody/at-all")
    code, _, err = run("ask", "film.mp4", "Who?")
    assert code == 2
    code, _, err = run("summary", "film.mp4")
    assert "no such file" in err
    assert "nobody/at-all" in run("models", "list")[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[answers]\nmodel = "m"\n'),
        ("# mine\n[budget]\ncost = 1", '# mine\n[budget]\ncost = 1\n\n[answers]\nmodel = "m"\n'),
        ("[answers] # x\nverify = true\n", '[answers] # x\nmodel = "m"\nverify = true\n'),
        (
            '[answers]\nmodel="old"\n[cache]\nmodel=1\n',
            '[answers]\nmodel = "m"\n[cache]\nmodel=1\n',
        ),
    ],
)
def test_a_setting_is_written_and_the_rest_of_the_file_stays(before, after):
    assert with_setting(before, "answers", "model", "m") == after


def test_a_file_that_cannot_be_edited_by_lines_is_left_alone(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("answers.verify = true\n")
    with pytest.raises(ConfigError, match=r"add this yourself|invalid TOML"):
        write_setting(path, "answers", "model", "m")
    assert path.read_text() == "answers.verify = true\n"


def test_advice_ends_with_commands():
    commands = [each.command for each in advise(NOTHING)]
    assert commands[0] == "longtake models pull local/qwen2.5-coder-1.5b"
    assert 'pip install "longtake[speech]"' in commands
    ready = dataclasses.replace(
        NOTHING, has_weights=True, player="/mpv", extras=["speech", "serve"]
    )
    (eyes,) = advise(ready)
    assert eyes.command == "longtake models pull vision"
    ready = dataclasses.replace(ready, vision="local/qwen3-vl-2b")
    assert advise(ready) == []
    with_key = dataclasses.replace(ready, keys=[catalog.Key("X_KEY", "x.example", None)])
    assert advise(with_key) == [
        Advice(
            "$X_KEY found, and no model is chosen: a larger model answers better", "longtake setup"
        )
    ]
