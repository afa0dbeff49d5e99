"""Methods with a real language model on real captions: accuracy, letters, citations, cost.

    python benchmarks/real_model.py http://127.0.0.1:9001/v1#qwen [--bench ../shared/bench]
        [--out runs/real] [--runs nextqa/blind …] [--workers 12] [--parallel 4] [--limit N]

Each run is a ``longtake eval`` in a process of its own and can be resumed; the table is printed
from what the run folders hold. ``benchmarks/llm_server.py`` serves a GGUF model on a GPU without
enforcing anything, which is how the figures in ``docs/results.md`` were made.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from longtake.retrieval.scope import scope
from longtake.types import Segment
from longtake_bench import benchmarks
from longtake_bench.report import table
from longtake_bench.runs import RunFolder
from longtake_bench.scoring import measure_citations

ROOT = Path(__file__).parents[1]
MEASURES = ("mIoU", "mIoP", "Acc@GQA")
METHODS = ("uniform", "videoagent", "videodetective", "symphony", "a4vl", "lvagent")
METHODS += ("lookup", "auto")
UNCHECKED = ["--no-verify"]
FRAMES = [*UNCHECKED, "--set", "uniform.frames=5"]
LEAN = ["--set", "lookup.max_passages=2"]
EVERY = ["--set", "auto.every_stage=true"]  # for longtake calibrate
RUNS: dict[str, tuple[str, str, list[str]]] = {}
for name in ("nextqa", "egoschema"):
    RUNS |= {
        f"{name}/blind": (f"{name}-captions", "blind", UNCHECKED),
        f"{name}/uniform": (f"{name}-captions", "uniform", FRAMES),
        f"{name}/videoagent": (f"{name}-captions", "videoagent", UNCHECKED),
        f"{name}/lookup": (f"{name}-captions", "lookup", []),
        f"{name}/lookup-lean": (f"{name}-captions", "lookup", LEAN),
        f"{name}/auto": (f"{name}-captions", "auto", []),
        f"{name}/auto-lean": (f"{name}-captions", "auto", LEAN),
        f"{name}/every-stage": (f"{name}-captions", "auto", EVERY),
    }
RUNS["meetings/every-stage"] = ("meetings", "auto", EVERY)
for method in METHODS:
    RUNS[f"nextgqa/{method}"] = ("nextgqa-captions", method, [])
    if method not in ("lookup", "auto"):  # which are nothing without their evidence
        RUNS[f"nextgqa/{method}-unverified"] = ("nextgqa-captions", method, UNCHECKED)


def main() -> None:
    """Run what was asked for, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model name, such as http://127.0.0.1:9001/v1#qwen")
    parser.add_argument("--bench", type=Path, default=ROOT / ".." / "shared" / "bench")
    parser.add_argument("--out", type=Path, default=Path("runs/real"))
    parser.add_argument(
        "--runs", nargs="+", choices=sorted(RUNS), default=list(RUNS), metavar="RUN"
    )
    parser.add_argument("--workers", type=int, default=12, help="processes of each run")
    parser.add_argument("--parallel", type=int, default=4, help="runs at once")
    parser.add_argument("--limit", type=int, help="questions per run")
    parser.add_argument("--page-only", action="store_true", help="print what is there so far")
    parser.add_argument("--seconds", type=float, default=3600, help="stop each run after this long")
    args = parser.parse_args()
    if not args.bench.is_dir():
        sys.exit(f"no benchmarks in {args.bench}; name their folder with --bench")
    if not args.page_only:
        with ThreadPoolExecutor(args.parallel) as pool:
            list(pool.map(lambda name: evaluate(name, args), args.runs))
    heads = ("run", "questions", "accuracy (95 %)", "letters (%)", "tokens", "calls")
    print("\n" + table((*heads, "precision", *MEASURES), [row(name, args) for name in args.runs]))
    grounded = [name for name in args.runs if name.startswith("nextgqa/")]
    if grounded:
        print_by_part(grounded, args)


def print_by_part(names: Sequence[str], args: argparse.Namespace) -> None:
    """Citations on NExT-GQA where the question names a part of the film, and where it does not.

    The row ``named part`` looks at nothing: it cites the part that the question names, or else the
    middle 40 % of the film, for the answers of the first run.
    """
    data = data_folder("nextgqa-captions", args)
    benchmark = benchmarks.load("nextgqa-captions", data, {})
    items = {item.asked.id: item for item in benchmark.items}
    videos = {item.asked.video for item in benchmark.items}
    lengths = {video: benchmark.source.footage(video).duration for video in videos}
    part = {
        key: scope(item.asked.question.text, lengths[item.asked.video])
        for key, item in items.items()
    }
    lines = []
    for name in [*names, "named part"]:
        file = args.out / (names[0] if name == "named part" else name) / "results.jsonl"
        rows = RunFolder(file.parent).results()
        if name == "named part":
            for key, row in rows.items():
                length = lengths[items[key].asked.video]
                cited = part[key] or Segment(0.3 * length, 0.7 * length)
                rows[key] = replace(row, evidence=[cited])
        for title, keys in {
            "all": list(rows),
            "a part is named": [key for key in rows if part[key] is not None],
            "no part is named": [key for key in rows if part[key] is None],
        }.items():
            chosen = [items[key] for key in keys]
            right = [rows[key].choice == items[key].label for key in keys]
            measured = measure_citations(chosen, [rows[key] for key in keys], right)
            cells = citations(measured.plain() if measured else None)[1:]
            lines.append([f"{name}, {title}", str(len(keys)), *cells])
    print("\n" + table(("run", "questions", *MEASURES), lines))


def evaluate(name: str, args: argparse.Namespace) -> None:
    """Run one evaluation; what it prints goes to a log beside its results."""
    benchmark, method, extra = RUNS[name]
    out = args.out / name
    out.parent.mkdir(parents=True, exist_ok=True)
    data = data_folder(benchmark, args)
    command = [sys.executable, "-m", "longtake", "eval", benchmark, "--data", str(data)]
    command += ["--method", method, "--model", args.model, "--workers", str(args.workers)]
    # many processes share the cores; each would start as many threads as there are
    command += ["--out", str(out), *extra, "--set", "perception.threads=1"]
    if args.limit:
        command += ["--limit", str(args.limit)]
    if (out / "results.jsonl").exists():
        command.append("--resume")
    logged(name, command, out.with_suffix(".log"), args.seconds)


def logged(name: str, command: Sequence[str], log: Path, seconds: float) -> bool:
    """Run a command, which prints to a file; whether it succeeded."""
    began = time.perf_counter()
    with log.open("w") as file:
        try:
            done = subprocess.run(command, stdout=file, stderr=file, timeout=seconds, check=False)
            code = str(done.returncode)
        except subprocess.TimeoutExpired:
            code = "out of time"
    print(f"{name}: {code}, {time.perf_counter() - began:.0f} s", flush=True)
    return code == "0"


def data_folder(benchmark: str, args: argparse.Namespace) -> Path:
    """The files of a benchmark; NExT-GQA's questions are joined with the captions of NExT-QA."""
    name = benchmark.removesuffix("-captions")
    source = (args.bench / f"{name}_dev").resolve()
    if name != "nextgqa":
        return source
    joined = args.out / "data" / name
    joined.mkdir(parents=True, exist_ok=True)
    captions = (args.bench / "nextqa_dev" / "captions_1fps.json").resolve()
    for file in (*source.iterdir(), captions):
        with suppress(FileExistsError):  # runs begin at the same time
            (joined / file.name).symlink_to(file)
    return joined


def row(name: str, args: argparse.Namespace) -> list[str]:
    """One line of the table, from the report of a run."""
    out, data = args.out / name, data_folder(RUNS[name][0], args)
    command = [sys.executable, "-m", "longtake", "report", str(out), "--data", str(data), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [name, (done.stderr.splitlines() or ["no report"])[-1]]
    report = json.loads(done.stdout)["reports"][0]
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    letters = Counter(result.get("choice") or "–" for result in rows)  # failed ones have none
    right = {key: 100 * value for key, value in report["accuracy"].items()}
    return [
        name,
        str(len(rows)),
        f"{right['value']:.1f} [{right['low']:.1f}, {right['high']:.1f}]",
        " ".join(f"{k} {100 * n / len(rows):.0f}" for k, n in sorted(letters.items())),
        f"{report['means']['tokens_in'] + report['means']['tokens_out']:.0f}",
        f"{report['means']['calls']:.1f}",
        *citations(report.get("citations")),
    ]


def citations(values: dict[str, Any] | None) -> list[str]:
    """Precision of right answers, and the measures of NExT-GQA, in per cent."""
    shown = [(values or {}).get(key) for key in ("precision", "miou", "miop", "acc_gqa")]
    return ["" if value is None else f"{100 * value:.1f}" for value in shown]


if __name__ == "__main__":
    main()
