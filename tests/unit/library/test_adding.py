"""Films come into the library once, and stay known when they are moved."""

import dataclasses
import os
import shutil

import pytest
from unit.library.shelf import add, film

from longtake.config import IndexSettings
from longtake.errors import MediaError, RunError
from longtake.library import Library
from longtake.library.add import Adder, rebuild, watch
from longtake.library.collection import problems, status
from longtake.runner.films import open_store
from longtake_bench.lab.footage import LabEncoder


def states(report):
    return {each.path.name: each.state for each in report.surveyed}


@pytest.fixture
def walrus(library, tmp_path, film_folder):
    """The only film of the library."""
    path = film(tmp_path / "films", "one.mp4", film_folder, "a rare walrus", "waves")
    add(library, path)
    return path


def test_the_life_of_a_film(library, tmp_path, film_folder):
    folder = tmp_path / "films"
    one = film(folder, "talks/2025-03-14 one.mp4", film_folder, "the price goes up", "goodbye")
    film(folder, "two.mp4", film_folder, "nothing of note", "at all", frames=50)
    (folder / "broken.mp4").write_bytes(b"not a film")

    # new
    report = add(library, folder, tags=["Work"])
    assert states(report) == {"2025-03-14 one.mp4": "new", "two.mp4": "new"}
    assert [path.name for path, _ in report.failed] == ["broken.mp4"]
    entry = library.entries("talks")[0]
    assert (entry.date, entry.tags) == ("2025-03-14", ("films", "talks", "work"))
    best = library.search("price goes up").films[0]
    assert best.entry == entry
    assert best.moments[0].sure
    assert best.moments[0].time == pytest.approx(0.5)

    # known: nothing is opened again
    jobs = []
    report = add(library, folder, on_job=jobs.append)
    assert set(states(report).values()) == {"known"}
    assert jobs == []
    assert report.indexed == []

    # moved and renamed: its index stays
    moved = folder / "archive" / "renamed.mp4"
    moved.parent.mkdir()
    shutil.move(one, moved)
    shutil.move(one.with_suffix(".srt"), moved.with_suffix(".srt"))
    report = add(library, folder / "archive")
    assert states(report) == {"renamed.mp4": "moved"}
    now = library.catalogue.entry(entry.fingerprint)
    assert (now.paths, now.name) == ((moved,), "renamed")
    # what the name and the folders said goes, what the user said stays
    assert (now.date, now.tags) == ("", ("archive", "work"))
    assert library.search("price goes up").films[0].moments[0].sure

    # a copy is the same film in two places
    report = add(library, shutil.copy(moved, folder / "copy.mp4"))
    assert states(report) == {"copy.mp4": "copy"}
    assert len(library.entries()) == 2

    # changed: another film under the same name; what the user said about it stays
    film(folder, "two.mp4", film_folder, "a rare walrus", "waves", frames=30)
    report = add(library, folder)
    assert states(report)["two.mp4"] == "changed"
    assert [e.name for e in library.entries("work")] == ["renamed", "two"]
    assert library.search("nothing of note").films[0].moments[0].sure is False
    assert library.search("rare walrus").films[0].entry.name == "two"
    assert library.index.dead() <= 0.3

    # gone: it is found, but said to be missing
    (folder / "two.mp4").unlink()
    assert status(library).missing == 1
    assert any("is gone" in problem.what for problem in problems(library))
    assert library.search("rare walrus").films[0].entry.missing

    # removed
    library.remove([library.entries("two")[0].fingerprint])
    assert [hits.entry.name for hits in library.search("walrus").films] == ["renamed"]
    assert problems(library) == []


def test_subtitles_that_appear_later_are_read(library, tmp_path, film_folder):
    path = film(tmp_path / "films", "one.mp4", film_folder)
    add(library, path)
    assert not library.search("walrus").sure
    path.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\na rare walrus\n")
    report = add(library, path)
    assert len(report.indexed) == 1
    assert library.search("walrus").films[0].moments[0].text == "a rare walrus"


def test_the_index_can_be_rebuilt_from_the_layers(library, walrus):
    before = library.search("walrus").films[0].moments
    library.index.remove(list(library.index.films()))
    assert [p.what for p in problems(library)] == ["1 films are not in the index"]
    assert rebuild(library) == []
    after = library.search("walrus").films[0].moments
    assert [m.time for m in after] == [m.time for m in before]
    assert problems(library) == []


FILES = ("library.db", "segments.db", "picture-*.f32", "meaning-*.f32", "film-*.i32", "*.lock")
DAMAGES = {
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: file.write_bytes(b""),
    "missing": lambda file: file.unlink(),
}


REPAIRED = [(name, damage) for name in FILES[:2] for damage in DAMAGES]
REPAIRED += [(name, damage) for name in FILES[2:] for damage in ("half", "missing")]


@pytest.mark.parametrize(("name", "damage"), REPAIRED)
def test_a_rebuild_repairs_any_damaged_file(library, walrus, name, damage):
    library.index.close()
    (file,) = library.folder.rglob(name)
    DAMAGES[damage](file)
    rebuild(library)
    assert problems(library) == []
    (hits,) = library.search("walrus").films
    assert (hits.entry.path, hits.moments[0].text) == (walrus, "a rare walrus")
    assert states(add(library, walrus)) == {"one.mp4": "known"}


@pytest.mark.parametrize("name", ["library.db", "segments.db", "picture-*.f32", "film-*.i32"])
@pytest.mark.usefixtures("walrus")
def test_a_damaged_library_is_reported_with_the_remedy(library, name):
    library.index.close()
    (file,) = library.folder.rglob(name)
    DAMAGES["zeros" if file.suffix == ".db" else "empty"](file)
    with pytest.raises(RunError, match="doctor --rebuild"):
        library.search("walrus", where="name=one")
    assert [problem.remedy for problem in problems(library)] == [
        "longtake library doctor --rebuild"
    ]


def test_a_rebuild_says_what_it_cannot_recover(library, walrus):
    library.index.close()
    DAMAGES["zeros"](library.folder / "library.db")
    walrus.unlink()
    catalogue, gone = rebuild(library)
    assert "library.damaged" in catalogue
    assert "one.mp4: no such file" in gone


@pytest.mark.usefixtures("walrus")
def test_an_open_index_sees_a_rebuild_by_another(library):
    reader = Library(
        library.folder, library.settings, perception=library.perception, sentences=LabEncoder()
    )
    assert reader.search("walrus").sure
    rebuild(library)
    assert reader.search("walrus").sure


def test_films_are_indexed_again_after_the_cache_was_cleared(library, walrus):
    open_store(library.settings).clear(library.entries()[0].fingerprint)
    finer = dataclasses.replace(library.settings, index=IndexSettings(fps=2.0))
    again = Library(library.folder, finer, perception=library.perception, sentences=LabEncoder())
    report = add(again, walrus)
    assert report.failed == []
    assert again.search("walrus").sure


def test_a_film_replaced_with_equal_size_and_time_is_changed(library, walrus):
    (entry,) = library.entries()
    times = walrus.stat()
    content = bytearray(walrus.read_bytes())
    content[content.index(b"mdat") + 100] ^= 1
    walrus.write_bytes(content)
    os.utime(walrus, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(MediaError, match="add it again"):
        library.footage(entry)
    assert states(add(library, walrus)) == {"one.mp4": "changed"}


def test_cheap_parts_of_all_films_come_first(library, tmp_path, film_folder):
    folder = tmp_path / "films"
    film(folder, "a.mp4", film_folder)
    film(folder, "b.mp4", film_folder, frames=50)
    jobs = []
    adder = Adder(
        library,
        parts=("subtitles", "frames"),
        on_job=lambda at: jobs.append((at.film.name, at.part, at.left)) or (lambda share: None),
    )
    adder.add([folder])
    parts = [(name, part) for part in ("subtitles", "frames") for name in ("a", "b")]
    assert [job[:2] for job in jobs] == parts
    # nothing is known about the time before each part was measured
    assert jobs[0][2] is None


def test_films_that_appear_are_added_once_they_stop_growing(library, tmp_path, film_folder):
    folder = tmp_path / "films"
    folder.mkdir()
    complete = film(tmp_path / "elsewhere", "one.mp4", film_folder).read_bytes()
    target = folder / "one.mp4"
    writes = iter([complete[:1000], complete[:3000], complete, None, None])
    rounds = []

    def sleep(seconds):
        content = next(writes)
        if content is not None:
            target.write_bytes(content)

    watch(
        [folder],
        lambda: add(library, folder, parts=("subtitles",)),
        on_round=rounds.append,
        sleep=sleep,
        rounds=5,
    )
    assert [len(report.surveyed) for report in rounds] == [0, 1]
    assert rounds[1].failed == []


def test_a_film_that_appears_while_others_are_added_is_added_next(library, tmp_path, film_folder):
    folder = tmp_path / "films"
    folder.mkdir()
    rounds = []

    def adding():
        report = add(library, folder, parts=("subtitles",))
        film(folder, "late.mp4", film_folder)
        return report

    watch([folder], adding, on_round=rounds.append, sleep=lambda _: None, rounds=3)
    assert [len(report.surveyed) for report in rounds] == [0, 1]


def test_what_is_no_film_is_named_and_the_rest_is_added(library, tmp_path, film_folder):
    folder = tmp_path / "films"
    film(folder, "one.mp4", film_folder, "a rare walrus", "waves")
    os.mkfifo(folder / "pipe.mp4")
    (folder / "itself.mp4").symlink_to("itself.mp4")
    odd = os.fsdecode(b"odd\xff.mp4")
    shutil.copy(folder / "one.mp4", folder / odd)
    report = add(library, folder)
    assert states(report) == {"one.mp4": "new"}
    assert sorted(path.name for path, _ in report.failed) == ["itself.mp4", odd, "pipe.mp4"]
    assert [why for _, why in report.failed if "UTF-8" in why]
