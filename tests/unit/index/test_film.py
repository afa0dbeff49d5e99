import sqlite3
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from films import FILMS, Recipe, x264
from scenes import lengths, make_scenes

from longtake.algorithms.partition import EventPartition
from longtake.algorithms.shots import tile_colours
from longtake.config import IndexSettings, Settings
from longtake.errors import MediaError
from longtake.index.film import Film, measured, partition, sample_times
from longtake.index.layers import CHUNK, GLIMPSES
from longtake.index.source import PIECE, fingerprint, load_video
from longtake.index.store import LayerKey, Store
from longtake.index.tasks import tasks
from longtake.tracing.events import Noted, Stream
from longtake.tracing.sinks import Recorder
from longtake.types import Segment
from longtake.video import decode
from longtake.video import subtitles as subtitles_module
from longtake.video.packets import PacketTable

LONG = Recipe("long.mp4", x264(fps=Fraction(4), gop=8), count=4 * 200)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def footage(store, film_folder):
    return Film(LONG.make(film_folder), store)


def test_fingerprint_is_of_the_content(tmp_path):
    data = np.random.default_rng(0).bytes(5 * PIECE)
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "b").write_bytes(data)
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    for place in (0, len(data) // 2, len(data) - 1):
        changed = bytearray(data)
        changed[place] ^= 1
        (tmp_path / "b").write_bytes(changed)
        assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")
    (tmp_path / "b").write_bytes(data + b"x")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")


def test_layers_are_computed_once(footage, store, monkeypatch):
    first = footage.pictures.glimpses()
    assert first.shape == (200, 36, 64, 3)

    def refuse(*args, **kwargs):
        raise AssertionError("decoded again")

    monkeypatch.setattr(decode, "VideoReader", refuse)
    again = Film(footage.path, store).pictures.glimpses()
    assert np.array_equal(first, again)


class Counting:
    """A layer that says how often it was asked, and can be told to die."""

    side = 48

    def __init__(self, name, dies_after=None):
        self.key = LayerKey(name, 1)
        self.asked = 0
        self.dies_after = dies_after

    def rows(self, frames):
        if self.dies_after is not None and self.asked >= self.dies_after:
            raise KeyboardInterrupt
        self.asked += len(frames)
        return np.array([[f.time] for f in frames])


def test_an_interrupted_layer_goes_on_where_it_stopped(footage):
    with pytest.raises(KeyboardInterrupt):
        footage.pictures.rows(Counting("c", dies_after=2 * CHUNK))
    again = Counting("c")
    rows = footage.pictures.rows(again)
    assert rows[:, 0].tolist() == footage.times.tolist()
    assert again.asked == len(footage.times) - 2 * CHUNK


def test_what_is_damaged_is_built_again(footage, store):
    rows, duration = footage.pictures.glimpses().copy(), footage.duration
    for file in (footage.folder.path / "layers").glob("*/*.npy"):
        file.write_bytes(file.read_bytes()[:-1])
    again = Film(footage.path, store)
    assert not again.pictures.has(GLIMPSES)
    assert np.array_equal(again.pictures.glimpses(), rows)
    for file in (footage.folder.path / "layers").glob("*/meta.json"):
        file.write_text('{"arrays": [], "notes": {}}' if "packets" in file.parent.name else "{")
    again = Film(footage.path, store)
    assert again.duration == duration
    assert np.array_equal(again.pictures.glimpses(), rows)
    assert load_video(footage.folder, footage.path, None) is not None


def test_missing_layers_share_one_pass(footage, monkeypatch):
    passes = []
    frames = type(footage.video).frames
    monkeypatch.setattr(
        type(footage.video),
        "frames",
        lambda self, times, **o: passes.append(len(times)) or frames(self, times, **o),
    )
    a, b = Counting("a"), Counting("b")
    footage.pictures.rows(a)
    footage.pictures.build([a, b, GLIMPSES])
    assert passes == [200, 200]
    assert (a.asked, b.asked) == (200, 200)


def test_another_grid_is_another_layer(footage, store):
    footage.pictures.glimpses()
    coarse = Film(footage.path, store, Settings(index=IndexSettings(fps=0.1)))
    assert len(coarse.pictures.glimpses()) == 20


def test_subtitles_beside_the_film_are_read_and_followed_when_they_change(
    store, tmp_path, film_folder
):
    film = tmp_path / "film.mp4"
    film.write_bytes(FILMS[0].make(film_folder).read_bytes())
    assert Film(film, store).words.subtitles.lines() == []
    sidecar = tmp_path / "film.srt"
    sidecar.write_text("1\n00:00:01,000 --> 00:00:02,000\nFirst\n")
    assert [line.text for line in Film(film, store).words.subtitles.lines()] == ["First"]
    sidecar.write_text("1\n00:00:01,000 --> 00:00:02,000\nSecond\n")
    assert [line.text for line in Film(film, store).words.subtitles.lines()] == ["Second"]
    assert Film(film, store).words.subtitles.lines(Segment(5, 6)) == []


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 50, b"\x89PNG\r\n\x1a\n", b"no times here\n", b"x" * 20_000_000]
)
def test_a_file_beside_the_film_that_is_no_subtitles_is_left_out_with_a_word(
    store, tmp_path, film_folder, data
):
    path = tmp_path / "film.mp4"
    path.write_bytes(FILMS[0].make(film_folder).read_bytes())
    path.with_suffix(".srt").write_bytes(data)
    subtitles = Film(path, store).words.subtitles
    recorder = Recorder()
    with Stream(recorder).active():
        assert subtitles.lines() == []
        assert subtitles.key() is None
    notes = [event for event in recorder.trace.events if isinstance(event, Noted)]
    assert [event.label for event in notes] == ["subtitles_left_out"]


def test_a_file_beside_the_film_is_parsed_once_while_it_stays_the_same(
    store, tmp_path, film_folder, monkeypatch
):
    film = tmp_path / "film.mp4"
    film.write_bytes(FILMS[0].make(film_folder).read_bytes())
    beside = film.with_suffix(".srt")
    beside.write_text("1\n00:00:01,000 --> 00:00:02,000\nFirst\n")
    parsed = []
    real = subtitles_module.read_subtitles
    monkeypatch.setattr(
        subtitles_module,
        "read_subtitles",
        lambda *args, **options: parsed.append(args) or real(*args, **options),
    )
    # as the requests of a page do: each opens the film anew
    files = [Film(film, store).words.subtitles.file for _ in range(3)]
    assert (files, len(parsed)) == ([beside] * 3, 1)
    beside.write_text("no times here\n")
    assert [Film(film, store).words.subtitles.file for _ in range(3)] == [None] * 3
    assert len(parsed) == 2


def test_subtitles_that_were_asked_for_must_be_usable(store, tmp_path, film_folder):
    given = tmp_path / "given.srt"
    given.write_bytes(b"no times here\n")
    film = Film(FILMS[0].make(film_folder), store, subtitles=given)
    with pytest.raises(MediaError, match="contains no subtitles"):
        film.words.subtitles.lines()


def test_meanings_are_known_where_they_cannot_be_kept(footage, monkeypatch):
    footage.meanings(["a red house"])
    file = footage.source.text._path

    def read_only(path, **options):
        return connect(f"file:{path}?mode=ro", uri=True, **options)

    connect = sqlite3.connect
    monkeypatch.setattr("longtake.index.text.sqlite3.connect", read_only)
    recorder = Recorder()
    with Stream(recorder).active():
        assert footage.meanings(["a red house", "a boat"]).shape == (2, 384)
    (noted,) = [event for event in recorder.trace.events if event.kind == "noted"]
    assert (noted.label, noted.data["file"]) == ("not_kept", str(file))


def test_the_meaning_of_a_text_is_computed_once(footage, monkeypatch):
    texts = ["a red house", "what is this?", "a red house"]
    first = footage.meanings(texts)
    assert first.shape == (3, 384)
    assert np.array_equal(first[0], first[2])

    def refuse(texts):
        raise AssertionError(f"encoded {texts}")

    monkeypatch.setattr(footage.senses.sentences, "texts", refuse)
    assert np.array_equal(footage.meanings(texts), first)
    with pytest.raises(AssertionError, match="a boat"):
        footage.meanings(["a red house", "a boat"])


def test_the_network_for_pictures_leaves_memory_to_what_comes_next(
    tmp_path, film_folder, lend_models
):
    film = Film(FILMS[0].make(film_folder), Store(lend_models(tmp_path / "cache")))
    _, frames, _, onscreen = tasks(film)
    assert not frames.done()
    frames.build(lambda share: None)
    assert frames.done()
    onscreen.build(lambda share: None)
    assert film.senses.tagger._session._loaded is None
    # it is loaded again when it is used again
    assert film.senses.tagger.outputs(film.at([0.0])).shape[0] == 1


class Squinter:
    """Pictures as the mean colours of 9 × 16 blocks: quick, and the same code around it."""

    key = "squinter"

    def images(self, frames):
        rows = np.stack([tile_colours(frame.pixels[None]).ravel() for frame in frames]) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def film(path, store):
    return Film(path, store, senses=SimpleNamespace(scene_encoder=Squinter()))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    return make_scenes(tmp_path_factory.mktemp("scenes") / "scenes.mp4", [20, 30, 25])


def times_of(found):
    return [cut.time for cut in found.cuts]


def test_the_cuts_are_where_the_scenes_change(scenes, store):
    found = partition(film(scenes, store), EventPartition())
    assert times_of(found) == pytest.approx([20, 50], abs=1)
    assert found.blocks[-1].end == pytest.approx(75, abs=0.3)


def test_the_second_time_nothing_is_decoded_and_nothing_computed(scenes, store, monkeypatch):
    first = partition(film(scenes, store), EventPartition())

    def refuse(*args, **kwargs):
        raise AssertionError("done again")

    monkeypatch.setattr(decode, "VideoReader", refuse)
    # other settings, the same measurements
    fewer = partition(film(scenes, store), EventPartition(max_blocks=2))
    assert len(fewer.cuts) == 1
    monkeypatch.setattr(EventPartition, "__call__", refuse)
    assert partition(film(scenes, store), EventPartition()) == first


def test_at_most_so_many_frames_and_their_true_times(scenes, store):
    made = film(scenes, store)
    samples = measured(made, EventPartition(max_feature_frames=30))
    assert len(samples.times) == 30
    assert np.isin(np.round(samples.times, 6), np.round(made.video.table.times, 6)).all()
    assert samples.motion[0] == 0
    assert samples.histograms.shape == (30, 3, 32)


def table(count, every, seconds=0.04):
    pts = np.arange(count)
    return PacketTable(
        pts, pts, pts % every == 0, np.ones(count, bool), seconds, 0, count * seconds
    )


@pytest.mark.parametrize(
    ("every", "least", "most"), [(25, 198, 200), (112, 198, 200), (150, 140, 160), (10**6, 1, 1)]
)
def test_samples_move_to_keyframes_that_are_near(every, least, most):
    packets = table(45_000, every)  # half an hour; a sample every 9.05 s, half of it is 113 frames
    wanted = np.linspace(0, packets.times[-1], 200)
    got = sample_times(packets, 200)
    assert np.abs(got - wanted).max() <= 9.05 / 4 + 1e-6
    assert (np.diff(got) > 9.05 / 2 - 1e-6).all()
    on_keyframes = np.round(got / 0.04).astype(int) % every == 0
    assert least <= on_keyframes.sum() <= most
    assert np.array_equal(got[~on_keyframes], wanted[~on_keyframes])


def test_a_film_of_few_frames_gives_each_once():
    assert sample_times(table(3, 1), 200) == pytest.approx([0, 0.04, 0.08])
    assert len(sample_times(table(1, 1), 200)) == 1


def test_cuts_stay_when_a_film_is_encoded_anew(tmp_path, store):
    kept = total = 0
    rule = EventPartition(max_feature_frames=100)
    for seed in range(2):
        seconds = lengths(seed)
        fine = make_scenes(tmp_path / f"{seed}_fine.mp4", seconds, seed=seed, crf=18, gop=50)
        coarse = make_scenes(tmp_path / f"{seed}_coarse.mp4", seconds, seed=seed, crf=36, gop=15)
        first, second = (partition(film(path, store), rule) for path in (fine, coarse))
        reach = rule.shortest(first.duration) / 2
        total += len(first.cuts)
        kept += sum(any(abs(a - b) <= reach for b in times_of(second)) for a in times_of(first))
        kept -= max(0, len(second.cuts) - len(first.cuts))  # cuts out of nothing are no stability
    assert total >= 4
    assert kept >= 0.9 * total


@pytest.mark.parametrize("seed", range(3))
def test_a_film_without_change_is_one_block(tmp_path, store, seed):
    path = make_scenes(tmp_path / "still.mp4", [60], seed=seed)
    assert partition(film(path, store), EventPartition()).cuts == ()
