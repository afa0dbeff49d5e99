"""Limits that a user sets hold, whatever the film, the server or the configuration."""

from __future__ import annotations

import json
import threading
import time

import pytest
from attack.liar import LIES, STALLS, lying
from support.patience import FOREVER, PATIENCE

from longtake._util.cancellation import Cancelled
from longtake.cli.options import check_models
from longtake.errors import ModelError
from longtake.index.layers import Pictures
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session

pytestmark = pytest.mark.usefixtures("test_models", "shared_cache")
OPTIONS = ("--option", "red", "--option", "green", "--model", "test/obliging", "--no-verify")
SERVED = ("--option", "red", "--option", "green", "--method", "uniform", "--no-verify")


@pytest.fixture
def slow_index(monkeypatch):
    """Indexing that lasts until the test has ended."""
    ended = threading.Event()

    def slow(self, frames):
        ended.wait(FOREVER)
        raise Cancelled

    monkeypatch.setattr(EfficientNetLite2, "outputs", slow)
    yield
    ended.set()


# the first answer takes a second; the rest of the eight is for a busy machine
@pytest.mark.parametrize(
    ("captioner", "limit", "expected"),
    [("test/obliging", 8, (0, "answered")), ("senses", 1.5, (3, "budget_spent"))],
)
@pytest.mark.usefixtures("slow_index")
def test_a_time_limit_holds_for_a_film_that_is_not_indexed_yet(
    run, tmp_path, film, lend_models, monkeypatch, captioner, limit, expected
):
    """A method that needs no index for its first answer has one, although indexing is slow."""
    monkeypatch.setenv("LONGTAKE_CACHE", str(lend_models(tmp_path)))
    began = time.monotonic()
    options = (*OPTIONS, "--model", f"captioner={captioner}", "--max-seconds", limit, "--json")
    code, out, _ = run("ask", film, "Which colour?", *options)
    assert time.monotonic() - began < PATIENCE
    assert (code, json.loads(out)["status"]) == expected


def test_a_time_limit_holds_for_a_server_that_sends_headers_for_ever(run, film):
    with lying() as liar:
        liar.mode = STALLS["slow headers"]
        began = time.monotonic()
        limits = ("--max-seconds", 1, "--model", f"{liar.url}#m")
        code, _, _ = run("ask", film, "Which colour?", *SERVED, *limits)
    assert code == 3
    assert time.monotonic() - began < PATIENCE


def test_a_limit_of_one_call_makes_one_post(run, film):
    with lying() as liar:
        liar.mode = LIES["a page"]
        # with a time limit the film is not indexed first, which this is not about
        limits = ("--max-calls", 1, "--max-seconds", 30, "--model", f"{liar.url}#m")
        code, out, _ = run("ask", film, "Which colour?", *SERVED, *limits, "--json")
    assert (code, liar.posts) == (3, 1)
    assert json.loads(out)["usage"]["calls"] == 1


def test_a_missing_key_is_noticed_before_the_film_is_looked_through(
    run, film, tmp_path, monkeypatch
):
    monkeypatch.delenv("MY_KEY", raising=False)
    monkeypatch.setattr(Pictures, "build", None)
    config = tmp_path / "config.toml"
    entry = '[models.far]\nbackend = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    config.write_text(f'{entry}model = "m"\napi_key_env = "MY_KEY"\n')
    code, _, err = run("ask", film, "Why?", "--model", "far", "--config", config)
    assert code == 2
    assert "far: the environment variable MY_KEY holds no key" in err


@pytest.mark.parametrize(
    "command", [("ask",), ("chat",), ("compare", "--method", "uniform", "--yes"), ("summary",)]
)
def test_a_model_that_is_not_downloaded_is_noticed_before_too(run, film, monkeypatch, command):
    monkeypatch.setattr(Pictures, "build", None)
    name, *options = command
    question = () if name in ("chat", "summary") else ("Why?",)
    code, _, err = run(name, film, *question, *options, "--model", "local/qwen2.5-coder-1.5b")
    assert code == 4
    assert "not downloaded yet (1.1 GB): longtake models pull local/qwen2.5-coder-1.5b" in err


def test_weights_are_not_needed_here_if_other_machines_ask():
    session = Session(assignment=ModelAssignment(("local/qwen2.5-coder-1.5b",)))
    check_models(session, ("llm",), here=False)
    with pytest.raises(ModelError, match="not downloaded yet"):
        check_models(session, ("llm",))
