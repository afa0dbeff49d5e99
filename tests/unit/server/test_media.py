"""Frames, clips and playback: times are presentation times, whatever the file's own are."""

from __future__ import annotations

import io
import socket
import threading
from contextlib import ExitStack

import av
import httpx
import numpy as np
import pytest
from films import FILMS, Recipe, read_number, x264
from PIL import Image
from support.patience import PATIENCE

from longtake._util.cancellation import stopping
from longtake.index.film import Film
from longtake.server import state
from longtake.server.app import build, serving
from longtake.server.films import ServedFilms
from longtake.server.routes.media import Plan, Playback, PlaybackStreams, plan
from longtake.server.state import CLIPS_AT_ONCE
from longtake.types import Line, Segment
from longtake.video.video import Video

SPOKEN = Recipe("spoken.mkv", count=60, sound_from=0.0)
STRANGE = Recipe(
    "strange.avi", x264(codec="mpeg4", options={"bf": "2", "b": "3000000"}, gop=12), count=60
)
MODES = {
    "plain.mp4": "direct",
    "vp9.webm": "direct",
    "starts_late.mkv": "remux",
    "broadcast.ts": "remux",
    "mpeg2.mpg": "transcode",
    "spoken.mkv": "remux",
    "strange.avi": "transcode",
}
RECIPES = {recipe.name: recipe for recipe in [*FILMS, SPOKEN, STRANGE]}


@pytest.fixture(params=MODES)
def video(request, film_folder):
    return Video(RECIPES[request.param].make(film_folder))


def shown(stream: bytes, start: float) -> list[tuple[float, int]]:
    """When each picture of a stream appears in the film, and the number it shows."""
    found = []
    with av.open(io.BytesIO(stream)) as container:
        for frame in container.decode(video=0):
            found.append((float(frame.time) + start, read_number(frame.to_ndarray(format="rgb24"))))
    return found


def test_the_cheapest_way_is_chosen(video):
    assert plan(video).mode == MODES[video.path.name]


def test_a_stream_shows_each_frame_at_its_time(video):
    how = plan(video)
    if how.mode == "direct":
        return
    # between two frames: what is on screen then is shown at once
    playback = Playback(video, how, 2.03)
    pictures = shown(b"".join(playback), playback.start)
    assert pictures[0][0] <= 2.03 + 1e-4
    wanted = [time for time, _ in pictures]
    frames = video.at([min(time + 1e-4, video.duration) for time in wanted])
    truth = [read_number(frame.pixels) for frame in frames]
    assert [number for _, number in pictures] == truth
    assert wanted[-1] > video.duration - 0.5


def test_sound_is_there_and_on_time(film_folder):
    video = Video(SPOKEN.make(film_folder))
    playback = Playback(video, plan(video), 3.0)
    with av.open(io.BytesIO(b"".join(playback))) as container:
        assert len(container.streams.audio) == 1
        heard = sum(frame.samples for frame in container.decode(audio=0))
    assert heard / 16_000 == pytest.approx(video.duration - playback.start, abs=0.2)


def test_a_new_stream_of_a_viewer_ends_the_one_before(film_folder):
    video = Video(SPOKEN.make(film_folder))
    viewers = PlaybackStreams()
    first = viewers.play("me", Playback(video, Plan("transcode", ""), 0.0))
    next(first)
    second = viewers.play("me", Playback(video, Plan("transcode", ""), 1.0))
    next(second)
    assert list(first) == []
    second.close()
    assert viewers._streams == {}


def test_frames_by_exact_time_with_etag(client, film):
    answer = client.get(f"/api/v1/films/{film}/frame", params={"t": 1.25, "width": 128})
    assert float(answer.headers["x-frame-time"]) == pytest.approx(1.2)
    assert read_number(np.asarray(Image.open(io.BytesIO(answer.content)))) == 12
    again = client.get(
        f"/api/v1/films/{film}/frame",
        params={"t": 1.25, "width": 128},
        headers={"If-None-Match": answer.headers["etag"]},
    )
    assert again.status_code == 304
    assert client.get(f"/api/v1/films/{film}/frame", params={"t": "nan"}).status_code == 422


def test_clips_are_cut_exactly(client, film):
    answer = client.get(f"/api/v1/films/{film}/clip", params={"start": 1.0, "end": 2.0})
    assert [number for _, number in shown(answer.content, 1.0)] == list(range(10, 20))
    between = client.get(f"/api/v1/films/{film}/clip", params={"start": 1.25, "end": 1.5})
    # the frame that is on screen at the start belongs to the clip
    assert [number for _, number in shown(between.content, 1.25)] == [12, 13, 14]
    assert client.get(f"/api/v1/films/{film}/clip?start=2&end=1").status_code == 422
    assert client.get(f"/api/v1/films/{film}/clip?start=0&end=9999").status_code == 422


def test_the_file_is_served_in_ranges(client, film, options):
    data = (options.films[0] / "plain.mp4").read_bytes()
    answer = client.get(f"/api/v1/films/{film}/file", headers={"Range": "bytes=100-199"})
    assert answer.status_code == 206
    assert answer.content == data[100:200]
    assert client.get(f"/api/v1/films/{film}/play").json()["mode"] == "direct"


def test_text_on_screen_that_was_misread_is_marked(client, film, monkeypatch):
    read = ["ALL RIGHTS RESERVED.", "po chnge baga by e"]
    lines = [Line(Segment(n, n + 1.0), text) for n, text in enumerate(read)]
    monkeypatch.setattr(Film, "known_lines", lambda _: ([], lines))
    shown = client.get(f"/api/v1/films/{film}/timeline").json()["onscreen"]
    assert [(each["text"], each["clear"]) for each in shown] == [(read[0], True), (read[1], False)]


def test_few_clips_are_made_at_once_and_each_ends_when_its_client_leaves(
    options, keys, monkeypatch
):
    begun, ended = threading.Semaphore(0), threading.Semaphore(0)

    def endless(parts):
        begun.release()
        try:
            stopping.get().wait(PATIENCE)
        finally:
            ended.release()

    monkeypatch.setattr(state, "clip_bytes", endless)
    film = ServedFilms(options).films()[0].id
    with ExitStack() as stack:
        url = httpx.URL(stack.enter_context(serving(build(options, keys))))
        clients = []
        for _ in range(2 * CLIPS_AT_ONCE):
            client = socket.create_connection((url.host, url.port))
            clients.append(stack.enter_context(client))
            client.sendall(
                f"GET /api/v1/films/{film}/clip?start=0&end=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            )
        for _ in range(CLIPS_AT_ONCE):
            assert begun.acquire(timeout=PATIENCE)
        assert not begun.acquire(timeout=0.2)
        for client in clients:
            client.close()
        for _ in range(CLIPS_AT_ONCE):
            assert ended.acquire(timeout=PATIENCE)
