"""The recipes of CONTRIBUTING.md are complete: their files are written and their commands run.

Some take over five seconds: each command is a process of its own, as for whoever follows them.
"""

import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtake.perception.protocols import ImageTextEncoder
from longtake.types import Frame
from longtake.video.clip import Encoding, write_film

ROOT = Path(__file__).parent.parent
SECTIONS = dict(
    re.findall(
        r"^### (.+?)\n(.*?)(?=^##)",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```\n(longtake .*?)^```", re.MULTILINE | re.DOTALL)
PACKAGE = "longtake_mine"
PACKAGED = ("A method", "A backend", "An encoder", "A benchmark", "A command")
UNREAD = "--set perception.reader=false"  # no recipe is about text on screen


class Recipe:
    """A section as a package beside a small film, and a shell to try it in."""

    def __init__(self, section: str, folder: Path) -> None:
        self.folder = folder
        self.files = dict(FILE.findall(SECTIONS[section]))
        site = folder / "site"
        for name, text in self.files.items():
            path = site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        _register(tomllib.loads(self.files["pyproject.toml"]), site)
        self._environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT / 'src'}"}
        (block,) = COMMANDS.findall(SECTIONS[section])
        self.commands = block.replace("\\\n", " ").splitlines()

    def run(self, command: str) -> str:
        """The output of a command line of the recipe."""
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def _register(project: dict[str, Any], site: Path) -> None:
    """Write what pip would write for the entry points."""
    info = site / f"{PACKAGE}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.1\n")
    lines = []
    for group, points in project["project"]["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seconds of red, then three of blue; six words are spoken in two seconds."""
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    pictures = [np.full((96, 128, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255))]
    write_film(path, np.repeat(pictures, 15, axis=0), Encoding(fps=Fraction(5)))
    words = "one two three four five six"
    path.with_suffix(".srt").write_text(f"1\n00:00:01,000 --> 00:00:03,000\n{words}\n")
    return path


@pytest.fixture
def recipe(
    request: pytest.FixtureRequest, tmp_path: Path, film: Path, lend_models: Callable[[Path], Path]
) -> Recipe:
    lend_models(Path(os.environ["LONGTAKE_CACHE"]))
    made = Recipe(request.param, tmp_path)
    for file in film.parent.iterdir():
        os.link(file, tmp_path / file.name)
    return made


def following(section: str) -> Any:
    return pytest.mark.parametrize("recipe", [section], indirect=True, ids=[section])


@pytest.mark.parametrize("section", PACKAGED)
def test_a_recipe_has_three_files_at_most(section: str) -> None:
    files = dict(FILE.findall(SECTIONS[section]))
    assert "pyproject.toml" in files
    assert 2 <= len(files) <= 3


@pytest.mark.campaign
@following("A method")
def test_method(recipe: Recipe) -> None:
    describe, measure = recipe.commands
    assert "Frames in each look." in recipe.run(describe)
    measured = json.loads(recipe.run(f"{measure} --json"))
    assert (measured["method"], measured["questions"]) == ("closer", 6)
    assert not measured["errors"]


@pytest.mark.campaign
@following("A method")
def test_the_simulated_models_know_the_fields_of_the_method(recipe: Recipe) -> None:
    recipe.run(
        "longtake eval lab --of minutes=2 --of seeds=1 --of questions=2 --method closer"
        " --model lab/acuity=1 --out lab"
    )
    rows = [json.loads(row) for row in (recipe.folder / "lab" / "results.jsonl").open()]
    assert [row["status"] for row in rows] == ["answered", "answered"]
    assert not any("neutral_value" in row["notes"] for row in rows)


class PlainServer(http.server.BaseHTTPRequestHandler):
    """The server that the backend's docstring describes."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.prompts.append(json.loads(body)["prompt"])  # type: ignore[attr-defined]
        reply = json.dumps({"text": '{"reason": "It is said.", "answer": "a postman"}'}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        pass


@following("A backend")
def test_backend(recipe: Recipe) -> None:
    (command,) = recipe.commands
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), PlainServer) as server:
        server.prompts = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        out = recipe.run(f"{command} {UNREAD}".replace(":8001", f":{server.server_port}"))
        server.shutdown()
        thread.join()
        assert "a postman" in out
        assert "Who comes in?" in server.prompts[0]  # type: ignore[attr-defined]


@following("An encoder")
def test_encoder(recipe: Recipe) -> None:
    (command,) = recipe.commands
    hits = json.loads(recipe.run(f"{command} {UNREAD} --json"))["films"][0]["hits"]
    assert hits[0]["time"] >= 3
    assert "image" in hits[0]["sources"]


@following("An encoder")
def test_encoder_keeps_the_contract(recipe: Recipe) -> None:
    names: dict[str, Any] = {}
    exec(compile(recipe.files[f"{PACKAGE}/colours.py"], "colours.py", "exec"), names)
    encoder = names["open_colours"](None)
    assert isinstance(encoder, ImageTextEncoder)
    black = Frame(0.0, np.zeros((4, 4, 3), np.uint8))
    for rows in (encoder.images([black]), encoder.texts(["red", "no colour"])):
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
    assert encoder.images([]).shape == (0, encoder.dim)


@pytest.mark.campaign
@following("A benchmark")
def test_benchmark(recipe: Recipe, film: Path) -> None:
    films = recipe.folder / "quiz" / "films"
    films.mkdir(parents=True)
    os.link(film, films / "short.mp4")
    row = {"id": "1", "film": "short", "question": "Which colour comes first?", "kind": "order"}
    row |= {"options": ["red", "blue"], "answer": "A"}
    (recipe.folder / "quiz" / "questions.jsonl").write_text(json.dumps(row))
    evaluate, report = recipe.commands
    recipe.run(evaluate)
    (result,) = (recipe.folder / "runs/quiz/results.jsonl").read_text().splitlines()
    assert json.loads(result)["choice"] in ("A", "B")
    assert "quiz" in recipe.run(report)


@pytest.mark.parametrize(
    ("section", "file", "before", "check"),
    [
        (
            "A column of the report",
            "longtake_bench/report.py",
            '    "run": lambda run',
            """
from types import SimpleNamespace
from longtake_bench.report import COLUMNS
assert COLUMNS["given"](SimpleNamespace(given=1, total=4)) == "25%"
""",
        ),
        (
            "What lookup cites",
            "longtake/retrieval/citing.py",
            "    if not reader or any(passage.source",
            """
from longtake.footage.plain import PlainFootage
from longtake.retrieval.citing import supporting
from longtake.retrieval.passages import Passage
from longtake.retrieval.relevance import Reader
from longtake.types import Line, Question, Segment
question = Question("Which law school is thanked?")
line = Line(Segment(0.0, 2.0), "Stanford Law School is thanked")
found = [Passage(source, (line,)) for source in ("onscreen", "speech")]
cited = supporting(Reader(PlainFootage, question), "Stanford", question, found)
assert [passage.source for passage, _ in cited] == ["speech"], cited
""",
        ),
    ],
)
def test_one_file_is_changed(
    tmp_path: Path, section: str, file: str, before: str, check: str
) -> None:
    (added,) = re.findall(r"^```text\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL)
    shutil.copytree(ROOT / "src", tmp_path / "src")
    path = tmp_path / "src" / file
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, f"{added}{before}"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    subprocess.run([sys.executable, "-c", check], env=environment, check=True)


@following("A command")
def test_command(recipe: Recipe) -> None:
    text, as_json = recipe.commands
    assert recipe.run(text) == "180 words per minute\n"
    assert json.loads(recipe.run(as_json))["words_per_minute"] == 180
