"""What clients send, in all the shapes that they send it in."""

from __future__ import annotations

import pytest

from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.server.openai.requests import (
    NamedFilm,
    SentFrames,
    SentVideo,
    frame_times,
    read_request,
)

METHODS = ["uniform", "videoagent"]
TEXT = {"type": "text", "text": "What is shown?"}
JPEG = "data:image/jpeg;base64,AAAA"


def wish(*content, **body):
    messages = [{"role": "user", "content": list(content) or "film:a.mp4 What is shown?"}]
    return read_request({"model": "longtake/uniform", "messages": messages, **body}, METHODS)


def video(url, **more):
    return {"type": "video_url", "video_url": {"url": url, **more}}


def image(url=JPEG):
    return {"type": "image_url", "image_url": {"url": url}}


def says(text):
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    "part",
    [
        video("file:///films/a.mp4"),
        video("file:///films/a.mp4", nframes=8, fps=-1),
        {"type": "video_url", "video_url": "file:///films/a.mp4"},
        {**video("file:///films/a.mp4"), "uuid": "1"},
    ],
)
def test_a_video_by_address(part):
    read = wish(part, TEXT, mm_processor_kwargs={}, media_io_kwargs={"video": {"num_frames": 8}})
    assert read.footage == SentVideo("file:///films/a.mp4")
    assert read.asked.text == "What is shown?"


def test_a_list_of_frames_in_one_address():
    url = "data:video/jpeg;base64,AAAA,BBBB,CCCC"
    how = {"video": {"fps": 2.0, "frames_indices": [0, 10, 20], "total_num_frames": 30}}
    read = wish(video(url), TEXT, media_io_kwargs=how)
    assert read.footage == SentFrames(
        tuple(f"data:image/jpeg;base64,{letter * 4}" for letter in "ABC"), (0.0, 5.0, 10.0)
    )
    assert wish(video(url), TEXT).footage.times is None


@pytest.mark.parametrize(
    ("how", "times"),
    [
        ({"duration": 9.0}, (0.0, 3.0, 6.0)),
        ({"duration": 9.0, "total_num_frames": 90, "frames_indices": [0, 30, 60]}, (0, 3, 6)),
        ({"fps": 10, "frames_indices": [0, 30]}, None),
        ({"fps": 10, "frames_indices": [5, 5, 5]}, None),
        ({"fps": float("nan"), "frames_indices": [1, 2, 3]}, None),
        ({"fps": 2}, None),
    ],
)
def test_times_of_frames(how, times):
    assert frame_times(3, how) == times


@pytest.mark.parametrize(
    ("labels", "times"),
    [
        (["<0.0 seconds>", "<12.3 seconds>"], (0.0, 12.3)),
        (["Frame 1 at 00:00:05:", "Frame 2 at 00:01:00:"], (5.0, 60.0)),
        (["[0:05]", "[1:00]"], (5.0, 60.0)),
        (["<12 seconds>", "<3 seconds>"], None),
        (["first", "second"], None),
    ],
)
def test_a_series_of_pictures_with_or_without_times(labels, times):
    parts = [part for label in labels for part in (says(label), image())]
    read = wish(*parts, TEXT)
    assert read.footage == SentFrames((JPEG, JPEG), times)
    assert read.asked.text.endswith("What is shown?")


def test_labels_of_pictures_are_no_part_of_the_question():
    assert wish(says("<1 seconds>"), image(), says("<2 seconds>"), image(), TEXT).asked.text == (
        "What is shown?"
    )


@pytest.mark.parametrize(
    ("text", "name", "question"),
    [
        ("film:a.mp4 Who enters?", "a.mp4", "Who enters?"),
        ('In film:"my film.mp4", who enters?', "my film.mp4", "In , who enters?"),
        ("Who enters? (film:holiday/a.mp4)", "holiday/a.mp4", "Who enters? ()"),
    ],
)
def test_a_film_by_name(text, name, question):
    read = read_request(
        {"model": "longtake/uniform", "messages": [{"role": "user", "content": text}]}, METHODS
    )
    assert read.footage == NamedFilm(name)
    assert read.asked.text == question


def test_earlier_turns_are_context_and_keep_their_film():
    messages = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "film:a.mp4 Who enters?"},
        {"role": "assistant", "content": "Bob."},
        {"role": "user", "content": "What does he carry?"},
    ]
    read = read_request({"model": "longtake/uniform", "messages": messages}, METHODS)
    assert read.footage == NamedFilm("a.mp4")
    assert read.carried == "user: Who enters?\nassistant: Bob."
    assert read.asked.text == "What does he carry?"


def test_budgets_come_from_the_model_and_the_body_and_the_strictest_counts():
    read = wish(
        model="longtake/videoagent:calls=20+cost=0.5",
        longtake={
            "budget": {"calls": 10, "seconds": 60},
            "models": ["lab/acuity=1"],
            "fresh": True,
        },
    )
    assert read.budget == BudgetSettings(seconds=60, cost=0.5, calls=10)
    assert (read.method, read.models, read.fresh) == ("videoagent", ("lab/acuity=1",), True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"model": "gpt-9"}, "unknown model"),
        ({"model": "longtake/unifrom"}, "did you mean 'longtake/uniform'"),
        ({"model": "longtake/uniform:calls=-1"}, "positive"),
        ({"model": "longtake/uniform:costs=1"}, "did you mean 'cost'"),
        ({"n": 2}, "one answer"),
        ({"tools": [{}]}, "tools: not supported"),
        ({"logprobs": True}, "logprobs: not supported"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"stream_options": {}}, "together with stream"),
        ({"seed": "x"}, "seed"),
        ({"longtake": {"method": "x"}}, "longtake.method: Extra inputs"),
        ({"longtake": {"models": "x"}}, "longtake.models: .*valid tuple"),
        ({"messages": []}, "at least one"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role 'tool'"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "the user's"),
        ({"messages": [{"role": "user", "content": "Who?"}]}, "no film"),
        ({"messages": [{"role": "user", "content": "film:a.mp4"}]}, "asks nothing"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio"),
        ({"messages": [{"role": "user", "content": [video(""), TEXT]}]}, "address is missing"),
        ({"messages": [{"role": "user", "content": [video("a"), video("b"), TEXT]}]}, "one film"),
        ({"messages": [{"role": "user", "content": [video("a"), image(), TEXT]}]}, "not both"),
    ],
)
def test_what_cannot_be_done_is_refused(body, words):
    with pytest.raises(ConfigError, match=words):
        wish(**body)
