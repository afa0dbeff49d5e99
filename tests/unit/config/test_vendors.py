"""The usual models by their usual names."""

import pytest

from longtake.config import Settings, merge
from longtake.config.entries import PRESETS, preset_entry
from longtake.config.overlay import Layer
from longtake.errors import ConfigError
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.catalog import KEYS, ModelCatalog


@pytest.mark.parametrize(
    ("name", "host", "model"),
    [
        ("gpt-5.2", "api.openai.com", "gpt-5.2"),
        ("gemini-3-flash", "generativelanguage.googleapis.com", "gemini-3-flash"),
        ("claude-opus-4-6", "api.anthropic.com", "claude-opus-4-6"),
        ("ollama/qwen2.5vl:7b", "", "qwen2.5vl:7b"),
        ("vllm/Qwen/Qwen2.5-VL-7B-Instruct", "", "Qwen/Qwen2.5-VL-7B-Instruct"),
        ("lmstudio/gemma", "", "gemma"),
    ],
)
def test_a_name_says_where_the_model_is(name, host, model):
    catalogue = ModelCatalog(Settings())
    assert catalogue.host(name) == host
    assert catalogue.entry(name).model == model


def test_a_vendor_needs_its_own_key_which_goes_nowhere_else(monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="GEMINI_API_KEY holds no key"):
        ModelCatalog(Settings()).check(["gemini-3-flash"])
    vendors = [preset for preset in PRESETS if not preset.is_server]
    for preset in vendors:
        host = preset.base_url.removeprefix("https://").partition("/")[0]
        assert KEYS[host] == preset.key_env
        assert preset.source.startswith("https://")


@pytest.mark.parametrize("name", ["gpt-oss:20b", "gpt-", "ollama/", "nobody"])
def test_other_names_are_unknown(name):
    assert preset_entry(name) is None
    with pytest.raises(ConfigError, match="unknown model"):
        ModelCatalog(Settings()).entry(name)


def test_an_entry_of_the_same_name_is_laid_over_the_preset():
    mine = {"models": {"claude-x": {"price_in": 3, "price_out": 15, "images": 20}}}
    entry = merge([Layer(mine, "mine")]).models["claude-x"]
    assert (entry.images, entry.price_in, entry.form) == (20, 3, "plain")
    assert entry.base_url == "https://api.anthropic.com/v1"


def test_a_preset_begins_with_what_the_vendor_documents(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-x")
    chat = ModelCatalog(Settings()).bare("claude-x")
    assert isinstance(chat, OpenAIChat)
    assert chat.capabilities.has_refused("schema")
    assert (chat.capabilities.images, chat.card.context) == (100, 200_000)
