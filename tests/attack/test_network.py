"""No command opens a connection that the user did not name, and no dependency reports home.

The telemetry of onnxruntime (1.31) is native code: it writes a device id under the user's cache
folder when it is imported, and looks up its collector's name after about a minute. Python's audit
hooks do not see that, so the commands also run under strace, where there is one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from films import FILMS, Recipe

from longtake.cli import COMMANDS, _load

SECONDS = float(os.environ.get("ATTACK_PROCESS_SECONDS", "0"))
"""How long the watched process lives after its last command; ``make attack`` sets 100."""

WATCHED = Path(__file__).parent / "watched.py"
CONNECTIONS = re.compile(r"(?:connect|sendto|sendmsg)\(.*sa_family=AF_INET6?.*")
LOOPBACK = ("127.0.0.1", '"::1"')


EVERYDAY = ("info", "ask")


def commands(film: Path, folder: Path) -> list[list[str]]:
    """Every command but ``models pull``, with every kind of perception."""
    model = ("--model", "lab/acuity=1")
    asked = ("What is on the sign?", "--option", "red", "--option", "green")
    trace, run = folder / "trace.jsonl", folder / "run"
    worlds = ("--of", "seeds=0-0", "--of", "minutes=3", "--of", "questions=2")
    library, clips = folder / "library.toml", folder / "clips.jsonl"
    agents = [f'[[agent]]\nname = "{name}"\nmodel = "lab/acuity=1"\n' for name in ("a", "b")]
    library.write_text("\n".join(agents))
    schema = folder / "schema.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"sign": {"type": "string"}}}))
    row = {"video": FILMS[0].name, "start": 0, "end": 9, "caption": "a b c " * 10}
    clips.write_text(json.dumps(row))
    select = ("select", "lab-captions", *worlds, "--library", library, "--top", 1, "--yes")
    train = ("train-retriever", clips, "--videos", folder, "--dry-run")
    lines = [
        ("info", film),
        ("frames", film, "--at", "1", "--out", folder / "stills"),
        ("index", film),
        ("search", film, "a sign"),
        ("info", film, "--blocks"),
        ("ask", film, *asked, *model, "--method", "uniform", "--trace", trace),
        ("transcript", film),
        ("speakers", film),
        ("extract", film, "--schema", schema, *model),
        ("clip", film, "0", "1", "--out", folder / "cut.mp4"),
        ("summary", film),
        ("library", "add", film),
        ("library", "list"),
        ("library", "search", "a sign"),
        ("library", "ask", *asked, *model, "--method", "uniform"),
        ("library", "status"),
        ("library", "doctor"),
        ("library", "remove", film),
        ("compare", film, *asked, *model, "--method", "blind", "--method", "uniform", "--yes"),
        ("replay", trace),
        ("methods",),
        ("eval", "--list"),
        ("reproduce", "videoagent", "--dry-run"),
        ("models", "list"),
        ("models", "probe", "lab/acuity=1"),
        (*select, "--out", folder / "team.toml"),
        (*train, "--out", folder / "head"),
        ("lab", "run", "--method", "blind", "--minutes", 3, "--worlds", 1, "--questions", 1),
        ("lab", "serve", "--port", 0),
        ("serve", "--films", film, "--port", 0, *model),
        ("mcp", "--films", film, *model),
        ("doctor",),
        (
            "eval",
            "lab-captions",
            *("--of", "seeds=0-1", "--of", "minutes=3", "--of", "questions=12"),
            *model,
            "--method",
            "blind",
            "--no-verify",
            "--workers",
            1,
            "--out",
            run,
        ),
        ("report", run),
        ("audit", run, *model, "--no-verify"),
        ("calibrate", run, "--out", folder / "calibration.json"),
        ("lab", "make", "--minutes", 1, "--questions", 1, "--out", folder / "world"),
        ("chat", film, *model),
        ("setup", "--completion", "bash"),
        # last, since it changes who answers
        ("setup", "--yes", *model),
        ("cache", "list"),
        ("cache", "clear", "--all"),
    ]
    return [[str(word) for word in line] for line in lines]


@pytest.fixture(
    scope="module", params=["everyday", pytest.param("all", marks=pytest.mark.campaign)]
)
def watched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, lend_models
) -> tuple[dict, str, Path]:
    """What the commands did: the report, the log (empty without strace) and their folder.

    All of them take long, since each that serves is left alone for two seconds.
    """
    folder = tmp_path_factory.mktemp("watched")
    lend_models(folder / "cache")
    film = Recipe("film.mkv", sound_from=0.0, count=15).make(folder)
    FILMS[0].make(folder)
    lines = commands(film, folder)
    if request.param == "everyday":
        lines = [line for line in lines if line[0] in EVERYDAY]
    listed, report, log = folder / "commands.json", folder / "report.json", folder / "strace"
    listed.write_text(json.dumps(lines))
    line = [sys.executable, str(WATCHED), str(report), str(listed), str(SECONDS)]
    if shutil.which("strace"):
        # the filter runs in the kernel, so that all other calls cost nothing
        traced_calls = ("--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg")
        line = ["strace", "-f", "-qq", *traced_calls, "-o", str(log), *line]
    places = {"HOME": folder / "home", "XDG_CACHE_HOME": folder / "xdg"}
    own = {**places, "LONGTAKE_CACHE": folder / "cache", "XDG_CONFIG_HOME": folder / "config"}
    environment = {**os.environ, **{name: str(path) for name, path in own.items()}}
    environment.pop("ORT_DISABLE_TELEMETRY", None)  # importing this package set it here
    done = subprocess.run(
        line,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300 + SECONDS,
    )
    assert done.returncode == 0, done.stderr
    traced = log.read_text(errors="replace") if log.exists() else ""
    return json.loads(report.read_text()), traced, folder


def test_every_command_works_without_a_network(watched):
    report, _, folder = watched
    lines = json.loads((folder / "commands.json").read_text())
    # a server ends by an interrupt
    sound = (0, 3, 130)
    failed = [line for line, code in zip(lines, report["codes"], strict=True) if code not in sound]
    assert failed == []


def test_every_command_is_watched(tmp_path):
    lines = commands(tmp_path / "film.mkv", tmp_path)
    left_out = set()
    for name in COMMANDS:
        command = _load(name)
        parts = command.commands if isinstance(command, click.Group) else {"": None}
        for part in parts:
            words = [name, part] if part else [name]
            if not any(line[: len(words)] == words for line in lines):
                left_out.add(" ".join(words))
    # downloads what the user names, from where the catalogue says
    assert left_out == {"models pull"}


def test_no_python_code_reaches_out(watched):
    assert watched[0]["attempts"] == []


def test_no_native_code_reaches_out(watched):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    outside = [
        line
        for line in CONNECTIONS.findall(watched[1])
        if not any(place in line for place in LOOPBACK)
    ]
    assert outside == []


def test_no_device_id_and_no_queue_are_written(watched):
    folder = watched[2]
    homes = [path for path in (folder / "home", folder / "xdg") if path.exists()]
    assert [file for home in homes for file in home.rglob("*onnxruntime*")] == []


def test_importing_the_package_is_enough(tmp_path):
    """As from Python, where onnxruntime may be imported by somebody else afterwards."""
    places = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    environment = {**os.environ, **places}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    code = "import longtake, onnxruntime"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=tmp_path)
    assert list(tmp_path.rglob("*onnxruntime*")) == []
