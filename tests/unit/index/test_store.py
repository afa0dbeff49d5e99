import errno
import multiprocessing
import os
import stat
import threading

import numpy as np
import pytest
from processes import hold_film
from support.patience import PATIENCE

from longtake.errors import RunError
from longtake.index.store import LayerKey, Store, _save
from longtake.tracing.events import Stream
from longtake.tracing.sinks import Recorder

KEY = LayerKey("rows", 1, {"fps": 1.0})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


def filled(store, name, size, film):
    folder = store.film(name)
    folder.use(film)
    with folder.building():
        folder.write(KEY, {"rows": np.zeros(size, np.uint8)}, {})
    return folder


def test_what_is_written_is_read_memory_mapped(store, tmp_path):
    folder = store.film("f")
    folder.use(tmp_path / "film.mp4")
    assert folder.read(KEY) is None
    with folder.building():
        folder.write(KEY, {"rows": np.arange(6).reshape(2, 3)}, {"note": "x"})
    arrays, notes = folder.read(KEY)
    assert isinstance(arrays["rows"], np.memmap)
    assert arrays["rows"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert notes == {"note": "x"}


def test_key_changes_with_version_and_parameters():
    keys = {
        str(LayerKey("a", 1)),
        str(LayerKey("a", 2)),
        str(LayerKey("a", 1, {"k": 1})),
        str(LayerKey("b", 1)),
    }
    assert len(keys) == 4
    assert str(LayerKey("a", 1, {"x": 1, "y": 2})) == str(LayerKey("a", 1, {"y": 2, "x": 1}))


DAMAGES = {
    "empty": lambda data: b"",
    "header cut off": lambda data: data[:20],
    "data cut off": lambda data: data[:-100],
    "garbage": lambda data: b"garbage" * 100,
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", ["meta.json", "rows.npy"])
def test_a_damaged_layer_is_missing_is_noted_and_can_be_written_again(
    store, tmp_path, name, damage
):
    folder = filled(store, "f", 1000, tmp_path / "film.mp4")
    file = folder.path / "layers" / str(KEY) / name
    file.write_bytes(damage(file.read_bytes()))
    keeper = Recorder()
    with Stream(keeper).active():
        assert not folder.has(KEY)
        assert folder.read(KEY) is None
    assert [event.data["file"] for event in keeper.trace.events] == [str(file)]
    with folder.building():
        folder.write(KEY, {"rows": np.ones(7)}, {})
    assert folder.read(KEY)[0]["rows"].sum() == 7


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_part_is_not_counted(store, tmp_path, damage):
    folder = filled(store, "f", 10, tmp_path / "film.mp4")
    other = LayerKey("other", 1)
    for number in (0, 1):
        folder.write_part(other, number, np.zeros(300))
    file = folder.parts(other)[0]
    file.write_bytes(damage(file.read_bytes()))
    assert list(folder.parts(other)) == [1]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b'{"name": 3}', b"\xff\xfe"])
def test_a_film_is_listed_and_cleared_without_its_name(store, tmp_path, content):
    folder = filled(store, "f", 10, tmp_path / "film.mp4")
    (folder.path / "film.json").write_bytes(content)
    assert [use.fingerprint for use in store.films()] == ["f"]
    assert store.clear("f") > 0


def test_folders_are_private(store, tmp_path):
    folder = filled(store, "f", 10, tmp_path / "film.mp4")
    for path in (store.root, store.root / "films", folder.path, folder.path / "layers"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_failed_write_leaves_nothing(store, tmp_path, monkeypatch):
    folder = store.film("f")
    folder.use(tmp_path / "film.mp4")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with folder.building(), pytest.raises(OSError, match="No space"):
        folder.write(KEY, {"rows": np.zeros(3)}, {})
    with folder.building(), pytest.raises(OSError, match="No space"):
        folder.write_part(KEY, 0, np.zeros(3))
    monkeypatch.undo()
    assert folder.read(KEY) is None
    assert folder.parts(KEY) == {}
    assert not list((folder.path / "layers").iterdir())


def test_a_disk_that_fills_while_an_array_is_written_is_told_by_its_number(tmp_path):
    """By a limit on the size of files, which stops a write in the middle as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as told:
            _save(tmp_path / "a.npy", np.zeros(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told.value.errno == errno.EFBIG


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float32),
        np.array(5.0),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(9)[::2],
        np.array([True, False]),
        np.array(["a", "bc"]),
    ],
    ids=["empty", "number", "fortran", "strided", "bool", "text"],
)
def test_arrays_of_every_kind_come_back(tmp_path, array):
    _save(tmp_path / "a.npy", array)
    again = np.load(tmp_path / "a.npy")
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert np.array_equal(again, array)


def test_left_overs_of_a_killed_builder_are_swept(store, tmp_path):
    folder = filled(store, "f", 10, tmp_path / "film.mp4")
    other = LayerKey("other", 1)
    draft = folder.path / "layers" / f".{other}.abc"
    draft.mkdir()
    (draft / "rows.npy").write_bytes(b"half")
    folder.write_part(other, 3, np.zeros(2))
    (folder.path / "parts" / str(other) / ".tmp1").write_bytes(b"half")
    folder.sweep(other)
    assert not draft.exists()
    assert list(folder.parts(other)) == [3]
    assert folder.has(KEY)


def test_least_recently_used_films_go_first(tmp_path):
    store = Store(tmp_path / "cache", limit_bytes=25_000)
    for age, name in ((300, "old"), (200, "older but kept"), (100, "new")):
        folder = filled(store, name, 10_000, tmp_path / name)
        then = folder.path.stat().st_mtime - age
        os.utime(folder.path / "film.json", (then, then))
    gone = store.evict(keep="old")
    assert [use.fingerprint for use in gone] == ["older but kept"]
    assert {use.fingerprint for use in store.films()} == {"old", "new"}


def test_clearing_a_film_removes_everything_and_nothing_else(store, tmp_path):
    filled(store, "a", 1000, tmp_path / "a.mp4")
    filled(store, "b", 1000, tmp_path / "b.mp4")
    assert store.clear("a") > 1000
    assert [path.name for path in (store.root / "films").iterdir()] == ["b"]
    assert store.clear("a") == 0


@pytest.mark.processes
def test_a_film_in_work_is_neither_cleared_nor_evicted(store, tmp_path):
    filled(store, "f", 1000, tmp_path / "f.mp4")
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    holder = context.Process(target=hold_film, args=(store.root, "f", held, release))
    holder.start()
    try:
        assert held.wait(PATIENCE)
        with pytest.raises(RunError, match="another process"):
            store.clear("f")
        store.limit_bytes = 0
        assert store.evict() == []
    finally:
        release.set()
        holder.join()
    assert store.clear("f") > 0


def test_a_layer_is_made_once_and_may_be_made_from_another(store, tmp_path):
    folder = store.film("f")
    folder.use(tmp_path / "f.mp4")
    made = []

    def first():
        made.append("first")
        return {"rows": np.arange(3)}, {}

    def second():
        made.append("second")
        arrays, _ = folder.once(KEY, first)  # while the lock is held
        return {"rows": arrays["rows"] * 2}, {"why": "twice"}

    for again in (folder, store.film("f")):
        arrays, notes = again.once(LayerKey("double", 1), second)
        assert arrays["rows"].tolist() == [0, 2, 4]
        assert notes == {"why": "twice"}
    assert made == ["second", "first"]


@pytest.mark.processes
def test_who_waits_for_another_process_says_so_and_finds_its_work(store, tmp_path):
    path = tmp_path / "f.mp4"
    folder = filled(store, "f", 10, path)
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    holder = context.Process(target=hold_film, args=(store.root, "f", held, release))
    holder.start()
    recorder = Recorder()
    try:
        assert held.wait(PATIENCE)
        waiting = store.film("f", path)
        answers = iter([False, True])  # the other process finishes the work meanwhile
        release_soon = threading.Timer(0.2, release.set)
        release_soon.start()
        with Stream(recorder).active():
            waiting.ensure(lambda: next(answers), lambda: pytest.fail("made again"))
    finally:
        release.set()
        holder.join()
    (said,) = recorder.trace.events
    assert (said.label, said.data["film"]) == ("waiting", str(path))
    assert folder.has(KEY)
