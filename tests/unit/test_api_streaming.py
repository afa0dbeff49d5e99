"""The Python API for programs: streams, coroutines, cancellation, progress and bytes."""

import asyncio
import inspect
import io
import time
import typing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from films import numbered, read_number
from PIL import Image
from support.models import waiting
from support.patience import PATIENCE

import longtake
from longtake import registry
from longtake.tracing import events
from longtake.tracing.events import Answered, RunStarted
from longtake.tracing.sinks import CallbackSink
from longtake.video.clip import write_film

ASK = {"method": "uniform", "model": "test/obliging", "cache": False, "verify": False}


@pytest.fixture(autouse=True)
def models(monkeypatch):
    waiting.clear()
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("film") / "numbers.mp4"
    write_film(file, (numbered(number) for number in range(40)))
    return file


@pytest.fixture
def film(path):
    return longtake.open(path)


def test_a_stream_ends_in_the_result_and_ask_is_its_last_item(film):
    *seen, result = film.stream("What is shown?", ["a cup", "a hat"], **ASK)
    assert isinstance(seen[0], RunStarted)
    assert isinstance(seen[-1], Answered)
    assert result.answer == seen[-1].answer
    assert [event.kind for event in result.trace.events] == [event.kind for event in seen]
    assert film.ask("What is shown?", ["a cup", "a hat"], **ASK).answer == result.answer


def test_help_shows_what_a_question_takes_and_gives():
    ask, stream = inspect.signature(longtake.OpenFilm.ask), longtake.AsyncFilm.stream
    assert "verify" in ask.parameters
    assert ask.return_annotation == "Result"
    assert inspect.signature(stream).return_annotation == "AsyncIterator[Event | Result]"


def test_what_is_said_and_found_are_sequences(path, tmp_path):
    subtitles = tmp_path / "film.srt"
    subtitles.write_text("1\n00:00:01,000 --> 00:00:02,000\nThe exam is on Monday.\n")
    film = longtake.open(path, subtitles=subtitles)
    assert [line.text for line in film.transcript()] == ["The exam is on Monday."]
    assert film.transcript(within=longtake.Segment(2.5, 3)) == []
    found = film.search("the exam")
    assert found[0].text == "The exam is on Monday."
    assert [hit.time for hit in found] == [hit.time for hit in found.hits]
    assert len(found) == len(found.hits)


def test_fields_of_the_method_are_keywords(film):
    result = film.ask("What?", **{**ASK, "method": "videoagent"}, initial_frames=2)
    assert (result.usage.frames, result.method) == (2, "videoagent")


def test_one_function_receives_every_event_and_the_stream_of_the_caller_none(film):
    seen, outside = [], []
    with events.Stream(CallbackSink(outside.append)).active():
        result = film.ask("What is shown?", on_event=seen.append, **ASK)
    assert tuple(seen) == result.trace.events
    assert outside == []


def test_pictures_are_kept_when_asked_for(film):
    assert film.ask("What?", **ASK).trace.pictures == {}
    kept = film.ask("What?", pictures=True, **ASK).trace.pictures
    assert all(picture.startswith(b"\xff\xd8") for picture in kept.values())
    assert kept


def test_an_error_is_raised_in_the_loop(film):
    with pytest.raises(longtake.ModelError, match="nobody answers"):
        list(film.stream("What?", **{**ASK, "model": "test/gone"}))
    with pytest.raises(ValueError, match="empty"):
        film.stream(" ")  # before any item is asked for


def test_offline_and_prompts_are_options(film, tmp_path):
    with pytest.raises(longtake.ConfigError, match="offline"):
        film.ask("What?", method="uniform", model="http://203.0.113.7/v1#m", offline=True)
    with pytest.raises(longtake.ConfigError, match="nowhere"):
        film.ask("What?", prompts=tmp_path / "nowhere", **ASK)


def test_leaving_the_loop_ends_the_run(film):
    began = time.monotonic()
    for event in film.stream("What?", **{**ASK, "model": "test/slow"}):
        assert isinstance(event, typing.get_args(events.Event))
        if waiting.wait(PATIENCE):
            break
    assert time.monotonic() - began < PATIENCE


def test_another_thread_ends_a_run(film):
    stop = longtake.Stop()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(film.ask, "What?", stop=stop, **{**ASK, "model": "test/slow"})
        assert waiting.wait(PATIENCE)
        stop.set()
        assert run.result(PATIENCE).answer.status == "cancelled"
    with pytest.raises(longtake.Cancelled):
        film.index(stop=stop)


def test_a_coroutine_leaves_the_loop_free(film):
    async def both():
        beats = 0
        asking = asyncio.create_task(film.aio.ask("What?", **{**ASK, "model": "test/slow"}))
        while not waiting.is_set():
            await asyncio.sleep(0.005)
            beats += 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        items = [item async for item in film.aio.stream("What?", **ASK)]
        stills = await film.aio.frames([1.0])
        return beats, items, stills

    beats, items, stills = asyncio.run(both())
    assert beats > 1
    assert isinstance(items[-1], longtake.Result)
    assert len(stills) == 1


def test_an_error_reaches_the_coroutine(film):
    async def ask():
        await film.aio.ask("What?", **{**ASK, "model": "test/gone"})

    with pytest.raises(longtake.ModelError):
        asyncio.run(ask())


def test_eight_threads_ask_search_and_look_at_one_film(film):
    def work(number):
        picture = film.frames([number / 10 + 0.05])[0]
        assert read_number(np.asarray(Image.open(io.BytesIO(picture.data)))) == number
        return film.ask("What?", ["a", "b"], **{**ASK, "cache": True}).answer

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(16)))
    assert len(set(answers)) == 1


def test_frames_are_files_with_their_own_times(film):
    small = film.frames([0.0, 1.03], width=64, kind="png")
    assert [still.media_type for still in small] == ["image/png"] * 2
    assert Image.open(io.BytesIO(small[1].data)).size == (64, 48)
    assert small[1].time == pytest.approx(1.0)


def test_a_clip_is_a_film_of_its_own(film, tmp_path):
    (tmp_path / "clip.mp4").write_bytes(film.clip(1.0, 2.0))
    clip = longtake.open(tmp_path / "clip.mp4")
    assert clip.duration == pytest.approx(1.0, abs=0.15)
    first = Image.open(io.BytesIO(clip.frames([0.0])[0].data))
    assert read_number(np.asarray(first)) == 10
    with pytest.raises(longtake.MediaError, match="outside the film"):
        film.clip(60.0, 70.0)


def test_a_new_film_reports_progress(film):
    seen = []
    film.search("a number", on_progress=lambda part, share: seen.append((part, share)))
    assert seen[-1] == ("frames", 1.0)
    film.index(only=["frames"], on_progress=lambda *progress: pytest.fail(str(progress)))
    with pytest.raises(longtake.ConfigError, match="did you mean 'frames'"):
        film.index(only=["frame"])
