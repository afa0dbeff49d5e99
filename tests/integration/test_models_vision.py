"""The real runtime on tiny vision models with random weights, which the tests write."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from films import pictures
from support.listening import listening
from support.vision_models import (
    VisionModel,
    projector_keys,
    projector_tensors,
    write_gguf,
    write_vision_model,
)

from longtake import registry
from longtake.config import CacheSettings, Settings
from longtake.config.entries import LocalEntry
from longtake.errors import ModelError
from longtake.llm.backends import local
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Chat, Image, Options, say
from longtake.llm.middleware import Traced
from longtake.llm.structured.ask import ask
from longtake.runner.assignment import ModelAssignment
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.tracing.events import ChatCalled, FramesSeen
from longtake.types import Frame, Question
from longtake.video.clip import write_film

LETTERS = ("A", "B", "C", "D")
ANSWER = Options(max_tokens=1, letters=LETTERS)
NEEDS_FFMPEG = pytest.mark.skipif(
    not shutil.which("ffprobe"), reason="needs the programs of FFmpeg"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("vision")
    local.close_all()


@pytest.fixture(scope="module")
def qwen(folder: Path) -> VisionModel:
    return write_vision_model(folder / "qwen2vl", "qwen2vl")


@pytest.fixture(scope="module")
def llava(folder: Path) -> VisionModel:
    return write_vision_model(folder / "llama", "llama")


def settings_of(model: VisionModel, folder: Path, **changes: Any) -> Settings:
    values = {"file": str(model.file), "mmproj": str(model.mmproj), "context": 16384, "threads": 2}
    values |= {"max_tokens": 256, "max_pixels": 56 * 56, **changes}
    entry = LocalEntry(**values)
    cache = CacheSettings(folder=str(folder / "cache"))
    return Settings(models={"tiny": entry}, cache=cache)


def open_tiny(model: VisionModel, folder: Path, **changes: Any) -> Chat:
    return ModelCatalog(settings_of(model, folder, **changes)).open("tiny")


@pytest.fixture(scope="module", params=["qwen2vl", "llama"])
def chat(request: pytest.FixtureRequest, folder: Path) -> Chat:
    """Both kinds of model, loaded once; a file of theirs is loaded in another process first."""
    model = request.getfixturevalue({"qwen2vl": "qwen", "llama": "llava"}[request.param])
    return open_tiny(model, folder, max_pixels=224 * 224)


@pytest.fixture(scope="module")
def tiny(qwen: VisionModel, folder: Path) -> Chat:
    return open_tiny(qwen, folder, max_pixels=224 * 224)


def picture(seed: int, height: int = 56, width: int = 56) -> Image:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)
    return Image(Frame(float(seed), pixels))


def show(chat: Chat, *shown: Image, options: Options = ANSWER) -> Any:
    return chat.complete([say("user", "Look:", *shown, "Which?")], options)


def test_the_prompt_grows_with_each_picture(chat: Chat) -> None:
    sizes = [show(chat, *map(picture, range(n))).usage.tokens_in for n in range(4)]
    first, second, third = np.diff(sizes)
    assert first == second == third >= 8


def test_the_prompt_grows_with_the_size_of_a_picture(tiny: Chat) -> None:
    small, large = (show(tiny, picture(1, side, side)).usage.tokens_in for side in (56, 168))
    assert large > small + 20


def test_letters_depend_on_the_picture_and_on_the_order_of_pictures(chat: Chat) -> None:
    """So pictures arrive, in order."""
    one, two = picture(1), picture(2)
    odds = show(chat, one).odds
    assert set(odds) == set(LETTERS)
    assert show(chat, one).odds == pytest.approx(odds, rel=1e-3)
    assert show(chat, two).odds != pytest.approx(odds, rel=0.05)
    assert show(chat, one, two).odds != pytest.approx(show(chat, two, one).odds, rel=0.02)


def test_a_reply_about_pictures_keeps_to_its_schema(chat: Chat) -> None:
    schema = {
        "type": "object",
        "properties": {
            "caption": {"type": "string", "maxLength": 40},
            "choice": {"type": "string", "enum": ["A", "B"]},
        },
        "required": ["caption", "choice"],
        "additionalProperties": False,
    }
    reply = show(chat, picture(1), picture(2), options=Options(max_tokens=200, schema=schema))
    assert json.loads(reply.text)["choice"] in ("A", "B")
    assert reply.usage.frames == 2


def test_sheets_save_tokens_and_their_order_matters(qwen: VisionModel, folder: Path) -> None:
    """At the same limit of pixels, which a picture of its own uses up and a tile shares."""
    pixels = 224 * 224
    chats = {
        show: open_tiny(qwen, folder, max_pixels=pixels, show=show)
        for show in ("pictures", "sheets")
    }
    shown = {
        "pictures": [Image(picture(n, 224, 224).frame, pixels) for n in range(9)],
        "sheets": [Image(picture(n, 224, 224).frame, pixels // 9) for n in range(9)],
    }
    alone, together = (show(chats[way], *shown[way]) for way in ("pictures", "sheets"))
    assert together.usage.frames == alone.usage.frames == 9
    assert 2 * together.usage.tokens_in < alone.usage.tokens_in
    turned = show(chats["sheets"], *reversed(shown["sheets"]))
    assert turned.odds != pytest.approx(together.odds, rel=0.001)


def test_a_runtime_without_a_decoder_for_videos_gets_pictures(
    qwen: VisionModel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp decodes videos with the programs of FFmpeg, which are not on the path here."""
    monkeypatch.setenv("PATH", str(folder))
    chat = open_tiny(qwen, folder, show="video", context=2048)
    with listening() as heard:
        reply = show(chat, *map(picture, range(3)))
    assert [note.data["feature"] for note in heard.notes("left_out")] == ["video"]
    assert reply.usage.frames == 3
    plain = open_tiny(qwen, folder, context=2048)
    assert reply.odds == pytest.approx(show(plain, *map(picture, range(3))).odds, rel=1e-3)


@NEEDS_FFMPEG
def test_a_longer_clip_makes_a_longer_prompt(
    qwen: VisionModel, folder: Path, tmp_path: Path
) -> None:
    """At the film's own rate: two frames are chosen, and all between them are sent."""
    write_film(tmp_path / "film.mp4", pictures(40))  # ten a second
    film = open_film(tmp_path / "film.mp4", settings_of(qwen, folder))
    chat = Traced(open_tiny(qwen, folder, show="video", clip_frames=40))
    with listening() as heard:
        for end in (1.0, 2.0, 3.0):
            slots = {"question": Question("Who?"), "speech": "", "length": "4 s", "manner": ""}
            ask(chat, "baselines/uniform", frames=film.at([0.0, end]), max_tokens=1, **slots)
    calls = heard.of(ChatCalled)
    assert [call.usage.frames for call in calls] == [11, 21, 31]
    short, longer, longest = (call.usage.tokens_in for call in calls)
    assert short + 20 < longer < longest - 20
    assert not heard.notes("left_out"), "the runtime takes the video"


def test_too_many_pictures_and_too_long_a_prompt_are_told_apart(
    qwen: VisionModel, folder: Path
) -> None:
    chat = open_tiny(qwen, folder, context=512)
    with listening() as heard:
        reply = show(chat, *map(picture, range(60)))
    shown = [note.data["shown"] for note in heard.notes("pictures_left_out")]
    assert shown == [45, 33]
    assert reply.usage.frames == 33
    with pytest.raises(ModelError, match="the prompt is too long") as raised:
        chat.complete([say("user", picture(1), picture(2), "word " * 200)], ANSWER)
    assert raised.value.problem == "context"


def test_a_step_shows_as_many_pictures_as_fit(qwen: VisionModel, folder: Path) -> None:
    chat = Traced(open_tiny(qwen, folder, context=1536, max_tokens=64))
    frames = [picture(number).frame for number in range(200)]
    with listening() as heard:
        slots = {"question": Question("Who?"), "speech": "", "length": "200 s", "manner": ""}
        ask(chat, "baselines/uniform", frames=frames, **slots)
    planned, tried = (note.data for note in heard.notes("pictures_left_out"))
    assert (planned["wanted"], tried["wanted"]) == (200, planned["shown"])
    (seen,) = heard.of(FramesSeen)
    assert len(seen.frames) == planned["shown"]
    (call,) = heard.of(ChatCalled)
    assert call.usage.frames == tried["shown"] > 10


def test_a_picture_that_is_too_large_for_the_context_is_named(
    qwen: VisionModel, folder: Path
) -> None:
    chat = open_tiny(qwen, folder, context=1024, max_pixels=2**30)
    slots = {"question": Question("Who?"), "speech": "", "length": "9 s", "manner": ""}
    with pytest.raises(ModelError, match="one picture needs about 1308 tokens") as raised:
        ask(chat, "baselines/uniform", frames=[picture(1, 1000, 1000).frame], **slots)
    assert raised.value.problem == "context"


def test_a_text_model_refuses_pictures(qwen: VisionModel, folder: Path) -> None:
    chat = open_tiny(qwen, folder, mmproj="", context=512)
    with pytest.raises(ModelError, match="takes no pictures") as raised:
        show(chat, picture(1))
    assert raised.value.problem == "refused"


@pytest.mark.parametrize(
    ("kind", "missing", "why"),
    [
        ("qwen2vl", "v.blk.1.attn_q.bias", "makes the runtime crash"),
        ("llama", "mm.2.weight", "makes the runtime crash"),
        ("llama", "v.blk.0.attn_out.weight", "unable to find tensor v.blk.0.attn_out.weight"),
    ],
)
def test_a_projector_that_lacks_a_tensor_is_an_error_and_not_a_crash(
    kind: Any, missing: str, why: str, tmp_path: Path
) -> None:
    chat = open_tiny(write_vision_model(tmp_path, kind, without=[missing]), tmp_path)
    with pytest.raises(ModelError, match=f"not a projector for {kind}.gguf .*{why}"):
        show(chat, picture(1))


def test_a_projector_of_another_width_is_refused(
    qwen: VisionModel, folder: Path, tmp_path: Path
) -> None:
    wide = tmp_path / "wide.gguf"
    write_gguf(wide, projector_keys("qwen2vl", 96), projector_tensors("qwen2vl", 96))
    with pytest.raises(ModelError, match=r"mismatch between text model \(n_embd = 64\)"):
        show(open_tiny(qwen._replace(mmproj=wide), tmp_path), picture(1))


def test_files_that_do_not_belong_together_are_refused_by_their_metadata(
    qwen: VisionModel, llava: VisionModel, tmp_path: Path
) -> None:
    """Before the film is looked through; the runtime itself would load the first two pairs."""
    for file, mmproj, complaint in (
        (qwen.file, llava.mmproj, r"\(mlp\) is not a projector for qwen2vl.gguf"),
        (llava.file, qwen.mmproj, r"\(qwen2vl_merger\) is not a projector for llama.gguf"),
        (qwen.file, qwen.file, "is not a projector for pictures"),
        (qwen.mmproj, qwen.mmproj, "is a projector, not a model"),
    ):
        with pytest.raises(ModelError, match=complaint):
            ModelCatalog(settings_of(VisionModel(file, mmproj), tmp_path)).check(["tiny"])


@pytest.mark.parametrize("size", [0, 3, 4, 20, 40, 400])
def test_a_projector_that_was_cut_off_is_refused(
    size: int, qwen: VisionModel, tmp_path: Path
) -> None:
    short = tmp_path / "short.gguf"
    short.write_bytes(qwen.mmproj.read_bytes()[:size])
    with pytest.raises(ModelError, match=r"short\.gguf is (not|a damaged) GGUF file|not a GGUF"):
        ModelCatalog(settings_of(qwen._replace(mmproj=short), tmp_path)).check(["tiny"])


@pytest.fixture(scope="module")
def film(folder: Path) -> Path:
    write_film(folder / "film.mp4", pictures(60))
    (folder / "film.srt").write_text(
        "1\n00:00:00,500 --> 00:00:02,000\nThe dog barks at the red ball.\n\n"
        "2\n00:00:03,000 --> 00:00:05,000\nThe man opens the green map.\n"
    )
    return folder / "film.mp4"


IN_SHORT = ("lvagent",)
"""The method that ``make test`` asks; ``make attack`` asks the others too."""


@pytest.fixture
def asked(film: Path, qwen: VisionModel, folder: Path, prepared_models: Path) -> Any:
    """Asks about the film by a method; gives the calls, after checks of what holds for all."""

    def ask_by(name: str, **changes: Any) -> tuple[list[ChatCalled], Any]:
        settings = settings_of(qwen, folder, **changes)
        session = Session(settings, ModelAssignment(models=["tiny"], replies=False))
        opened = open_film(film, settings, subtitles=film.with_suffix(".srt"))
        options = ("the green map", "a red ball", "a blue door", "nothing")
        with listening() as heard:
            result = session.answer(name, opened, Question("What is opened?", options))
        assert result.answer.choice in LETTERS
        return [event for event in heard.events if isinstance(event, ChatCalled)], heard

    return ask_by


def rarely(name: str) -> Any:
    return pytest.param(name, marks=[] if name in IN_SHORT else [pytest.mark.campaign])


@pytest.mark.parametrize("name", [rarely(name) for name in registry.methods.names()])
def test_a_film_is_asked_through_every_method(name: str, asked: Any) -> None:
    calls, heard = asked(name)
    assert not [call.error for call in calls if call.error]
    counts = Counter(call.prompt for call in calls)
    unread = Counter(note.data["prompt"] for note in heard.notes("default_taken"))
    assert all(unread[prompt] < number for prompt, number in counts.items()), "a step read none"
    shown = [call for call in calls if call.usage.frames]
    assert shown
    for call in shown:
        text, frames = _parts(call.messages)
        assert frames == call.usage.frames
        # a picture of this size is eight tokens and two around it, a text as many as its bytes
        assert call.usage.tokens_in >= text + 10 * frames


@pytest.mark.parametrize("name", [rarely(name) for name in ("lvagent", "uniform", "a4vl")])
def test_a_film_is_asked_with_contact_sheets(name: str, asked: Any) -> None:
    calls, _ = asked(name, show="sheets", max_pixels=112 * 112)
    several = [call for call in calls if call.usage.frames > 1]
    assert several
    for call in several:
        text, frames = _parts(call.messages)
        assert frames == call.usage.frames, "budgets and traces count each frame"
        # as pictures of that size they would take 18 tokens each
        assert call.usage.tokens_in < text + 200 + 18 * (frames // 9 + 1)


def _parts(messages: Sequence[Any]) -> tuple[int, int]:
    """Bytes of text and number of pictures."""
    parts = [part for message in messages for part in message["parts"]]
    texts = [part["text"] for part in parts if "text" in part]
    return sum(len(text.encode()) for text in texts), len(parts) - len(texts)
