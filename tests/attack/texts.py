"""Texts from outside, mutated: everything that parses them must return or raise in our own words.

Run as a program, ``python texts.py SEED SECONDS CRASHES`` mutates until the time is up; the last
line it prints is JSON with the number of cases and findings.
"""

import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attack import replies
from attack.bombs import HEADS, PIECES
from support.annotations import EGOSCHEMA, LONGVIDEOBENCH, LVBENCH, MLVU, NEXTQA, VIDEOMME

from longtake import config
from longtake.agents.team import read_team
from longtake.errors import LongtakeError
from longtake.tracing import trace
from longtake.video.subtitles import read_subtitles
from longtake_bench import runs
from longtake_bench.benchmarks import load
from longtake_bench.benchmarks.long_videos import DEV
from longtake_bench.lab.film import read_script
from longtake_bench.lab.world import make_script
from longtake_bench.training.data import read_list

SECONDS = 10.0
"""CPU time that no text of some kilobytes may take."""

Files = Mapping[str, str]


@dataclass(frozen=True)
class Target:
    """Something that reads files, and sound files for it."""

    read: Callable[[Path], object]
    """Is given the folder of the files."""
    files: Files
    words: tuple[str, ...] = ()
    """Words that a mutation may insert, besides those of every target."""


def _benchmark(name: str, files: Files) -> Target:
    def read(folder: Path) -> object:
        benchmark = load(name, folder, {})
        if not name.endswith("-captions"):
            return benchmark  # its films are not there
        return [benchmark.source.footage(item.asked.video) for item in benchmark.items[:1]]

    return Target(read, files)


TRACE = "\n".join(
    [
        '{"longtake_trace": 1, "longtake": "0.1.0"}',
        '{"kind": "run_started", "id": 1, "method": "m", "question": "q?", "film": "f.mp4"}',
        '{"kind": "picture", "digest": "d", "jpeg": "/9j/"}',
        '{"kind": "frames_seen", "id": 2, "frames": [{"time": 12.5, "digest": "d"}]}',
        '{"kind": "noted", "id": 3, "label": "x", "data": {"y": [1, {"z": null}]}}\n',
    ]
)
CONFIG = """
[cache]
limit_gb = 50
[media]
workers = 4
[index]
fps = 1.0
[perception]
images = "conse"
[budget]
calls = 7
[models.mine]
backend = "openai"
model = "x"
base_url = "http://127.0.0.1:1/v1"
[videoagent]
initial_frames = 5
"""
SPEC = {key: {"name": "lab", "options": {}} for key in sorted(runs.SPEC_KEYS)}
RESULT = '{"id": "q", "status": "answered", "choice": "A", "usage": {"frames": 1}}\n'


def _settings(folder: Path) -> object:
    return config.load(config=folder / "config.toml", method_names=["videoagent"])


def _results(folder: Path) -> object:
    run = runs.RunFolder(folder)
    return run.results(), run.spec()


def _trace(folder: Path) -> object:
    return trace.read(folder / "trace.jsonl")


LAYOUTS = ("```", "```json\n", "<think>", "</think>", "**choice**: ", "| choice |", "/*", "//")

TARGETS: dict[str, Target] = {
    "reply": Target(replies.reply, {"reply.txt": replies.SOUND}, LAYOUTS),
    "loose JSON": Target(replies.loose, {"loose.txt": replies.SOUND}, LAYOUTS),
    "body": Target(replies.body, {"body.json": replies.BODY}),
    "configuration": Target(_settings, {"config.toml": CONFIG}, ("[[", "inf", "nan", "1e999")),
    "trace": Target(_trace, {"trace.jsonl": TRACE}),
    "results": Target(_results, {"spec.json": json.dumps(SPEC), "results.jsonl": RESULT}),
    "team": Target(
        lambda folder: read_team(folder / "team.toml"),
        {"team.toml": '[[agent]]\nname = "a"\nmodel = "lab/acuity=1"\n'},
    ),
    "script": Target(read_script, {"script.json": make_script(3, 1).to_json()}),
    "captions": Target(
        lambda folder: read_list(folder / "clips.jsonl"),
        {"clips.jsonl": '{"video": "v", "start": 0, "end": 1, "caption": "a dog"}\n'},
    ),
    "egoschema": _benchmark(
        "egoschema",
        {
            "questions.json": json.dumps([{"q_uid": "u1", **EGOSCHEMA}]),
            "subset_answers.json": '{"u1": 3}',
        },
    ),
    "egoschema-captions": _benchmark(
        "egoschema-captions",
        {
            "subset_anno.json": json.dumps({"u1": {**EGOSCHEMA, "truth": 1}}),
            "lavila_subset.json": '{"u1": ["#C walks", "#C sits"]}',
        },
    ),
    "nextqa-captions": _benchmark(
        "nextqa-captions",
        {
            "val.csv": NEXTQA + '7,9,1,1,"why, then",2,6,CW,a,b,c,d,e\n',
            "captions_1fps.json": '{"7": {"10": "later", "2": "first"}}',
        },
    ),
    "videomme": _benchmark("videomme", {"videomme.json": json.dumps([VIDEOMME])}),
    "longvideobench": _benchmark("longvideobench", {"lvb_val.json": json.dumps([LONGVIDEOBENCH])}),
    "lvbench": _benchmark(
        "lvbench", {"video_info.meta.jsonl": json.dumps({"key": "k", "qa": [LVBENCH]}) + "\n"}
    ),
    "mlvu": _benchmark("mlvu", {f"{name}.json": json.dumps([MLVU]) for name in DEV}),
    **{
        f"subtitles{suffix}": Target(
            lambda folder, name=f"s{suffix}": read_subtitles(folder / name),
            {f"s{suffix}": f"{head}Hello{tail}"},
            PIECES,
        )
        for suffix, head, tail in (
            (".srt", HEADS[".srt"], "\n"),
            (".vtt", HEADS[".vtt"], "\n"),
            (".ass", HEADS[".ass"], "\n"),
            (".json", HEADS[".json"], '"}]'),
        )
    },
}

WORDS = (
    *("{", "}", "[", "]", '"', "'", ",", ":", "=", "\n", "\\", "\\u", "\\ud800", "\0", "#", "-"),
    *(".", "null", "true", "0", "-1", "1e400", "9" * 5000, "NaN", "Infinity"),
    "1970-01-01T00:00:00Z",
    *('""', "[]", "{}", '"a": ', "[" * 20_000, '{"a":' * 20_000, "\ufeff", "\u202e", "é", "😀"),
)


def mutated(text: str, chance: random.Random, words: tuple[str, ...]) -> bytes:
    """The text with one to eight changes."""
    data = bytearray(text.encode())
    for _ in range(chance.choice([1, 1, 2, 4, 8])):
        place = chance.randrange(len(data) + 1)
        size = chance.choice([0, 1, 1, 3, 20])
        piece = chance.choice(
            [
                b"",
                chance.choice(words).encode("utf-8", "surrogatepass"),
                chance.choice(words).encode("utf-8", "surrogatepass"),
                chance.randbytes(chance.choice([1, 4])),
                bytes(data[place : place + chance.choice([5, 50])]) * chance.choice([1, 2, 300]),
            ]
        )
        data[place : place + size] = piece
    return bytes(data)


def change(target: Target, chance: random.Random) -> dict[str, bytes]:
    """The files of a target, one of them mutated."""
    victim = chance.choice(tuple(target.files))
    files = {name: text.encode() for name, text in target.files.items()}
    files[victim] = mutated(target.files[victim], chance, WORDS + target.words)
    return files


def attempt(target: Target, files: Mapping[str, bytes]) -> str:
    """Read files; gives what went wrong, or nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in files.items():
            (folder / file).write_bytes(data)
        began = time.process_time()
        try:
            target.read(folder)
        except LongtakeError:
            pass
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            return traceback.format_exc()
        seconds = time.process_time() - began
        return f"took {seconds:.1f} s" if seconds > SECONDS else ""


@dataclass
class Tally:
    """What was found; a finding counts once per target and place in the code."""

    cases: int = 0
    places: set[str] = field(default_factory=set)

    def add(self, name: str, why: str) -> bool:
        """Whether this is new."""
        lines = [line for line in why.splitlines() if line.startswith("  File")]
        place = f"{name} {lines[-1] if lines else why} {why.splitlines()[-1][:40]}"
        new = place not in self.places
        self.places.add(place)
        return new


def keep(case: Path, name: str, files: Mapping[str, bytes], why: str) -> None:
    """Write a finding down; a test tries it from then on."""
    case.parent.mkdir(exist_ok=True)
    plain = {file: data.decode("latin-1") for file, data in files.items()}
    case.write_text(json.dumps({"target": name, "files": plain, "why": why}))
    print(f"found: {case}\n{why[-500:]}", flush=True)


def main(seed: int, seconds: float, crashes: Path) -> None:
    """Mutate until the time is up; each new finding is kept as a file of JSON."""
    os.chdir(tempfile.mkdtemp())
    tally, end = Tally(), time.monotonic() + seconds
    while time.monotonic() < end:
        chance = random.Random(seed)
        name = chance.choice(tuple(TARGETS))
        files = change(TARGETS[name], chance)
        tally.cases += 1
        why = attempt(TARGETS[name], files)
        if why and tally.add(name, why):
            keep(crashes / f"{name}-{seed}.json", name, files, why)
        seed += 1
    print(json.dumps({"cases": tally.cases, "findings": len(tally.places)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]).absolute())
