"""Small models are recognised, and asked less."""

import pytest
from support.server import Send, serve

from longtake.config import Settings
from longtake.config.entries import OpenAIEntry
from longtake.llm.capabilities import (
    Capabilities,
    KnownCapabilities,
    card_with,
    parameters,
    why_small,
)
from longtake.llm.chat import Card
from longtake.methods.base import configure
from longtake.methods.videoagent.method import VideoAgent
from longtake.registry import methods
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1.5),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 0.135),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 72),
        ("gemma-3-4b-it", 4),
        ("gpt-4o", None),
        ("llama-3.2-1B", 1),
        ("mixtral-8x7b", None),
        ("claude-3b2", None),
    ],
)
def test_names_tell_sizes(name: str, billions: float | None) -> None:
    assert parameters(name) == billions


@pytest.mark.parametrize(
    ("card", "facts", "why"),
    [
        (Card("m", model="x-1.5b"), {}, "1.5 billion"),
        (Card("m", model="x-70b"), {}, ""),
        (Card("m", model="x", context=4096), {}, "4096 tokens"),
        (Card("m", model="x", context=8192), {}, ""),
        (Card("m", model="x", context=8192), {"enforced": False}, "8192 tokens"),
        (Card("m", model="x"), {"reading": 30.0}, "30 tokens per second"),
        (Card("m", model="x"), {"reading": 3000.0}, ""),
    ],
)
def test_what_makes_a_model_small(card: Card, facts: dict[str, float], why: str) -> None:
    assert why in why_small(card, **facts)
    assert bool(why_small(card, **facts)) == bool(why)


def test_what_a_probe_measured_is_on_the_card() -> None:
    assert card_with(Card("m", model="x"), Capabilities(KnownCapabilities(reading=20.0))).small


def method(models: tuple[str, ...], fields: dict[str, object] | None = None) -> VideoAgent:
    session = Session(assignment=ModelAssignment(models))
    made = session.with_fields("videoagent", fields or {}).method("videoagent")
    assert isinstance(made, VideoAgent)
    return made


SMALL = configure(VideoAgent, {"preset": "small"})


def test_a_user_of_the_built_in_model_types_no_settings() -> None:
    assert method(()) == SMALL
    assert method(("local/smollm2-135m",)) == SMALL
    assert method((), {"preset": "full"}) == VideoAgent(), "and can still have the defaults"
    assert method((), {"max_rounds": 5}).max_rounds == 5, "what is set wins"
    assert method((), {"max_rounds": 5}).initial_frames == SMALL.initial_frames
    assert method((), {"preset": "paper"}).max_requests is None


def test_other_models_get_the_defaults() -> None:
    assert method(("lab/acuity=0.8",)) == VideoAgent()
    assert method(("http://127.0.0.1:9/v1#big-70b",)) == VideoAgent()
    assert method(("http://127.0.0.1:9/v1#tiny-1b",)) == SMALL
    # one large model among the roles is enough
    mixed = Session(assignment=ModelAssignment(("llm=http://127.0.0.1:9/v1#big-70b",)))
    assert mixed.method("symphony") == methods.get("symphony")()


def test_a_small_model_reads_words_and_no_tags() -> None:
    class Film:
        has = frozenset({"pictures"})

    def captioner(*models: str) -> str:
        return Session(assignment=ModelAssignment(models))._models_for(VideoAgent.roles, Film())[
            "captioner"
        ]

    assert captioner() == "senses/words"
    assert captioner("llm=http://127.0.0.1:9/v1#big-70b") == "senses"
    assert captioner("captioner=senses") == "senses"
    assert captioner("test/eyes") == "test/eyes"


def test_a_runs_method_stays_the_same_whatever_is_learned() -> None:
    with serve(lambda _: Send(404, {})) as served:
        entry = OpenAIEntry(model="m", base_url=served.url)
        settings = Settings(models={"there": entry})
        session = Session(settings, ModelAssignment(("there",))).settled("videoagent")
        catalogue = session._catalogue()
        catalogue.bare("there").capabilities.learn(context=2048)  # type: ignore[attr-defined]
        assert catalogue.is_small("there")
        assert session.method("videoagent") == VideoAgent()
        assert Session(settings, ModelAssignment(("there",))).method("videoagent") == SMALL


def test_an_endpoint_that_tells_a_short_context_is_known_before_the_first_question() -> None:
    listed = {"data": [{"id": "m", "max_model_len": 2048}]}
    with serve(lambda _: Send(200, listed)) as served:
        entry = OpenAIEntry(model="m", base_url=served.url)
        session = Session(Settings(models={"there": entry}), ModelAssignment(("there",)))
        assert session.method("videoagent") == VideoAgent(), "an estimate contacts nobody"
        assert served.requests == []
        assert session.settled("videoagent").method("videoagent") == SMALL
