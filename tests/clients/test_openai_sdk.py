"""The ``openai`` package against our endpoint: plain, streamed, retried, cancelled."""

import base64
import threading
import time

import pytest
from clients.conftest import TOKEN, WORLD
from support.patience import PATIENCE

from longtake.llm.media import encode_jpeg
from longtake_bench.lab.footage import LabFootage

MODEL = "longtake/uniform"
CHOICE = next(q for q in WORLD.questions if q.options)
FOOTAGE = LabFootage(WORLD.script)


def prompt(question=CHOICE):
    options = [f"{letter}. {text}" for letter, text in zip("ABCDE", question.options, strict=False)]
    lines = [
        "Select the best answer to the following multiple-choice question based on the video. "
        "Respond with only the letter of the correct option.",
        question.text,
        *options,
        "The best answer is:",
    ]
    return "\n".join(lines)


@pytest.fixture
def openai():
    # takes most of a second, which every process of a test run would need
    import openai

    return openai


@pytest.fixture
def client(openai, address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0) as client:
        yield client


@pytest.fixture
def video(films):
    return {"type": "video_url", "video_url": {"url": f"file://{films}/world/film.mp4"}}


def ask(client, *parts, text=None, **more):
    content = [*parts, {"type": "text", "text": text or prompt()}]
    messages = [{"role": "user", "content": content}]
    return client.chat.completions.create(model=MODEL, messages=messages, **more)


def test_methods_are_models(openai, client):
    assert MODEL in {model.id for model in client.models.list()}
    assert client.models.retrieve("longtake/videoagent").owned_by == "longtake"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("longtake/nothing")


def test_a_letter_is_answered_with_citations_usage_and_what_was_understood(client, video):
    # replies that were kept cost no tokens
    reply = ask(client, video, extra_body={"longtake": {"fresh": True}})
    message, extras = reply.choices[0].message, reply.model_extra["longtake"]
    assert message.content in "ABCDE"
    assert extras["asked"]["form"] == "multiple choice"
    assert extras["asked"]["question"] == CHOICE.text
    assert tuple(extras["asked"]["options"]) == CHOICE.options
    assert extras["footage"] == "film"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
    assert "looked at" in message.model_extra["reasoning_content"]
    for annotation in message.annotations:
        assert "#t=" in annotation.url_citation.url


def test_the_answer_is_that_of_the_method(client, video, films, monkeypatch):
    import longtake

    monkeypatch.setenv("LONGTAKE_CACHE", str(films / "cache"))
    film = longtake.open(films / "world" / "film.mp4")
    model = "lab/acuity=1,hallucination=0"
    direct = film.ask(CHOICE.text, CHOICE.options, method="uniform", model=model, verify=False)
    assert ask(client, video).choices[0].message.content == direct.answer.choice


def test_a_stream_shows_the_steps_and_ends_in_the_same_answer(client, video):
    # replies that were kept cost no tokens
    fresh = {"extra_body": {"longtake": {"fresh": True}}}
    whole = ask(client, video, **fresh)
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    pieces = list(ask(client, video, **fresh, **streamed))
    deltas = [piece.choices[0].delta for piece in pieces if piece.choices]
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    assert any((delta.model_extra or {}).get("reasoning_content") for delta in deltas)
    assert pieces[-1].usage.total_tokens == whole.usage.total_tokens
    assert pieces[-2].model_extra["longtake"]["status"]


def test_films_by_name_and_as_data(client, films):
    named = ask(client, text=f"film:film.mp4 {CHOICE.text}")
    assert named.model_extra["longtake"]["asked"]["form"] == "open-ended"
    data = base64.b64encode((films / "world" / "film.mp4").read_bytes()).decode()
    sent = {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{data}"}}
    reply = ask(client, sent)
    assert reply.choices[0].message.content in "ABCDE"
    assert reply.model_extra["longtake"]["film"].startswith("sent-")


def test_pictures_are_not_passed_off_as_a_film(client):
    parts = []
    for frame in FOOTAGE.at(FOOTAGE.times[:: len(FOOTAGE.times) // 4].tolist()[:4]):
        data = base64.b64encode(encode_jpeg(frame.pixels, 10**6)).decode()
        parts.append({"type": "text", "text": f"<{frame.time:.1f} seconds>"})
        url = {"url": f"data:image/jpeg;base64,{data}"}
        parts.append({"type": "image_url", "image_url": url})
    extras = ask(client, *parts).model_extra["longtake"]
    assert extras["footage"] == "4 pictures with times"
    assert extras["asked"]["question"] == CHOICE.text


@pytest.mark.parametrize(
    ("part", "error", "words"),
    [
        ({"type": "video_url", "video_url": "file:///etc/passwd"}, "NotFoundError", "no film"),
        (
            {"type": "video_url", "video_url": "http://127.0.0.1/a.mp4"},
            "BadRequestError",
            "allow-url",
        ),
        (
            {"type": "video_url", "video_url": "data:video/mp4;base64,AAAA"},
            "BadRequestError",
            "video_url",
        ),
        (
            {"type": "image_url", "image_url": "data:image/png;base64,AAAA"},
            "BadRequestError",
            "not a picture",
        ),
    ],
)
def test_what_cannot_be_opened_is_refused_in_the_protocols_shape(
    openai, client, part, error, words
):
    with pytest.raises(getattr(openai, error), match=words) as caught:
        ask(client, part)
    assert caught.value.body["type"] == "invalid_request_error"


def test_a_wrong_key_is_an_authentication_error(openai, address):
    wrong = openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        wrong.models.list()


def test_a_budget_of_the_model_name_is_kept(client, video):
    messages = [{"role": "user", "content": [video, {"type": "text", "text": prompt()}]}]
    reply = client.chat.completions.create(
        model="longtake/videoagent:calls=1",
        messages=messages,
        extra_body={"longtake": {"fresh": True}},
    )
    extras = reply.model_extra["longtake"]
    assert (extras["status"], extras["usage"]["calls"]) == ("budget_spent", 1)


SLOW = {"longtake": {"models": ["lab/acuity=1,latency=2,sleep=1"], "fresh": True}}


def test_a_retry_after_a_timeout_joins_the_run(openai, address, video, options):
    runs = options.data / "runs"
    before = len(list(runs.iterdir()))
    with openai.OpenAI(
        base_url=f"{address}/v1", api_key=TOKEN, max_retries=30, timeout=1.0
    ) as hasty:
        reply = ask(hasty, video, extra_body=SLOW)
    assert reply.choices[0].message.content in "ABCDE"
    assert len(list(runs.iterdir())) == before + 1


def test_leaving_a_stream_ends_the_run(client, video, address):
    slow = {"longtake": {**SLOW["longtake"], "models": ["lab/acuity=1,latency=600,sleep=1"]}}
    stream = ask(client, video, stream=True, extra_body=slow)
    run = next(iter(stream)).id.removeprefix("chatcmpl-")
    stream.close()
    url = f"{address}/api/v1/runs/{run}"
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        state = client._client.get(url, headers={"Authorization": f"Bearer {TOKEN}"}).json()
        if state["run"]["ended"]:
            break
        threading.Event().wait(0.1)
    assert state["run"]["ended"]
