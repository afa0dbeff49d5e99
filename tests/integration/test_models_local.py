"""The real runtime on a real, very small model.

``make test`` fetches it and sets LONGTAKE_REQUIRE_MODELS; elsewhere its absence skips these tests.
"""

import json
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import httpx
import pytest
from films import Recipe
from pydantic import BaseModel
from support.patience import PATIENCE

from longtake import prompts
from longtake._util.cancellation import Stop
from longtake.config import BudgetSettings, CacheSettings, Settings, cache_folder
from longtake.errors import ModelError
from longtake.llm.backends import local
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Card, Chat, Options, Unavailable, say
from longtake.llm.middleware import Traced
from longtake.llm.probe import probe
from longtake.llm.structured.ask import ask
from longtake.llm.structured.schema import Letter
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.server.films import ServedFilms
from longtake.server.jobs import Job, JobWorker, Outcome
from longtake.server.journal import Ask, Journal, Kind, RunRecord, new_id
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions
from longtake.tracing.events import Stream
from longtake.tracing.jsonl import JsonlSink
from longtake.types import Question

NAME = "local/smollm2-135m"
# the cache folder of whoever runs the tests, read before each test gets one of its own
SETTINGS = Settings(cache=CacheSettings(folder=str(cache_folder(Settings()))))


class Guess(BaseModel):
    choice: Letter = None
    mood: Literal["sure", "unsure"]


@pytest.fixture(scope="module")
def chat() -> Chat:
    catalogue = ModelCatalog(SETTINGS)
    if not catalogue.file(NAME).is_file():
        reason = f"{catalogue.file(NAME)} is not there: longtake models pull {NAME}"
        if os.environ.get("LONGTAKE_REQUIRE_MODELS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return catalogue.open(NAME)


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = prompts.load
    own = prompts.Prompt("t/guess", "$question\n\n$notes\n\nWhich option is right?")
    monkeypatch.setattr(prompts, "load", lambda name: own if name == own.name else shipped(name))


def test_a_typed_reply_under_a_schema(chat: Chat) -> None:
    question = Question("What did the dog do?", ("It barked", "It flew"))
    guess = ask(chat, "t/guess", Guess, question=question, notes="the dog barked loudly")
    assert guess.choice in ("A", "B")
    assert guess.mood in ("sure", "unsure")


def test_a_model_that_repeats_itself_reaches_the_end_of_its_reply(chat: Chat) -> None:
    """Unbounded, this one writes on until the tokens are used up."""
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "string"},
            "choice": {"type": "string", "enum": ["A", "B"]},
        },
        "required": ["list", "choice"],
        "additionalProperties": False,
    }
    request = [
        say(
            "user",
            "Write the word yes a thousand times: yes yes yes yes yes yes yes. Then choose A or B.",
        )
    ]
    reply = chat.complete(request, Options(max_tokens=96, schema=schema))
    assert reply.finish == "stop"
    assert json.loads(reply.text)["choice"] in ("A", "B")


def test_a_shared_beginning_is_read_once_and_counted(chat: Chat) -> None:
    """The second prompt differs only at its end; the runtime reports what it did not read again."""
    notes = " ".join(f"At minute {number} the dog runs past the house." for number in range(10))
    first = chat.complete([say("user", f"{notes}\nWho runs?")], Options(max_tokens=1))
    second = chat.complete([say("user", f"{notes}\nPast what does it run?")], Options(max_tokens=1))
    assert first.usage.tokens_in > 100
    assert first.usage.tokens_cached < first.usage.tokens_in / 4
    assert second.usage.tokens_cached > second.usage.tokens_in * 0.8
    assert second.usage.cost == 0.0


def test_a_reply_is_the_same_read_while_it_is_written(chat: Chat) -> None:
    request, seen = [say("user", "Name three colours.")], list[str]()
    whole = chat.complete(request, Options(max_tokens=12))
    streamed = chat.complete(request, Options(max_tokens=12, on_text=seen.append))
    assert streamed.text == whole.text == seen[-1]
    assert len(seen) > 6
    assert all(later.startswith(text) for text, later in pairwise(seen))
    assert (streamed.finish, streamed.usage.tokens_in) == (whole.finish, whole.usage.tokens_in)
    assert streamed.usage.tokens_out == whole.usage.tokens_out == 12


def test_the_models_own_tokenizer_counts(chat: Chat) -> None:
    assert chat.count("hello world") == 2  # type: ignore[attr-defined]


def test_a_deadline_stops_a_long_reply_and_frees_the_model(chat: Chat) -> None:
    began = time.monotonic()
    with pytest.raises(Unavailable) as raised:
        chat.complete(
            [say("user", "Count to one thousand.")], Options(max_tokens=3500, deadline=0.5)
        )
    assert raised.value.out_of_time
    assert chat.complete([say("user", "Hi")], Options(max_tokens=1)).usage.tokens_out == 1
    assert time.monotonic() - began < PATIENCE


def test_a_prompt_beyond_the_context_is_named_as_such(chat: Chat) -> None:
    with pytest.raises(ModelError) as raised:
        chat.complete([say("user", "word " * 6000)], Options(max_tokens=4))
    assert raised.value.problem == "context"


@pytest.mark.campaign
def test_a_probe_reports_what_it_found(chat: Chat) -> None:
    """It reads and writes enough for a speed, and asks a dozen questions."""
    report = probe(chat.inner.inner)  # type: ignore[attr-defined]
    assert report.reachable
    assert report.json_schema
    assert report.vision is False
    assert report.context == 4096


@pytest.mark.usefixtures("chat")
def test_a_session_loads_the_model_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_servers", {})
    Session(SETTINGS, ModelAssignment(("llm=http://127.0.0.1:1/v1#other",))).load_reader()
    assert not local._servers
    Session(SETTINGS, ModelAssignment((f"llm={NAME}",))).load_reader()
    assert len(local._servers) == 1


@pytest.mark.parametrize("damage", [False, True])
@pytest.mark.usefixtures("chat")
def test_a_beginning_is_restored_in_the_next_process(tmp_path: Path, *, damage: bool) -> None:
    """The runtime aborts the process if it is given a state that was cut off."""
    weights = local.LocalWeights(ModelCatalog(SETTINGS).file(NAME), context=512, states=tmp_path)
    system = say("system", "You answer questions about a film from what is said and shown in it.")
    cached = []
    for name in ("Bremen", "Hamburg"):
        user = say("user", f"Does the train leave from {name}?")  # one file for all questions
        model = local.LocalChat(Card("small"), weights)
        cached.append(model.complete([system, user], Options(max_tokens=2)).usage.tokens_cached)
        local._servers.pop(weights)  # as if the process had ended
        (state,) = tmp_path.iterdir()
        if damage:
            state.write_bytes(state.read_bytes()[:1000])
    assert cached[0] == 0
    assert (cached[1] > 10) is not damage
    assert state.stat().st_size > 1000 or damage


def test_one_server_is_shared_and_strangers_get_nothing(chat: Chat) -> None:
    chat.complete([say("user", "Hi")], Options(max_tokens=1))
    ModelCatalog(SETTINGS).open(NAME).complete([say("user", "Hi")], Options(max_tokens=1))
    assert len(local._servers) == 1
    (running,) = local._servers.values()
    url = f"{running.server.listening_address}/v1/chat/completions"
    answer = httpx.post(url, json={"messages": []}, trust_env=False)
    assert answer.status_code == 401


def test_the_servers_own_key_is_written_nowhere(chat: Chat, tmp_path: Path) -> None:
    stream = Stream(JsonlSink(tmp_path / "trace.jsonl"))
    with stream.active():
        Traced(chat).complete([say("user", "Hi")], Options(max_tokens=1))
    stream.close()
    key = next(iter(local._servers.values())).key
    assert key not in (tmp_path / "trace.jsonl").read_text()
    assert key not in repr(vars(chat.inner.inner))  # type: ignore[attr-defined]


def test_a_projector_that_does_not_fit_is_an_error_and_not_a_crash(
    chat: Chat, tmp_path: Path
) -> None:
    (tmp_path / "mmproj.gguf").write_bytes(b"GGUF" + bytes(200))
    weights = local.LocalWeights(
        ModelCatalog(SETTINGS).file(NAME), mmproj=tmp_path / "mmproj.gguf", context=512
    )
    with pytest.raises(ModelError, match="is not a projector for pictures"):
        local.LocalChat(Card("blind"), weights).complete([], Options())


def test_a_broken_file_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(ModelError, match=r"broken\.gguf cannot be loaded"):
        local.LocalChat(Card("broken"), local.LocalWeights(tmp_path / "broken.gguf")).complete(
            [], Options()
        )


@pytest.mark.usefixtures("chat")
def test_a_prompt_is_read_while_the_question_is_written(tmp_path: Path) -> None:
    """What was read for another question is given up, and the run goes on from the same one."""
    films = tmp_path / "films"
    films.mkdir()
    film = Recipe("talk.mp4", count=40).make(films)
    said = "1\n00:00:00,000 --> 00:00:02,000\nThe slow train goes to Bremen at noon.\n"
    film.with_suffix(".srt").write_text(said, encoding="utf-8")
    options = ServeOptions(films=(films,), models=(f"llm={NAME}",), folder=tmp_path / "data")
    cache = tmp_path / "cache"
    (cache / "models").mkdir(parents=True)
    weights = ModelCatalog(SETTINGS).file(NAME)
    (cache / "models" / weights.name).symlink_to(weights)
    options = replace(options, settings=Settings(cache=CacheSettings(folder=str(cache))))
    catalog, journal = ServedFilms(options), Journal(options.data)
    worker = JobWorker(options, catalog, journal, ServedLibrary(options, catalog))
    (listed,) = catalog.films()
    asked = Ask(film=listed.id, question="Where does the train go?", method="lookup", fresh=True)

    def done(kind: Kind) -> Outcome:
        run = new_id()
        journal.write(RunRecord(id=run, kind=kind, ask=asked, created=time.time()))
        return worker.do(Job(run, kind, asked, BudgetSettings()), Stop(), lambda _: None)

    assert done("index").error is None
    worker.load(asked.model_copy(update={"question": "Which train goes to Bremen?"}), Stop())
    worker.load(asked, Stop())
    usage = done("ask").usage
    assert usage.tokens_in > 60
    assert usage.tokens_cached >= usage.tokens_in - 1
