"""What every backend keeps to, and what one from another package may not do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from films import FILMS
from support.clocks import TurnedClock

from longtake import config, registry
from longtake.config import Settings, merge
from longtake.config.entries import ENTRIES, LabEntry, ModelEntry, OpenAIEntry
from longtake.config.overlay import Layer, number
from longtake.errors import ConfigError, ModelError
from longtake.llm.backend import Backend, ModelRequest
from longtake.llm.catalog import ModelCatalog, load_backend
from longtake.llm.chat import Card, Message, Options, Reply, Unavailable, say
from longtake.llm.middleware import Cached, ReplyStore

HELLO = [say("user", "Hello?")]


@dataclass(frozen=True)
class EchoEntry(ModelEntry):
    """The settings of the backend under test."""

    address: str = ""
    loudness: float = number(1.0, least=0, most=11)
    greeting: str = "hello"


class EchoChat:
    """Repeats what it hears."""

    calls = failures = 0

    def __init__(self, model: ModelRequest[EchoEntry]) -> None:
        self.entry = model.entry
        self.card = Card(model.name)

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        type(self).calls += 1
        if type(self).failures > 0:
            type(self).failures -= 1
            raise ConnectionResetError("broken pipe")
        return Reply(f"{self.entry.greeting}: {messages[0].text}")


class Echo(Backend[EchoEntry]):
    """A backend of another package."""

    name = "echo"
    settings = EchoEntry
    at_once = 2

    def host(self, model: ModelRequest[EchoEntry]) -> str:
        return model.entry.address

    def open(self, model: ModelRequest[EchoEntry]) -> EchoChat:
        return EchoChat(model)

    def from_name(self, rest: str) -> EchoEntry:
        return EchoEntry(backend="echo", greeting=rest)


class Silent(Echo):
    """Does not say where it sends messages."""

    def host(self, model: ModelRequest[EchoEntry]) -> str:
        return None  # type: ignore[return-value]


class Hostless(Backend[EchoEntry]):
    """Lacks the method altogether."""

    name = "hostless"
    settings = EchoEntry

    def open(self, model: ModelRequest[EchoEntry]) -> EchoChat:
        return EchoChat(model)


class Unsettled(Echo):
    """Its settings are not an entry."""

    settings = dict  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Echo, Silent, Hostless, Unsettled):
        target = f"{__name__}:{kind.__name__}"
        monkeypatch.setitem(registry.backends._targets, kind.__name__.lower(), target)
    EchoChat.calls = EchoChat.failures = 0


def configured(offline: bool = False, **values: Any) -> ModelCatalog:
    """A catalogue with the entry ``mine``, as a user would write it."""
    entry = {"backend": "echo", **values}
    settings = merge([Layer({"models": {"mine": entry}}, "user")])
    return ModelCatalog(settings, offline=offline, clock=TurnedClock())


# built-in backends


@pytest.mark.parametrize("name", ENTRIES)
def test_built_in_backends_take_the_entries_that_the_configuration_checks(name: str) -> None:
    backend = load_backend(name)
    assert (backend.name, backend.settings) == (name, ENTRIES[name])
    assert ENTRIES[name]().backend == name
    assert backend.tries >= 1


def test_scripted_models_give_their_replies_in_order_and_keep_none(tmp_path: Path) -> None:
    settings = merge(
        [Layer({"models": {"two": {"backend": "scripted", "replies": ["A", "B"]}}}, "")]
    )
    chat = ModelCatalog(settings).open("two", replies=ReplyStore(tmp_path))
    assert [chat.complete(HELLO, Options()).text for _ in range(2)] == ["A", "B"]
    with pytest.raises(ModelError, match="ended after 2 replies"):
        chat.complete(HELLO, Options())


def test_a_laboratory_model_can_have_an_entry() -> None:
    catalogue = ModelCatalog(Settings(models={"sharp": LabEntry(model="acuity=1")}))
    named, entered = catalogue.open("lab/acuity=1"), catalogue.open("sharp")
    assert (named.card.name, entered.card.name) == ("lab/acuity=1", "sharp")
    assert entered.card.model == "lab/acuity=1"
    assert catalogue.host("sharp") == ""


def test_models_of_one_endpoint_share_its_limit() -> None:
    url = "http://127.0.0.1:1/v1"
    entries = {name: OpenAIEntry(base_url=url, concurrency=3) for name in ("one", "two")}
    book = ModelCatalog(Settings(models=entries))
    gates = [book.open(name).inner.gate for name in entries]  # type: ignore[attr-defined]
    assert gates[0] is gates[1]
    assert gates[0].max_limit == 3


# settings of a backend from another package


def test_its_settings_are_checked_against_its_own_class() -> None:
    assert configured(address="api.example", loudness=11).entry("mine") == EchoEntry(
        backend="echo", address="api.example", loudness=11.0
    )
    with pytest.raises(ConfigError, match=r"did you mean 'models\.mine\.address'"):
        configured(adress="x").entry("mine")
    with pytest.raises(ConfigError, match=r"models\.mine\.loudness = 12\.0 in user: must be 11"):
        configured(loudness=12).entry("mine")
    with pytest.raises(ConfigError, match=r"models\.mine\.max_tokens"):
        configured(max_tokens=0)


def test_it_can_be_named_by_its_address() -> None:
    by_address = configured(backend=f"{__name__}:Echo", greeting="hey").open("mine")
    for chat in (by_address, ModelCatalog(Settings()).open("echo/hey")):
        assert chat.complete(HELLO, Options()).text == "hey: Hello?"


def test_what_is_not_a_backend_is_refused_with_the_reason() -> None:
    for backend, reason in (
        ("silent", "'echo' does not declare a host"),
        ("hostless", "does not define host"),
        ("unsettled", "must be a dataclass that extends"),
        ("json:loads", "a backend is a class"),
        ("json:JSONDecoder", "it has no name, settings, host, open"),
    ):
        with pytest.raises(ConfigError, match=reason):
            configured(backend=backend).host("mine")


# the host of a backend from another package


def test_offline_refuses_the_host_it_declared() -> None:
    book = configured(offline=True, address="api.example")
    with pytest.raises(ConfigError, match=r"mine is at api\.example, and --offline forbids"):
        book.open("mine")
    with pytest.raises(ConfigError, match="--offline forbids"):
        book.hosts(["mine"])
    here = configured(offline=True, address="localhost")
    assert here.open("mine").complete(HELLO, Options()).text


def test_its_host_is_known_before_anything_is_sent(
    run: Any, film_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # looking at the film takes long and sends nothing
    monkeypatch.setattr("longtake.cli.ask.look_through", lambda *_: None)

    def refuse(*_: object) -> Reply:
        raise ModelError("mine", "refused", "it was asked")

    monkeypatch.setattr(EchoChat, "complete", refuse)
    film = FILMS[0].make(film_folder)
    config.user_config_file().parent.mkdir(parents=True, exist_ok=True)
    config.user_config_file().write_text(
        '[models.mine]\nbackend = "echo"\naddress = "api.example"\nmax_tokens = 8\n'
    )
    asked = ("ask", film, "Which?", "--option", "a", "--option", "b", "--method", "blind")
    code, _, err = run(*asked, "--model", "mine")
    assert code == 4
    assert err.index("sent to api.example") < err.index("it was asked")
    code, _, err = run(*asked, "--model", "mine", "--offline")
    assert code == 2
    assert "--offline forbids" in err
    assert "sent to" not in err


# layers around a backend from another package


def test_its_failing_calls_are_retried() -> None:
    EchoChat.failures = 2
    assert configured().open("mine").complete(HELLO, Options()).text == "hello: Hello?"
    assert EchoChat.calls == 3
    EchoChat.failures = 99
    with pytest.raises(Unavailable, match="tried 5 of 5 times"):
        configured().open("mine").complete(HELLO, Options())


@pytest.mark.parametrize(("concurrency", "most"), [(0, 2), (3, 3)])
def test_its_calls_at_once_are_limited(concurrency: int, most: int) -> None:
    chat = configured(concurrency=concurrency).open("mine")
    assert chat.inner.gate.max_limit == most  # type: ignore[attr-defined]


def test_its_replies_are_cached_and_its_other_errors_are_the_models(tmp_path: Path) -> None:
    chat = configured().open("mine", replies=ReplyStore(tmp_path))
    assert isinstance(chat, Cached)
    chat.complete(HELLO, Options())
    assert chat.complete(HELLO, Options()).cached
    with pytest.raises(ModelError, match="backend 'echo' failed: IndexError"):
        chat.complete([], Options())
