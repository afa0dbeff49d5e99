"""What a user sees of the commands that ask no model, and of mistakes."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from films import FILMS, read_number
from PIL import Image

from longtake import cli
from longtake._util import visible
from longtake.cli.output import human_bytes, human_seconds
from longtake.perception import runtime

QUICK = ("--only", "subtitles", "--only", "frames")
"""Reading and listening are slow, and tested elsewhere."""

COMMANDS = (*cli.COMMANDS, *(name for names in cli.MEASURING for name in names.split(", ")))


@pytest.fixture
def film(film_folder):
    return FILMS[0].make(film_folder)


def ok(result):
    code, out, err = result
    assert code == 0, err
    return out


def test_info(run, film):
    text = ok(run("info", film))
    assert "00:00:12.000" in text
    assert "128×96" in text
    facts = json.loads(ok(run("info", film, "--json")))
    assert facts["schema"] == 1
    assert facts["duration"] == pytest.approx(12.0)
    assert facts["frames"] == 120


def test_frames_are_named_by_order_and_time(run, film, tmp_path):
    stills = tmp_path / "new" / "stills"
    out = ok(run("frames", film, "--at", "11.95,0,00:00:03.05", "--out", stills))
    paths = [Path(line) for line in out.split()]
    names = ["001_00-00-11.900.png", "002_00-00-00.000.png", "003_00-00-03.000.png"]
    assert [path.name for path in paths] == names
    assert [read_number(np.asarray(Image.open(path))) for path in paths] == [119, 0, 30]


def test_index_twice_then_clear(run, film):
    first = json.loads(ok(run("index", film, "--json", *QUICK)))["films"][0]
    assert [layer["was_done"] for layer in first["layers"]] == [True, False]
    second = json.loads(ok(run("index", film, "--json", *QUICK)))["films"][0]
    assert all(layer["was_done"] for layer in second["layers"])
    listed = json.loads(ok(run("cache", "list", "--json")))
    assert [f["name"] for f in listed["films"]] == [film.name]
    cleared = json.loads(ok(run("cache", "clear", film, "--json")))["cleared"]
    assert cleared == [first["fingerprint"]]
    assert json.loads(ok(run("cache", "list", "--json")))["films"] == []


def test_the_overview_is_made_when_a_film_is_indexed(run, film, tmp_path):
    srt = tmp_path / "film.srt"
    srt.write_text("1\n00:00:01,000 --> 00:00:02,000\nThe exam is on Monday.\n")
    ok(run("index", film, "--subtitles", srt))
    (made,) = (Path(os.environ["LONGTAKE_CACHE"]) / "films").glob("*/layers/contents-*/meta.json")
    assert "The exam is on Monday." in made.read_text()


def test_clearing_everything_also_forgets_words_and_captions(run, film):
    root = Path(json.loads(ok(run("cache", "list", "--json")))["folder"])
    root.mkdir(parents=True, exist_ok=True)
    (root / "words.db").write_bytes(b"words of films")
    (root / "captions").mkdir()
    (root / "captions" / "one.npy").write_bytes(b"vectors")
    assert json.loads(ok(run("cache", "clear", "--all", "--json")))["freed_bytes"] == 21
    assert not (root / "words.db").exists()
    assert not (root / "captions").exists()


def test_a_stretch_is_clipped_to_the_film(run, film, tmp_path):
    copy = tmp_path / "film.mp4"
    copy.write_bytes(film.read_bytes())
    copy.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    out = ok(run("search", copy, "hello", "--within", "0-99999999999", "--json"))
    report = json.loads(out)["films"][0]
    assert report["covered"]["speech"] == 1.0
    assert report["hits"][0]["text"] == "Hello"


def test_search_shows_what_is_sure_and_more_only_if_asked(run, film, subtitled):
    assert ok(run("search", subtitled, "hello")) == "  [00:00:01]  said  “Hello”\n"
    code, out, err = run("search", film, "an accordion on a bicycle")
    assert (code, out) == (0, "")
    assert "nothing found for sure; --unsure shows the nearest moments" in err
    # the film is short, so all of it is known by now
    assert "not all on-screen text" not in err
    _, out, err = run("search", film, "an accordion on a bicycle", "--unsure")
    assert out.splitlines()[0].startswith("? [00:00:")
    assert "--unsure" not in err
    report = json.loads(ok(run("search", film, "an accordion on a bicycle", "--json")))["films"][0]
    assert report["hits"] == []
    assert report["covered"]["onscreen"] == 1.0


def test_search_says_how_to_read_the_screens_of_a_long_film(run, film, tmp_path, monkeypatch):
    monkeypatch.setattr("longtake.cli.search.LONG", 1.0)
    odd = tmp_path / "it's my film.mp4"
    odd.write_bytes(film.read_bytes())
    _, _, err = run("search", odd, "an accordion on a bicycle")
    command = err.partition("not all on-screen text is read yet; to read it: ")[2].splitlines()[0]
    assert shlex.split(command) == ["longtake", "index", str(odd)]


def test_alone_it_says_what_to_type(run):
    out = ok(run())
    assert 'longtake film.mp4 "Who' in out
    assert "--model" in out
    assert "longtake film.mp4\n" in out


@pytest.fixture
def subtitled(film, tmp_path):
    copy = tmp_path / "film.mp4"
    copy.write_bytes(film.read_bytes())
    lines = "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n00:00:02,500 --> 00:00:03,000\n<b>\n"
    copy.with_suffix(".srt").write_text(lines)
    return copy


def test_a_transcript_in_every_format(run, subtitled, tmp_path):
    assert "[00:00:01] Hello" in ok(run("transcript", subtitled))
    assert json.loads(ok(run("transcript", subtitled, "--json")))["lines"][0]["end"] == 2.0
    for name, begins in (("t.srt", "1\n00:00:01,000 -->"), ("t.vtt", "WEBVTT\n")):
        assert run("transcript", subtitled, "--out", tmp_path / name)[0] == 0
        assert (tmp_path / name).read_text().startswith(begins)
    assert "Hello" not in ok(run("transcript", subtitled, "--within", "00:00:02.2-00:00:04"))


def test_speakers_are_listed_renamed_and_searched(run, film_folder, tmp_path):
    film = shutil.copy(FILMS[0].make(film_folder), tmp_path / "meeting.mp4")
    texts = [
        "<v Anna>Hello there.",
        "<v Ben>Hello, Anna.",
        "Nothing.",
        "<v Ben>Bye.",
        "<v Anna>So.",
    ]
    cues = [f"00:0{n}.000 --> 00:0{n}.900\n{text}\n" for n, text in enumerate(texts)]
    Path(film).with_suffix(".vtt").write_text("\n".join(["WEBVTT\n", *cues]))
    assert "  2  Ben  (2 lines" in ok(run("speakers", film))
    code, _, err = run("speakers", film, "--name", "Bem=Dr Lee")
    assert (code, "did you mean 'Ben'?" in err) == (2, True)
    report = json.loads(ok(run("speakers", film, "--name", "2=Dr Lee", "--json")))
    assert [row["name"] for row in report["speakers"]] == ["Anna", "Dr Lee"]
    assert report["unknown_lines"] == 1
    # a speaker can be renamed again, by the new name
    assert "Dr Li" in ok(run("speakers", film, "--name", "Dr Lee=Dr Li"))
    assert "[00:00:03] Dr Li: Bye." in ok(run("transcript", film))
    lines = json.loads(ok(run("transcript", film, "--json")))["lines"]
    assert [line["speaker"] for line in lines] == ["Anna", "Dr Li", None, "Dr Li", "Anna"]
    found = json.loads(ok(run("search", film, "hello", "--by", "dr li", "--json")))
    assert [hit["text"] for hit in found["films"][0]["hits"]] == ["Dr Li: Hello, Anna."]
    assert "longtake speakers" in run("search", film, "hello", "--by", "Eve")[2]


def test_a_transcript_never_replaces_the_film_or_its_subtitles(run, subtitled):
    for target in (subtitled, subtitled.with_suffix(".srt")):
        before = target.read_bytes()
        assert run("transcript", subtitled, "--out", target)[0] == 2
        assert target.read_bytes() == before


def test_index_goes_on_with_the_other_films(run, film, film_folder):
    other = FILMS[1].make(film_folder)
    code, out, err = run("index", film, "nowhere.mp4", other, "--json", *QUICK)
    assert code == 2
    assert "nowhere.mp4: no such file" in err
    report = json.loads(out)
    assert [each["film"] for each in report["films"]] == [str(film), str(other)]
    assert [each["film"] for each in report["failed"]] == ["nowhere.mp4"]


def test_index_says_what_is_damaged_and_builds_it_again(run, film):
    ok(run("index", film, *QUICK))
    (rows,) = (Path(os.environ["LONGTAKE_CACHE"]) / "films").glob("*/layers/glimpses-*/rows.npy")
    rows.write_bytes(rows.read_bytes()[:100])
    code, out, err = run("index", film, "--json", *QUICK)
    assert code == 0, err
    assert f"damaged: file {rows}, why " in err
    assert [layer["was_done"] for layer in json.loads(out)["films"][0]["layers"]] == [True, False]
    (packets,) = rows.parents[1].glob("packets-*/pts.npy")
    packets.write_bytes(b"")
    assert f"damaged: file {packets}, why " in run("search", film, "a number")[2]
    assert "damaged" not in run("search", film, "a number")[2]


def test_two_films_are_searched_with_models_loaded_once(run, film, film_folder, monkeypatch):
    loaded, load = [], runtime.load_network

    def counted(model, compute, **options):
        loaded.append(model.name)
        return load(model, compute, **options)

    monkeypatch.setattr(runtime, "load_network", counted)
    # on-screen text is not read then: its reader needs the memory of the others
    monkeypatch.setattr("longtake.cli.search.LONG", 1.0)
    other = FILMS[1].make(film_folder)
    ok(run("search", film, other, "a number"))
    assert len(loaded) == len(set(loaded)) == 2


def test_doctor(run):
    facts = json.loads(ok(run("doctor", "--json")))
    assert facts["packages"]["av"]
    assert facts["cache"]["free_bytes"] > 0
    assert facts["found"]["extras"]
    assert all(set(each) == {"why", "command"} for each in facts["advice"])
    assert "cache" in ok(run("doctor"))


@pytest.mark.parametrize(
    "command",
    [*COMMANDS, "models list", "models probe", "models pull", "cache list", "cache clear"],
)
def test_every_command_has_help_with_an_example(run, command):
    text = ok(run(*command.split(), "--help"))
    assert f"longtake {command}" in text.partition("Example:")[2]


def test_help_fits_a_terminal_of_24_lines(run):
    lines = ok(run("--help")).splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 79


@pytest.fixture
def called(monkeypatch):
    """The command that is called, and its arguments; nothing is run."""
    calls = []

    def load(name):
        def called(words):
            calls.append([name, *words])

        words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
        return click.Command(name, callback=called, params=[words], context_settings=ANYTHING)

    monkeypatch.setattr(cli, "_load", load)
    return calls


ANYTHING = {"ignore_unknown_options": True, "help_option_names": []}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["film.mp4", "Who?"], ["ask", "film.mp4", "Who?"]),
        (["gone.mp4", "Who?", "--method", "auto"], ["ask", "gone.mp4", "Who?", "--method", "auto"]),
        (["film.mp4", "--questions", "-"], ["ask", "film.mp4", "--questions", "-"]),
        (["film.mp4", "Who imports a.ts"], ["ask", "film.mp4", "Who imports a.ts"]),
        (["info", "Who?"], ["info", "Who?"]),
        (["https://example.org/a", "Who?"], ["ask", "https://example.org/a", "Who?"]),
        (["https://example.org/a"], ["ask", "https://example.org/a"]),
        (["film.mp4"], ["serve", "--open", "--films=film.mp4"]),
        (["film.mp4", "info"], ["serve", "--open", "--films=film.mp4", "--films=info"]),
        (["."], ["serve", "--open", "--films=."]),
    ],
)
def test_a_film_is_asked_or_opened_without_a_command(
    run, called, tmp_path, monkeypatch, typed, meant
):
    monkeypatch.chdir(tmp_path)
    for name in ("film.mp4", "info"):
        (tmp_path / name).touch()
    ok(run(*typed))
    assert called == [meant]


@pytest.mark.parametrize("name", ["filmm", "x" * 5000, "a\0b", ""])
def test_what_is_neither_a_film_nor_a_command_is_unknown(run, called, name):
    code, _, err = run(name, "Who?")
    assert (code, called) == (2, [])
    assert "unknown command" in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["inof", "x"], 2, "did you mean 'info'"),
        (["info"], 2, "Missing argument"),
        (["info", "nowhere.mp4"], 2, "no such file"),
        (["nowhere.mp4"], 2, "longtake: nowhere.mp4: does not exist"),
        (["frames", "{film}", "--at", "soon"], 2, "not a time"),
        (["frames", "{film}", "--at", "99"], 2, "outside the film"),
        (["index", "{film}", "--set", "index.fsp=2"], 2, "did you mean 'index.fps'"),
        (["index", "{film}", "--subtitles", "none.srt"], 2, "none.srt: no such file"),
        (["search", "{film}", "  "], 2, "text to search for is empty"),
        (["search", "{film}", "num\udcff"], 2, "not valid UTF-8"),
        (["search", "{film}", "x", "--within", ""], 2, "not a range"),
        (
            ["search", "{film}", "x", "--within", "12-13"],
            2,
            "00:00:12-00:00:13 is outside the film",
        ),
        (["frames", "{film}", "--at", ""], 2, "one or more times"),
        (["frames", "{film}", "--at", " , "], 2, "one or more times"),
        (["cache", "clear"], 2, "--all"),
        (["cache", "clear", "nowhere.mp4"], 2, "no such file"),
    ],
)
def test_mistakes_are_answered_in_a_line_or_two(run, film, arguments, code, says):
    got, out, err = run(*(a.format(film=film) for a in arguments))
    assert got == code
    assert says in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) <= 4
    assert out == ""


@pytest.mark.parametrize("below", ["", "sub"])
def test_a_cache_that_is_a_file_is_said_plainly(run, film, tmp_path, monkeypatch, below):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LONGTAKE_CACHE", str(tmp_path / "file" / below))
    for arguments in (["info", film], ["cache", "list"], ["cache", "clear", "--all"]):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert f"{tmp_path / 'file'} is not a folder" in err
    assert "is not a folder" in ok(run("doctor"))
    assert "is not a folder" in json.loads(ok(run("doctor", "--json")))["cache"]["problem"]


WHILE_LOADING = ImportError("initialization failed")
WHILE_LOADING.__cause__ = KeyboardInterrupt()


@pytest.mark.parametrize(
    ("place", "error", "code", "says"),
    [
        ("os.fsync", OSError(28, "No space left on device"), 1, "disk is full"),
        ("longtake.index.layers.build_frame_layers", KeyboardInterrupt(), 130, "work is kept"),
        ("longtake.index.layers.build_frame_layers", WHILE_LOADING, 130, "interrupted"),
    ],
)
def test_a_full_disk_and_interrupts_are_said_plainly(
    run, film, monkeypatch, place, error, code, says
):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(place, fail)
    ended, _, err = run("index", film, *QUICK)
    assert (ended, says in err) == (code, True), err


def test_internal_errors_hide_the_traceback_until_asked(run, film, monkeypatch):
    def break_down(*args, **kwargs):
        raise RuntimeError("boom")

    monkeypatch.setattr("longtake.cli.info.open_film", break_down)
    code, _, err = run("info", film)
    assert code == 1
    assert "RuntimeError: boom" in err
    assert "Traceback" not in err
    monkeypatch.setattr(sys, "argv", ["longtake", "info", str(film), "--debug"])
    assert "Traceback" in run("info", film, "--debug")[2]


def test_control_characters_are_shown_not_obeyed(run, tmp_path, film):
    hostile = tmp_path / "a\x1b[2Jb\r.mp4"
    hostile.write_bytes(film.read_bytes())
    out = ok(run("info", hostile))
    assert "\x1b" not in out
    assert "\\x1b[2Jb\\r" in out
    assert visible("ok\u202e\x07\nnext") == "ok\\u202e\\x07\nnext"


@pytest.mark.processes
@pytest.mark.parametrize("arguments", [["methods", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_error(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "longtake", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_names_that_are_no_text_are_printed_all_the_same(film, tmp_path, form):
    odd = os.fsencode(tmp_path) + b"/a\xffb.mp4"
    os.link(film, odd)
    options = ["--at", "1", "--out", odd + b" stills", *form]
    done = subprocess.run(
        [sys.executable, "-m", "longtake", "frames", odd, *options],
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode("utf-8")
    if form:
        assert json.loads(out)["film"].endswith("a\ufffdb.mp4")
    else:
        assert "a\\udcffb.mp4 stills" in out


def test_what_json_cannot_hold_is_null(run):
    out = ok(run("cache", "list", "--json", "--set", "cache.limit_gb=inf"))
    assert json.loads(out)["limit_bytes"] is None


def test_rough_figures():
    durations = ["under 1 s", "about 40 s", "about 3 min", "about 2.5 h"]
    assert [human_seconds(seconds) for seconds in (0.2, 40, 200, 9000)] == durations
    sizes = ["12 B", "1.5 kB", "2.5 MB", "7000.0 GB"]
    assert [human_bytes(count) for count in (12, 1500, 2.5e6, 7e12)] == sizes


def commands_in_messages():
    """Every command line in a string of the package that is no docstring; X stands for values."""
    for file in sorted(Path(cli.__file__).parents[2].rglob("*.py")):
        source = file.read_text()
        if "longtake " not in source:
            continue
        tree = ast.parse(source)
        inside = {id(part) for node in ast.walk(tree) for part in _parts(node)}
        for node in ast.walk(tree):
            if id(node) in inside or not isinstance(node, ast.Constant | ast.JoinedStr):
                continue
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [getattr(part, "value", None) for part in parts]
            text = "".join(part if isinstance(part, str) else "X" for part in texts)
            # as a command, not as a name in a sentence
            for line in re.findall(r"(?:^\s*|[':;(]\s*)longtake ([^';,()\n]+)", text):
                yield f"{file}:{node.lineno}", line


def _parts(node):
    """What is no message of its own: the parts of an f-string, and docstrings."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    return [node.value] if isinstance(node, ast.Expr) else []


def test_every_command_that_a_message_names_exists(run):
    lines = list(commands_in_messages())
    # some that must be among them, so that the test finds what it looks for
    named = {" ".join(line.split()[:3]) for _, line in lines}
    assert {"models pull whisper", "index X", "library doctor --rebuild"} <= named
    for where, line in lines:
        words = [word.strip('"') for word in line.split()]
        if words[0] in ("film.mp4", "FILM"):
            continue
        assert words[0] in {*COMMANDS, "--help"}, where
        helped = run(words[0], "--help")[1]
        if " COMMAND " in helped and len(words) > 1:
            code, helped, _ = run(*words[:2], "--help")
            assert code == 0, where
        for option in (word for word in words if word.startswith("--")):
            assert option.partition("=")[0] in helped, where
