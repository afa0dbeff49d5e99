from pathlib import Path

import pytest
from support.server import completion, serve

from longtake import config
from longtake.config import Settings, merge
from longtake.config.entries import (
    BUILTIN_MODELS,
    LocalEntry,
    ModelEntry,
    OpenAIEntry,
    SocraticEntry,
)
from longtake.config.overlay import Layer
from longtake.errors import ConfigError, ModelError
from longtake.llm.backends.local import LocalChat, LocalWeights
from longtake.llm.catalog import KEYS, ModelCatalog, bound_key
from longtake.llm.chat import HERE, Card, Options, price_of, say
from longtake.llm.middleware import ReplyStore

HELLO = [say("user", "Hello?")]


def catalogue(offline: bool = False, **entries: ModelEntry) -> ModelCatalog:
    return ModelCatalog(Settings(models={**BUILTIN_MODELS, **entries}), offline=offline)


def test_an_endpoint_given_outright(tmp_path: Path) -> None:
    with serve(lambda _: completion("hi")) as served:
        chat = catalogue().open(f"{served.url}#some-model", replies=ReplyStore(tmp_path))
        assert chat.complete(HELLO, Options()).text == "hi"
        assert chat.complete(HELLO, Options()).cached
    assert served.requests[0].body["model"] == "some-model"
    assert len(served.requests) == 1
    with pytest.raises(ConfigError, match="after a #"):
        catalogue().open("http://127.0.0.1:8000/v1")


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'local/qwen2\.5-coder-1\.5b'"):
        catalogue().open("local/qwen2.5-coder-1.5")
    with pytest.raises(ConfigError, match="did you mean 'senses'"):
        catalogue().open("sneses")
    with pytest.raises(ConfigError, match="unknown model 'nonsense'; known: "):
        catalogue().open("nonsense")


def test_the_former_name_of_a_model_gives_the_present_one() -> None:
    says = r"local/qwen2\.5-1\.5b is now local/qwen2\.5-coder-1\.5b"
    with pytest.raises(ConfigError, match=says):
        catalogue().open("local/qwen2.5-1.5b")
    with pytest.raises(ConfigError, match=says):
        merge([Layer({"models": {"local/qwen2.5-1.5b": {"threads": 3}}}, "user")])


def test_entries_of_the_configuration_are_checked() -> None:
    settings = merge(
        [Layer({"models": {"mine": {"base_url": "http://127.0.0.1:1/v1", "model": "x"}}}, "user")]
    )
    assert settings.models["mine"].model == "x"
    assert "local/qwen2.5-coder-1.5b" in settings.models
    with pytest.raises(ConfigError, match=r"did you mean 'models\.mine\.base_url'"):
        merge([Layer({"models": {"mine": {"base_ur": "x"}}}, "user")])
    tuned = merge([Layer({"models": {"local/qwen2.5-coder-1.5b": {"threads": 3}}}, "user")])
    assert tuned.models["local/qwen2.5-coder-1.5b"].threads == 3
    assert tuned.models["local/qwen2.5-coder-1.5b"].context == 8192


def test_a_field_of_another_backend_is_named_as_such() -> None:
    with pytest.raises(
        ConfigError, match=r"models\.mine\.file in user is a field of backend 'local'"
    ):
        merge([Layer({"models": {"mine": {"file": "a.gguf"}}}, "user")])
    with pytest.raises(ConfigError, match="did you mean 'openai'"):
        merge([Layer({"models": {"mine": {"backend": "opnai"}}}, "user")])


def test_an_entry_whose_backend_changes_starts_afresh() -> None:
    first = Layer({"models": {"mine": {"base_url": "https://x.example/v1", "context": 9}}}, "a")
    then = Layer({"models": {"mine": {"backend": "local", "file": "a.gguf"}}}, "b")
    assert merge([first, then]).models["mine"] == LocalEntry(file="a.gguf")


def test_where_messages_go_is_known_before_they_are_sent() -> None:
    book = catalogue(
        cloud=OpenAIEntry(base_url="https://api.openai.com/v1"),
        here=OpenAIEntry(base_url="http://localhost:8000/v1"),
        eyes=SocraticEntry(llm="cloud"),
    )
    assert book.hosts(["cloud", "here", "eyes", "local/qwen2.5-coder-1.5b"]) == ["api.openai.com"]
    assert book.hosts(["here", "local/smollm2-135m", "socratic/reader"]) == []


@pytest.mark.parametrize("name", ["cloud", "https://example.com/v1#m"])
def test_offline_forbids_to_leave_the_machine(name: str) -> None:
    book = catalogue(offline=True, cloud=OpenAIEntry(base_url="https://api.openai.com/v1"))
    with pytest.raises(ConfigError, match="--offline forbids"):
        book.open(name)
    book.open("http://127.0.0.1:8000/v1#m")


def test_a_key_goes_to_its_own_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-marked-cloud")
    monkeypatch.setenv("MY_KEY", "sk-marked-mine")
    with serve(lambda _: completion("hi")) as mine, serve(lambda _: completion("hi")) as other:
        book = catalogue(mine=OpenAIEntry(base_url=mine.url, api_key_env="MY_KEY"))
        for name in ("mine", f"{mine.url}#another", f"{other.url}#another"):
            book.open(name).complete(HELLO, Options())
    assert [request.headers.get("Authorization") for request in mine.requests] == [
        "Bearer sk-marked-mine"
    ] * 2
    assert "Authorization" not in other.requests[0].headers


def test_built_in_keys_are_bound_to_their_host_over_https() -> None:
    assert bound_key("https://api.openai.com/v1", []) == "OPENAI_API_KEY"
    assert bound_key("https://api.openai.com:8443/v1", []) == ""
    assert bound_key("http://api.openai.com/v1", []) == ""
    assert bound_key("https://api.openai.com.evil.example/v1", []) == ""


@pytest.mark.parametrize(
    ("name", "pixels", "tokens"),
    [
        ("ollama/qwen2.5vl:7b", 768 * 28 * 28, 0),
        ("vllm/Qwen/Qwen3-VL-8B-Instruct", 768 * 32 * 32, 0),
        ("lmstudio/google/gemma-3-12b-it", 896 * 896, 256),
        ("ollama/gemma3n:e4b", 768 * 768, 0),
        ("llamacpp/SmolVLM2-2.2B", 512 * 512, 0),
        ("ollama/minicpm-v:8b", 2 * 448 * 448, 0),
        ("gpt-4o", 768 * 1365, 0),
        ("claude-some", 1_150_000, 0),
        ("ollama/llava", 768 * 768, 0),
    ],
)
def test_frames_have_the_size_that_the_makers_of_a_model_name(
    name: str, pixels: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    card = ModelCatalog(Settings()).open(name).card
    assert (card.max_pixels, card.picture_tokens or 0) == (pixels, tokens)


def test_prices_are_stated_whole_or_unknown() -> None:
    assert price_of("m", ModelEntry()) is None
    known = price_of(
        "m", ModelEntry(price_in=1.0, price_out=2.0, price_source="price list, 2026-01-01")
    )
    assert known
    assert (known.of(1_000_000, 0, 1_000_000), known.source) == (3.0, "price list, 2026-01-01")
    with pytest.raises(ConfigError, match="go together"):
        price_of("m", ModelEntry(price_in=1.0))
    assert catalogue().open("local/smollm2-135m").card.price is HERE


def test_socratic_entries_need_a_text_model_and_a_film() -> None:
    with pytest.raises(ConfigError, match="no film is given here"):
        catalogue().open("socratic/reader")
    with pytest.raises(ConfigError, match="llm is not set"):
        catalogue(eyes=SocraticEntry()).host("eyes")
    with pytest.raises(ConfigError, match="must name a text model"):
        catalogue(eyes=SocraticEntry(llm="socratic/reader")).host("eyes")


def test_weights_that_are_not_there_say_how_to_get_them(tmp_path: Path) -> None:
    chat = LocalChat(Card("local/smollm2-135m"), LocalWeights(tmp_path / "missing.gguf"))
    with pytest.raises(ModelError, match="longtake models pull local/smollm2-135m"):
        chat.complete(HELLO, Options())
    with pytest.raises(ModelError, match=r"missing\.gguf is not there"):
        catalogue(mine=LocalEntry(file=str(tmp_path / "missing.gguf"))).check(["mine"])
    (tmp_path / "text.gguf").write_text("this is text")
    with pytest.raises(ModelError, match="not a GGUF file"):
        LocalChat(Card("x"), LocalWeights(tmp_path / "text.gguf")).complete(HELLO, Options())


def test_names_with_dots_can_be_set_on_the_command_line() -> None:
    layer = Layer(config.parse_assignment('models."local/qwen2.5-coder-1.5b".threads=3'), "--set")
    assert merge([layer]).models["local/qwen2.5-coder-1.5b"].threads == 3
