"""Types what a new user types, in fresh folders, and takes the times.

    python benchmarks/first_minutes.py                        # with this longtake
    python benchmarks/first_minutes.py --wheel dist/….whl     # in an empty environment
    python benchmarks/first_minutes.py --before SRC           # the tasks with an older one, too
    python benchmarks/first_minutes.py --out docs/first-minutes.md

The model is a simulated one of the laboratory behind a server on loopback, so that times are those
of longtake and not of a model. Flags are the words of a command that begin with a dash.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = """\
# The first five minutes

What a new user types and sees, in an empty home folder, and ten tasks with the number of commands,
the most flags of one of them, and seconds. The model is a simulated one of the [laboratory](lab.md)
behind a server on loopback, so that the times are those of longtake. Written by
`python benchmarks/first_minutes.py` on {system} shared with other work, so that times of one column
may be compared and small differences between columns may not. "Before" is commit aa30807; a task
that it has no command for is "not possible". Pictures were indexed beforehand in both; a chapter
list also reads all text on screen, once. The run that is resumed was killed after six seconds, and
its time is that of the same command typed again.
"""
MOST_LINES = 14
"""Lines of one command's output that are shown."""
SLOW = 30
"""Seconds of each reply of the server that is cancelled."""
STEADY = 1.0
"""Seconds of each reply of the server whose run is killed and resumed."""
KILLED_AFTER = 6.0
"""Seconds until the run is killed: some replies have come, others have not."""


@dataclass(frozen=True)
class Task:
    """Something that users do; each line is one command, ``{model}`` a model on loopback."""

    name: str
    after: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Empty: it could not be done."""
    cancelled: bool = False
    """Whether Ctrl-C is pressed after three seconds; the time is what it then takes to end."""
    killed: bool = False
    """Whether the command is first killed (SIGKILL) in the middle; the time is the second run's."""


MAKE = "lab make --minutes 2 --seed 7 --questions 4 --out world"
QUESTION = '"What does the person in the orange coat and the straw hat spin at the garden?"'
"""A question of the world that MAKE makes; films follow from their seed."""
FILM = f"world/film.mp4 {QUESTION}"
SEARCH = 'search world/film.mp4 "{quote}"'
COMPARE = f"compare {FILM} --method blind --method uniform --yes"
# search alone does not answer this one, so a model is asked
ASKED = 'ask world/film.mp4 "Who is at the rooftop, and who comes later?"'
CANCEL = f"{ASKED} --model {{slow}}"
RESUME = f"{ASKED} --model {{steady}}"
TYPO = "serch world/film.mp4 x"
BOTH = (f"ask {FILM} --model {{model}}", f"ask world/copy.mp4 {QUESTION} --model {{model}}")
TASKS = (
    Task("find a quote", (SEARCH,), (SEARCH,)),
    Task("a chapter list", ("chapters world/film.mp4",)),
    Task("an answer with its clip", (f"ask {FILM} --clips clips",)),
    Task("compare two methods", (COMPARE,), (f"{COMPARE} --model {{model}}",)),
    Task("ask a folder", (f"ask world {QUESTION}",), BOTH),
    Task("follow up", ("chat world/film.mp4",)),
    Task("export", (f"ask {FILM} --format html",)),
    Task("cancel", (CANCEL,), (CANCEL,), cancelled=True),
    Task("resume a killed run", (RESUME,), (RESUME,), killed=True),
    Task("help after a typo", (TYPO,), (TYPO,)),
)
FOLLOW_UP = f"{QUESTION.strip(chr(34))}\nAnd what happens after that?\n/why\n"
TYPED = {"follow up": FOLLOW_UP}


@dataclass
class User:
    """Someone with empty folders and one installed longtake."""

    command: list[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, line: str, typed: str = "") -> tuple[float, int, str]:
        """Type a command: seconds, exit code and what was printed."""
        began = time.monotonic()
        done = subprocess.run(
            [*self.command, *shlex.split(line)], cwd=self.folder, env=self.environment,
            input=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return time.monotonic() - began, done.returncode, done.stdout

    def cancel(self, line: str) -> tuple[float, int, str]:
        """The same, ended by Ctrl-C after three seconds; the seconds are those after it."""
        process = subprocess.Popen(
            [*self.command, *shlex.split(line)], cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        time.sleep(3)
        if process.poll() is not None:
            print(f"ended before it was cancelled: {line}", file=sys.stderr)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        said, _ = process.communicate(timeout=60)
        return time.monotonic() - began, process.returncode, said

    def resume(self, line: str) -> tuple[float, int, str]:
        """The same, killed in the middle and typed again; the seconds are those of the second."""
        process = subprocess.Popen(
            [*self.command, *shlex.split(line)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(KILLED_AFTER)
        if process.poll() is not None:
            print(f"ended before it was killed: {line}", file=sys.stderr)
        process.kill()
        process.wait()
        return self.run(line)


def new_user(command: list[str], home: Path, source: Path | None = None) -> User:
    """A user whose folders are empty."""
    home.mkdir(parents=True)
    own = {"HOME": home, "LONGTAKE_CACHE": home / "cache", "XDG_CONFIG_HOME": home / "config"}
    kept = ("PATH", "LANG", "OMP_NUM_THREADS")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {name: str(path) for name, path in own.items()} | {"COLUMNS": "100"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    return User(command, home, environment)


@contextmanager
def model_server(user: User, latency: float) -> Iterator[str]:
    """A simulated model on loopback: its name for ``--model``."""
    # this interpreter's: an install without extras has no server
    line = [sys.executable, "-m", "longtake", "lab", "serve", "--port", "0", "--json"]
    line += ["--latency", str(latency)]
    server = subprocess.Popen(
        line, cwd=user.folder, env=user.environment, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        text = ""
        while "}" not in text:
            text += server.stdout.readline()
        address = json.loads(text)["url"].rstrip("/")
        base = address if address.endswith("/v1") else f"{address}/v1"
        yield f"{base}#lab/acuity=0.9"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=20)


def installed(wheel: Path, folder: Path) -> tuple[list[str], float]:
    """Install the wheel into an empty environment: the command, and the seconds that this took."""
    began = time.monotonic()
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return [str(folder / "bin" / "longtake")], time.monotonic() - began


def first_minutes(user: User, model: str) -> list[str]:
    """What a new user types, with what is printed and the time."""
    lines = [
        "",
        MAKE,
        "info world/film.mp4",
        "doctor",
        f"setup --model {model} --yes",
        f"ask world/film.mp4 {QUESTION}",
        f"ask world/film.mp4 {QUESTION}",
        "history",
    ]
    shown = []
    for line in lines:
        seconds, code, said = user.run(line)
        said = said.replace(str(user.folder), "~").replace(
            model.partition("#")[0], "http://127.0.0.1:8765/v1"
        )
        told = line.replace(model.partition("#")[0], "http://127.0.0.1:8765/v1")
        rest = said.rstrip().splitlines()
        more = [f"… {len(rest) - MOST_LINES} more lines"] if len(rest) > MOST_LINES else []
        ended = f", exit code {code}" if code else ""
        shown += [
            f"$ longtake {told}".rstrip(),
            *rest[:MOST_LINES],
            *more,
            f"[{seconds:.1f} s{ended}]",
            "",
        ]
    return shown


def tasks(
    user: User, servers: dict[str, str], *, before: bool
) -> list[tuple[int, int, float] | None]:
    """Commands, flags and seconds of each task."""
    quote = first_words(user.folder / "world" / "film.srt")
    rows: list[tuple[int, int, float] | None] = []
    for task in TASKS:
        lines = task.before if before else task.after
        shutil.rmtree(user.folder / "clips", ignore_errors=True)
        if not lines:
            rows.append(None)
            continue
        total = 0.0
        for line in lines:
            typed = line.format(quote=quote, **servers)
            if task.cancelled:
                seconds, code, said = user.cancel(typed)
            elif task.killed:
                seconds, code, said = user.resume(typed)
            else:
                seconds, code, said = user.run(typed, TYPED.get(task.name, ""))
            total += seconds
            allowed = (0, 2, 3, 130) if task.cancelled or "typo" in task.name else (0, 3)
            if code not in allowed:
                print(f"{task.name}: exit code {code}\n{said}", file=sys.stderr)
        flags = max(sum(word.startswith("-") for word in shlex.split(line)) for line in lines)
        rows.append((len(lines), flags, total))
    return rows


def first_words(subtitles: Path) -> str:
    """Words that are said in the film."""
    if not subtitles.is_file():
        return "the sign"
    spoken = [
        line for line in subtitles.read_text().splitlines() if " " in line and "-->" not in line
    ]
    return " ".join(spoken[0].split()[:5]).strip('.,"') if spoken else "the sign"


def table(
    after: list[tuple[int, int, float] | None], before: list[tuple[int, int, float] | None]
) -> list[str]:
    """The ten tasks as Markdown."""
    told = [
        "| task | before: commands, flags, seconds | now: commands, flags, seconds | now typed |",
        "|---|---|---|---|",
    ]
    for task, now, then in zip(TASKS, after, before, strict=True):
        commands = [f"`longtake {line}`" for line in task.after if line != TYPO]
        typed = "; ".join(commands).replace("{quote}", "…").replace("{slow}", "…")
        typed = typed.replace("{steady}", "…")
        typed = typed.replace(QUESTION, '"…"') or "a mistyped command"
        told.append(f"| {task.name} | {cell(then)} | {cell(now)} | {typed} |")
    return told


def cell(row: tuple[int, int, float] | None) -> str:
    return "not possible" if row is None else f"{row[0]}, {row[1]}, {row[2]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--before", type=Path, help="the src folder of an older checkout")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as name:
        folder, command, notes = Path(name), [sys.executable, "-m", "longtake"], []
        source: Path | None = ROOT / "src"
        if options.wheel:
            command, seconds = installed(options.wheel.absolute(), folder / "venv")
            notes, source = ["$ pip install longtake", f"[{seconds:.1f} s]", ""], None
        user = new_user(command, folder / "now", source)
        with (
            model_server(user, 0.0) as model,
            model_server(user, SLOW) as slow,
            model_server(user, STEADY) as steady,
        ):
            servers = {"model": model, "slow": slow, "steady": steady}
            shown = first_minutes(user, model)
            shutil.copy(user.folder / "world" / "film.mp4", user.folder / "world" / "copy.mp4")
            now = tasks(user, servers, before=False)
            then: list[tuple[int, int, float] | None] = [None] * len(TASKS)
            if options.before:
                older = new_user(
                    [sys.executable, "-m", "longtake"], folder / "then", options.before.absolute()
                )
                shutil.copytree(user.folder / "world", older.folder / "world")
                # indexed, as the other user's film is by now
                older.run("index world/film.mp4 --only frames")
                then = tasks(older, servers, before=True)
    text = "\n".join([*notes, *shown])
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    body = ["```text", text.rstrip(), "```", "", "## Ten tasks", "", *table(now, then), ""]
    page = "\n".join([HEAD.format(system=system), *body])
    print(page)
    if options.out:
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
