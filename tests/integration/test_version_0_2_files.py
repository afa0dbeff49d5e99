"""Files that version 0.2 wrote can be read: cache, library, configuration, trace, run."""

import json
import sqlite3
import tarfile
from pathlib import Path

import pytest

from longtake_bench.lab.profile import PROFILE

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "longtake-0.2.0.tar.xz"
WRITTEN_AT = "/tmp/v02"
"""The folder in which version 0.2 wrote them; the files hold absolute paths."""
QUESTION = "Who owns the paper clock?"


@pytest.fixture
def old(tmp_path, monkeypatch, lend_models):
    """The folder with the unpacked files; its cache and configuration are the ones in use."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    lend_models(tmp_path / "cache")
    monkeypatch.setenv("LONGTAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = tmp_path / "config" / "longtake" / "config.toml"
    config.write_text(config.read_text().replace("looks", "scene_encoder"))
    with sqlite3.connect(tmp_path / "cache" / "library" / "library.db") as library:
        for table, column in _path_columns(library):
            library.execute(
                f"UPDATE {table} SET {column} = replace({column}, ?, ?)",
                (WRITTEN_AT, str(tmp_path)),
            )
    return tmp_path


def _path_columns(database):
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        for _, column, *_ in database.execute(f"PRAGMA table_info({table})").fetchall():
            found = database.execute(
                f"SELECT 1 FROM {table} WHERE {column} LIKE ?", (f"%{WRITTEN_AT}%",)
            )
            if found.fetchone():
                yield table, column


def test_cache_is_reused(run, old):
    folder = old / "cache" / "films"
    before = {path.name for path in folder.glob("*/layers/*")}
    code, out, err = run("search", old / "films" / "film.mp4", "paper clock", "--json")
    assert code == 0, err
    assert "paper clock" in out
    assert before <= {path.name for path in folder.glob("*/layers/*")}


def test_configuration_is_read_once_its_settings_have_their_present_names(run, old):
    former = (old / "config" / "longtake" / "config.toml").read_text()
    file = old / "config" / "longtake" / "config.toml"
    file.write_text(former.replace("scene_encoder", "looks"))
    code, _, err = run("doctor", "--json")
    assert code == 2
    assert "perception.looks in" in err
    assert "is now perception.scene_encoder" in err
    file.write_text(former)
    code, out, err = run("doctor", "--json")
    assert code == 0, err
    assert "lab/acuity=0.8" in out


def test_library_is_searched(run, old):
    code, out, err = run("library", "search", "paper clock", "--json")
    assert code == 0, err
    assert "paper clock" in out


def test_trace_is_replayed(run, old):
    code, out, err = run("replay", old / "trace.jsonl")
    assert code == 0, err
    assert "A. Anna" in out


def test_run_folder_of_the_laboratory_is_refused_by_its_edition(run, old):
    code, out, err = run("report", old / "run", "--json")
    assert (code, out) == (2, "")
    assert "run on the questions of lab-2; score it with the version that ran it" in err


def test_run_folder_is_reported(run, old):
    """Its edition is written over: lab-2's questions are no longer asked."""
    spec = old / "run" / "spec.json"
    spec.write_text(spec.read_text().replace('"lab-2"', f'"{PROFILE.name}"'))
    code, out, err = run("report", old / "run", "--json")
    assert code == 0, err
    assert "videoagent" in out


@pytest.mark.parametrize("stated", [2, None, "1"])
def test_run_folder_of_another_format_is_refused(run, old, stated):
    spec = old / "run" / "spec.json"
    spec.write_text(json.dumps({**json.loads(spec.read_text()), "format": stated}))
    code, out, err = run("report", old / "run", "--json")
    assert (code, out) == (2, "")
    assert f"format {stated!r}; this longtake reads format 1" in err


def test_trace_is_run_again_and_settings_that_are_gone_are_named(run, old):
    """Slow: what this version perceives is indexed anew."""
    lines = [json.loads(line) for line in (old / "trace.jsonl").read_text().splitlines()]
    (started,) = [line for line in lines if "fields" in line]
    started["fields"]["gone"] = 7
    (old / "trace.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    code, out, err = run("replay", old / "trace.jsonl", "--rerun", old / "films" / "film.mp4")
    # the check of answers is another one now
    assert code in (0, 1), err
    assert "recorded answer" in out + err or "the same answer" in out + err
    assert "gone = 7 of the recorded run no longer exists" in err
