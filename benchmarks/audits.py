"""Runs and their audits with a real language model on real captions and meetings.

    python benchmarks/audits.py http://127.0.0.1:9001/v1#qwen cheap|meetings|nextgqa|…
        [--bench ../shared/bench] [--out runs/audits] [--seconds 340] [--parallel 10]

``cheap`` runs the cheap methods on captions, the others every method on a smaller sample of one
benchmark; each can have a server of its own on the same GPU. A sample has one question about each
video, drawn by seed 0, and every question the same budget. Each run is a ``longtake eval`` and a
``longtake audit`` in processes of their own; what is not complete when the time is up is left out.
The last lines say how many tokens a second it was.
"""

import argparse
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from real_model import ROOT, data_folder, logged

from longtake_bench.runs import RunFolder

BUDGET = ["--max-tokens", "40000"]
"""Symphony, the most expensive method, uses 24,000 on average in docs/results.md."""
# measured on an H200: all passes of the cheap methods use 15,600 tokens a question of NExT-GQA, at
# 7,300 a second beside other runs; those of every method 151,000, at 11,100 a second
CHEAP = ("lookup", "auto", "uniform")
COSTLY = ("symphony", "a4vl", "lvagent", "videodetective", "videoagent")
PLANS = {
    "cheap": [
        *(("nextgqa-captions", method, 60, 4) for method in CHEAP),
        *(("egoschema-captions", method, 60, 4) for method in CHEAP),
        *(("nextqa-captions", method, 60, 4) for method in CHEAP),
        *((f"{name}-captions", "videoagent", 60, 4) for name in ("nextgqa", "egoschema")),
    ],
    # the other methods need pictures or captions, which meetings do not have
    "meetings": [("meetings", "lookup", 46, 8)],
    **{
        name: [
            *((f"{name}-captions", method, 16, 8) for method in COSTLY),
            *((f"{name}-captions", method, 16, 4) for method in CHEAP),
        ]
        for name in ("nextgqa", "nextqa", "egoschema")
    },
}
"""Benchmark, method, questions, and processes; the most wanted first."""


def main() -> None:
    """Run a plan until the time is up, then audit what is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model name, such as http://127.0.0.1:9001/v1#qwen")
    parser.add_argument("plan", choices=PLANS)
    parser.add_argument("--bench", type=Path, default=ROOT / ".." / "shared" / "bench")
    parser.add_argument("--out", type=Path, default=Path("runs/audits"))
    parser.add_argument("--seconds", type=float, default=340)
    parser.add_argument("--parallel", type=int, default=10, help="runs at once")
    parser.add_argument("--videos", type=int, help="at most so many questions")
    parser.add_argument("--methods", nargs="+", help="only these, and blind")
    args = parser.parse_args()
    began = time.monotonic()
    end = began + args.seconds
    plan = [each for each in PLANS[args.plan] if each[1] in (args.methods or each)]
    groups = list(dict.fromkeys((name, count) for name, _, count, _ in plan))
    blind = {group: threading.Event() for group in groups}
    complete: dict[tuple[str, int], list[Path]] = {group: [] for group in groups}

    def work(name: str, method: str, count: int, workers: int) -> None:
        videos = min(count, args.videos or count)
        # such as "cheap/nextgqa-60/lookup"
        folder = args.out / args.plan / f"{name.removesuffix('-captions')}-{videos}" / method
        evaluation = [name, "--method", method, "--videos", str(videos), "--out", str(folder)]
        if method == "blind":
            evaluation.append("--no-verify")  # a check would look at the footage
        if (folder / "results.jsonl").exists():
            evaluation.append("--resume")
        options = ["--data", str(data_folder(name, args)), "--workers", str(min(workers, videos))]
        done = call("eval", folder, [*evaluation, *options], args, end)
        if method == "blind":
            blind[name, count].set()
        elif done and blind[name, count].wait(max(0.0, end - time.monotonic())):
            runs = [str(folder.parent / "blind"), str(folder)]
            done = call("audit", folder, [*runs, *options], args, end)
        if done:
            complete[name, count].append(folder)

    with ThreadPoolExecutor(args.parallel) as pool:
        futures = [pool.submit(work, name, "blind", count, 4) for name, count in groups]
        futures += [pool.submit(work, *each) for each in plan]
        for future in futures:
            future.result()
        seconds = time.monotonic() - began
        list(pool.map(lambda group: write_audit(group[0], complete[group], args), groups))
    used = tokens_below(args.out / args.plan)
    print(f"{args.plan}: {used:,} tokens in {seconds:.0f} s, {used / seconds:,.0f} a second")


def call(
    command: str, folder: Path, arguments: list[str], args: argparse.Namespace, end: float
) -> bool:
    """Evaluate or audit one run; what it prints goes to a log beside it."""
    left = end - time.monotonic()
    if left < 5:
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    line = [sys.executable, "-m", "longtake", command, *arguments, "--model", args.model, *BUDGET]
    # many processes share the cores; each would start as many threads as there are
    line += ["--set", "perception.threads=1"]
    log = folder.with_name(f"{folder.name}.{command}.log")
    return logged(f"{command} {folder}", line, log, left)


def write_audit(name: str, folders: list[Path], args: argparse.Namespace) -> None:
    """Write the audit of complete runs as JSON and as a page."""
    if not folders:
        return
    page = folders[0].parent / "audit.html"
    # a model that cannot answer: everything has been asked
    runs = map(str, sorted(folders))
    line = [sys.executable, "-m", "longtake", "audit", *runs, "--model", "lab/none"]
    line += ["--data", str(data_folder(name, args)), "--html", str(page), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    page.with_suffix(".json").write_text(done.stdout)
    print(f"{page}: {done.returncode} {done.stderr}", flush=True)


def tokens_below(folder: Path) -> int:
    """The tokens of all results in a folder."""
    total = 0
    for file in folder.rglob("results.jsonl"):
        for row in RunFolder(file.parent).results().values():
            total += row.usage.tokens_in + row.usage.tokens_out
    return total


if __name__ == "__main__":
    main()
