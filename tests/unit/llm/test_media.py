"""Frames that are sent together: what stands where on a contact sheet and in a video."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image as Picture
from support.listening import listening
from support.server import Request, Send, chat_at, completion, serve

from longtake.config import BudgetSettings, Settings
from longtake.footage.plain import FootageWithout
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.llm.budget import Ledger
from longtake.llm.capabilities import Capabilities
from longtake.llm.chat import (
    Card,
    Image,
    Options,
    ToolSpec,
    estimate,
    estimate_messages,
    request_hash,
    say,
)
from longtake.llm.media import contact_sheet, encode_video, stamped
from longtake.llm.middleware import Traced
from longtake.llm.structured.ask import compose
from longtake.prompts import Plain
from longtake.runner.films import open_film
from longtake.tracing.events import ChatCalled, FramesSeen
from longtake.types import Frame, Question, Segment
from longtake.video.clip import Encoding, write_film
from longtake_bench.lab import frame_code
from longtake_bench.lab.frame_code import Moment


def coded(second: int) -> Frame:
    """A frame of a laboratory film, which shows its second as a code."""
    pixels = np.full((frame_code.HEIGHT, frame_code.WIDTH, 3), 90, np.uint8)
    frame_code.stamp(pixels, Moment(7, 60, second))
    return Frame(float(second), pixels)


def second_of(pixels: np.ndarray) -> int | None:
    moment = frame_code.read(pixels)
    return moment and moment.second


@pytest.mark.parametrize("number", [1, 2, 4, 7, 9])
def test_each_tile_of_a_sheet_shows_its_frame_and_its_own_time(number: int) -> None:
    frames = [coded(61 * place) for place in range(number)]
    limit = 768 * 768
    sheet = contact_sheet(frames, limit)
    assert sheet.shape[0] * sheet.shape[1] <= limit
    columns = int(np.ceil(np.sqrt(number)))
    width = sheet.shape[1] // columns
    height = sheet.shape[0] // int(np.ceil(number / columns))
    for place, frame in enumerate(frames):
        row, column = divmod(place, columns)
        tile = sheet[row * height :, column * width :][:height, :width]
        assert second_of(tile) == frame.time
        corner = np.asarray(stamped(frame, (width, height)))[: height // 5]
        assert (tile[: height // 5] == corner).all(), "its own time"


def test_the_time_is_written_into_each_tile_and_differs() -> None:
    blank = np.full((90, 160, 3), 128, np.uint8)
    first, second = (np.asarray(stamped(Frame(time, blank), (160, 90))) for time in (0.0, 61.0))
    assert (first != second).any()
    assert (first[20:] == 128).all(), "only the corner is covered"


def test_a_video_shows_one_frame_a_second_in_order() -> None:
    frames = [coded(10 * place) for place in range(5)]
    with av.open(io.BytesIO(encode_video(frames, 300 * 300))) as file:
        shown = list(file.decode(video=0))
    assert [second_of(each.to_ndarray(format="rgb24")) for each in shown] == [0, 10, 20, 30, 40]
    assert [each.time for each in shown] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert shown[0].width * shown[0].height <= 300 * 300


def shown(number: int) -> list[str | Image]:
    parts: list[str | Image] = ["Look:"]
    for place in range(number):
        parts += [f"[00:00:{place:02}]", Image(coded(place))]
    return [*parts, "What is it?"]


def parts_of(request: Request) -> list[dict[str, Any]]:
    return list(request.body["messages"][0]["content"])


def seconds_in(part: dict[str, Any]) -> list[int | None]:
    """The seconds that a part shows."""
    if part["type"] == "image_url":
        data = base64.b64decode(part["image_url"]["url"].partition("base64,")[2])
        return [second_of(np.asarray(Picture.open(io.BytesIO(data)).convert("RGB")))]
    value = next(iter(part[part["type"]].values())).rpartition("base64,")[2]
    with av.open(io.BytesIO(base64.b64decode(value))) as file:
        return [second_of(each.to_ndarray(format="rgb24")) for each in file.decode(video=0)]


def test_frames_are_sent_as_a_video_that_counts_as_its_frames() -> None:
    with serve(lambda _: completion("seen")) as served:
        reply = chat_at(served, show="video").complete([say("user", *shown(4))], Options())
    first, words, video, last = parts_of(served.requests[0])
    assert (first["text"], last["text"]) == ("Look:", "What is it?")
    assert words["text"].startswith("4 frames")
    assert "00:00:00" in words["text"]
    assert video["type"] == "video_url"
    assert video["video_url"]["url"].startswith("data:video/mp4;base64,")
    assert seconds_in(video) == [0, 1, 2, 3]
    assert reply.usage.frames == 4


def test_a_server_is_told_to_read_every_frame_of_a_video_unless_it_refuses() -> None:
    def act(request: Request) -> Send:
        if "media_io_kwargs" in request.body:
            return Send(400, {"message": "Unrecognized request argument: media_io_kwargs"})
        return completion("seen")

    with serve(act) as served:
        chat = chat_at(served, show="video")
        for _ in range(2):
            chat.complete([say("user", *shown(4))], Options())
        chat.complete([say("user", *shown(1))], Options())
    sent = [request.body.get("media_io_kwargs") for request in served.requests]
    # refused once, then left out; a single frame is a picture
    assert sent == [{"video": {"num_frames": -1}}, None, None, None]
    assert parts_of(served.requests[2])[2]["type"] == "video_url"


def test_twenty_frames_are_three_sheets() -> None:
    with serve(lambda _: completion("seen")) as served:
        chat_at(served, show="sheets").complete([say("user", *shown(20))], Options())
    parts = parts_of(served.requests[0])
    assert [part["type"] for part in parts] == ["text", *["text", "image_url"] * 3, "text"]
    numbers = [part["text"].split()[0] for part in parts[1:-1:2]]
    assert numbers == ["9", "9", "2"]


def test_a_frame_that_is_left_over_is_a_picture_with_its_time() -> None:
    with serve(lambda _: completion("seen")) as served:
        chat_at(served, show="sheets").complete([say("user", *shown(10))], Options())
    *_, label, picture, _ = parts_of(served.requests[0])
    assert (label["text"], seconds_in(picture)) == ("[00:00:09]", [9])


@pytest.mark.parametrize("show", ["sheets", "video"])
def test_one_frame_is_a_picture_with_its_time(show: Any) -> None:
    with serve(lambda _: completion("seen")) as served:
        chat_at(served, show=show).complete([say("user", *shown(1))], Options())
    parts = parts_of(served.requests[0])
    assert [part["type"] for part in parts] == ["text", "text", "image_url", "text"]
    assert parts[1]["text"] == "[00:00:00]"


REFUSALS = {
    "video_url": "unsupported content[].type",  # llama.cpp
    "input_video": "video input is not supported - hint: provide the mmproj",
    "file": "Invalid value: 'file'. Supported content part types are: 'text' and 'image_url'.",
}


@pytest.mark.parametrize("part", REFUSALS)
def test_a_server_that_refuses_a_video_gets_pictures_from_then_on(part: str) -> None:
    def act(request: Request) -> Send:
        refused = part in {each["type"] for each in parts_of(request)}
        return Send(400, {"message": REFUSALS[part]}) if refused else completion("seen")

    with serve(act) as served, listening() as heard:
        chat = chat_at(served, show="video")
        chat.capabilities.declare(video=part)
        for _ in range(2):
            assert chat.complete([say("user", *shown(3))], Options()).text == "seen"
    assert [parts_of(each)[2]["type"] for each in served.requests] == [part, *["image_url"] * 2]
    sent = [each for each in parts_of(served.requests[-1]) if each["type"] != "text"]
    assert [second for each in sent for second in seconds_in(each)] == [0, 1, 2]
    assert [note.data["feature"] for note in heard.notes("left_out")] == ["video"]
    assert chat.card.vision is not False


@pytest.mark.parametrize(("entry", "sent"), [("file", "file"), ("input_video", "input_video")])
def test_a_documented_part_is_sent_at_once(entry: str, sent: str) -> None:
    capabilities = Capabilities()
    capabilities.declare(video=entry)
    assert capabilities.video_part == sent
    capabilities.refuse("there", "video", "no")
    assert capabilities.video_part is None


def test_traces_keep_each_frame_and_the_request_names_how_they_were_shown() -> None:
    with serve(lambda _: completion("seen")) as served, listening() as heard:
        chat = Traced(chat_at(served, show="video"))
        slots = {"question": Question("Who?"), "speech": "", "length": "3 s", "manner": ""}
        messages = compose(chat, "baselines/uniform", slots, [coded(0), coded(9)], "", 10)
        chat.complete(messages, Options())
    (seen,) = heard.of(FramesSeen)
    assert [frame.time for frame in seen.frames] == [0.0, 9.0]
    (call,) = heard.of(ChatCalled)
    assert call.usage.frames == 2
    assert [part["time"] for part in call.messages[1]["parts"] if "image" in part] == [0.0, 9.0]
    plain = Card("there", model="m")
    assert call.request != request_hash(plain, messages, Options())


def test_a_sheet_is_reserved_for_as_less_than_its_pictures() -> None:
    def estimated(show: Any) -> int:
        with serve(lambda _: completion("seen")) as served:
            chat = chat_at(served, show=show, max_pixels=300 * 300)
            slots = {"question": Question("Who?"), "speech": Plain(""), "length": "3 s"}
            frames = [coded(place) for place in range(9)]
            return estimate_messages(
                compose(chat, "baselines/uniform", {**slots, "manner": ""}, frames, "", 10)
            )

    assert estimated("sheets") < estimated("pictures") - 700
    assert estimated("video") == estimated("pictures")


@pytest.fixture
def five_a_second(tmp_path: Path) -> Film:
    """A film of four seconds whose twenty frames show their number."""
    path = tmp_path / "film.mp4"
    pictures = [coded(number).pixels for number in range(20)]
    write_film(path, pictures, Encoding(fps=Fraction(5)))
    return open_film(path, Settings())


def clip_from(film: Footage, act: Any, clip_frames: int) -> tuple[list[Request], Any, Any]:
    """The requests of a step that shows two frames, a second apart; what was seen and used."""
    with serve(act) as served, listening() as heard:
        chat = chat_at(served, show="video", clip_frames=clip_frames)
        slots = {"question": Question("Who?"), "speech": "", "length": "4 s", "manner": ""}
        messages = compose(chat, "baselines/uniform", slots, film.at([1.0, 2.0]), "", 10)
        usage = chat.complete(messages, Options()).usage
    (seen,) = heard.of(FramesSeen)
    return served.requests, [frame.time for frame in seen.frames], usage


def test_a_clip_holds_every_frame_between_at_the_films_own_rate(five_a_second: Film) -> None:
    (request,), seen, usage = clip_from(five_a_second, lambda _: completion("seen"), 6)
    words, video = (request.body["messages"][1]["content"][place] for place in (1, 2))
    assert words["text"].startswith("6 frames of the film as a video at its own speed")
    assert seconds_in(video) == [5, 6, 7, 8, 9, 10]
    data = base64.b64decode(video["video_url"]["url"].partition("base64,")[2])
    with av.open(io.BytesIO(data)) as file:
        times = [each.time for each in file.decode(video=0)]
    assert times == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert seen == pytest.approx([1.0, 1.2, 1.4, 1.6, 1.8, 2.0])
    assert usage.frames == 6, "budgets count them"


def test_a_stretch_with_more_frames_than_a_clip_may_have_goes_as_chosen(
    five_a_second: Film,
) -> None:
    (request,), seen, usage = clip_from(five_a_second, lambda _: completion("seen"), 5)
    assert seconds_in(request.body["messages"][1]["content"][2]) == [5, 10]
    assert (seen, usage.frames) == ([1.0, 2.0], 2)


def test_a_server_that_takes_no_video_gets_the_chosen_frames_only(five_a_second: Film) -> None:
    def act(request: Request) -> Send:
        kinds = {part["type"] for part in request.body["messages"][1]["content"]}
        refused = kinds - {"text", "image_url"}
        return Send(400, {"message": REFUSALS[refused.pop()]}) if refused else completion("seen")

    requests, _, usage = clip_from(five_a_second, act, 6)
    parts = requests[-1].body["messages"][1]["content"]
    assert [part["text"] for part in parts[1:5:2]] == ["[00:00:01]", "[00:00:02]"]
    assert [seconds_in(part) for part in parts if part["type"] == "image_url"] == [[5], [10]]
    assert usage.frames == 2


class Damaged:
    """A film whose second frame cannot be decoded, so that the first stands for it."""

    def between(self, *_: Any) -> list[Frame]:
        return [coded(0), coded(0), coded(1), coded(2)]

    def at(self, _: Any) -> list[Frame]:
        return [replace(coded(second), film=self) for second in (0, 2)]


def test_a_frame_that_stands_for_a_damaged_one_is_sent_once() -> None:
    film: Any = Damaged()
    (request,), seen, _ = clip_from(film, lambda _: completion("seen"), 6)
    assert seen == [0.0, 1.0, 2.0]
    assert seconds_in(request.body["messages"][1]["content"][2]) == [0, 1, 2]


def test_a_clip_never_shows_what_was_removed(five_a_second: Film) -> None:
    left = FootageWithout(five_a_second, [Segment(1.3, 1.7)])
    _, seen, _ = clip_from(left, lambda _: completion("seen"), 6)
    assert seen == [1.0, 2.0]


def test_a_time_has_as_many_tokens_as_characters() -> None:
    """As with Qwen's tokenizer, which keeps digits apart."""
    assert estimate("[00:01:10]") == 10
    assert estimate("[00:01:10] 猫") == 10 + 2
    assert estimate("nothing but letters") == 7


def test_tools_that_are_offered_are_reserved_for() -> None:
    tool = ToolSpec("look", "Looks closely.", {"type": "object", "properties": {}})
    messages = [say("user", "Look.")]
    ledger = Ledger(BudgetSettings(tokens=1000))
    held = [
        ledger.reserve(Card("m"), messages, Options(max_tokens=10, tools=tools))[0].tokens
        for tools in ((), (tool,))
    ]
    assert held[1] - held[0] > 20
