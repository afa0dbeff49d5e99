"""Clips of stretches and of cited moments, and the player that shows them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from longtake.cli import clips
from longtake.video.video import Video

OPTIONS = ("--option", "red", "--option", "green", "--model", "test/obliging", "--no-verify")


pytestmark = pytest.mark.usefixtures("test_models", "shared_cache")


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_a_clip_is_named_by_its_film_and_time(run, film, tmp_path):
    code, out, err = run("clip", film, "0.5", "00:00:01.5")
    assert code == 0, err
    (made,) = tmp_path.iterdir()
    assert made.name.endswith("_00-00-00.mp4")
    assert out.strip() == made.name
    assert Video(made).duration == pytest.approx(1.0, abs=0.2)


def test_json_tells_the_stretch_that_was_written(run, film):
    _, out, _ = run("clip", film, "0.5", "9999", "--out", "proof.mp4", "--json")
    clip = json.loads(out)["clip"]
    assert (clip["file"], clip["start"], clip["subtitles"]) == ("proof.mp4", 0.5, None)
    assert clip["end"] == pytest.approx(Video(film).duration)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("2", "1"), "the end must come after the start"),
        (("1", "1"), "the end must come after the start"),
        (("nan", "1"), "is not a time"),
        (("9000", "9001"), "outside the film"),
        (("0", "1", "--out", "clip.avi"), "name it clip.mp4"),
        (("0", "1", "--out", "taken.mp4"), "taken.mp4: exists"),
        (("0", "1", "--out", "no/where.mp4"), "there is no folder"),
    ],
)
def test_mistakes(run, film, tmp_path, arguments, says):
    (tmp_path / "taken.mp4").write_bytes(b"a holiday film")
    code, _, err = run("clip", film, *arguments)
    assert code == 2
    assert says in err
    assert (tmp_path / "taken.mp4").read_bytes() == b"a holiday film"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_film_is_never_overwritten_by_its_clip(run, film):
    size = Video(film).info.size
    code, _, err = run("clip", film, "0", "1", "--out", film)
    assert code == 2
    assert f"this would overwrite {film}" in err
    assert Video(film).info.size == size


def test_each_citation_is_cut_out(run, film, tmp_path):
    code, out, err = run("ask", film, "Which?", *OPTIONS, "--clips", "proof", "--json")
    assert code == 0, err
    cited = json.loads(out)["evidence"]
    written = sorted((tmp_path / "proof").glob("*.mp4"))
    assert len(written) == len(cited) > 0
    assert written[0].name.startswith("01_00-00-")


def test_clips_never_go_into_a_folder_that_holds_something(run, film, tmp_path):
    (tmp_path / "album").mkdir()
    (tmp_path / "album" / "01_00-00-00.mp4").write_bytes(b"mine")
    code, _, err = run("ask", film, "Which?", *OPTIONS, "--clips", "album")
    assert code == 2
    assert "new or empty folder" in err


def test_the_player_starts_at_the_first_citation(run, film, monkeypatch):
    started = []
    monkeypatch.setattr(clips.shutil, "which", {"vlc": "/usr/bin/vlc"}.get)
    monkeypatch.setattr(clips.subprocess, "Popen", lambda command, **_: started.append(command))
    _, out, _ = run("ask", film, "Which?", *OPTIONS, "--open", "--json")
    first = json.loads(out)["evidence"][0]["start"]
    assert started[0][:2] == ["/usr/bin/vlc", f"--start-time={first:.3f}"]


def test_without_a_player_it_is_said_where_to_look(run, film, monkeypatch):
    monkeypatch.setattr(clips.shutil, "which", lambda _: None)
    code, _, err = run("ask", film, "Which?", *OPTIONS, "--open")
    assert code == 0
    assert "no player found; install mpv or vlc" in err
    assert " at 00:00:" in err


def test_all_citations_are_one_reel(run, film, tmp_path):
    code, out, err = run("ask", film, "Which?", *OPTIONS, "--reel", "reel.mp4", "--format", "srt")
    assert code == 0, err
    assert out.count(" --> ") >= 1
    assert Video(tmp_path / "reel.mp4").duration >= 1.5
    code, _, err = run("ask", film, "Which?", *OPTIONS, "--reel", "reel.mp4")
    assert code == 2
    assert "reel.mp4" in err


@pytest.mark.processes
def test_sigterm_leaves_no_half_written_clip(film, tmp_path):
    code = (
        "import os, signal\n"
        "from longtake.cli import clips, run\n"
        "from longtake.video import clip\n"
        "def write_film(path, *args, **options):\n"
        "    path.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "clip.write_film = write_film\n"
        f"raise SystemExit(run(['clip', {film!r}, '0', '1', '--out', 'half.mp4']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, list(tmp_path.iterdir())) == (130, [])
    assert "interrupted" in done.stderr
