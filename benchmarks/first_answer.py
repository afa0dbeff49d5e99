"""From the command to the first answer about a film that was never seen.

    python benchmarks/first_answer.py FILM --question TEXT [--another TEXT] [--minutes 5 60]
                                      [--before CHECKOUT] [--model local/qwen2.5-coder-1.5b]

The film is repeated, without encoding it again, to each of the lengths. It is asked with an empty
cache and with the method ``lookup``, where the checkout has it; then once more, and another
question, to see what later answers take. Python keeps compiled modules, as it does for an installed
package. Unless ``--model`` names another, the model is a server in this process that replies at
once with the first passage it is shown, so that the time is that of everything else. Weights of
local models are linked into the empty cache from the usual one. The table shows wall time, the
answer's state and the number of citations, for this checkout and an earlier one. For the other
question it also shows the seconds from the start of the process to the passages that are read, to
the first word of the draft and to the answer: medians of ``--rounds``, in which the sides take
turns. Without drafts, the answer is the first word.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from joined_film import repeat
from json_server import JsonHandler, serve_in_thread
from serve_process import link_models

ROOT = Path(__file__).parent.parent
LIMIT = 600
"""Seconds for one answer."""
WATCH = """
import sys, time, longtake
film, question, model, seconds = *sys.argv[1:4], {}
for item in longtake.open(film).stream(question, method="lookup", model=model or (), cache=False):
    kind = getattr(item, "label", getattr(item, "kind", "answer"))
    seconds.setdefault({"looked_up": "passages_found"}.get(kind, kind), time.time())
for kind in ("passages_found", "drafted", "answer"):
    print(seconds.get(kind, seconds["answer"]))
"""
"""Prints when the passages, the first word and the answer were there."""


class Echo(JsonHandler):
    """A model that answers with the first passage of its prompt."""

    def post(self, body: Any) -> None:
        """Reply to a chat completion."""
        prompt = json.dumps(body["messages"], ensure_ascii=False)
        passage = re.search(r"\[[\d:]+\] \w+: (.*?)(?:\\n|\")", prompt)
        text = passage.group(1) if passage else "not told"
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.send(200, {"id": "1", "model": "echo", "choices": [choice], "usage": usage})


def environment(root: Path, cache: str) -> dict[str, str]:
    """The variables under which a checkout runs."""
    ours = {"PYTHONPATH": str(root / "src"), "LONGTAKE_CACHE": cache}
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{cache}/compiled"}
    return {**os.environ, **ours, **compiled}


def asked(
    root: Path, cache: str, film: Path, question: str, args: argparse.Namespace
) -> tuple[float, Any]:
    """Seconds that ``longtake ask`` takes, and its answer; ``None`` if it took too long."""
    command = [sys.executable, "-m", "longtake", "ask", str(film), question, "--json"]
    # version 0.1 has another method by default, and not this one
    if (root / "src" / "longtake" / "methods" / "lookup").exists():
        command += ["--method", "lookup"]
    command += ["--model", args.model] if args.model else []
    began = time.perf_counter()
    try:
        output = printed(command, root, cache)
    except subprocess.TimeoutExpired:
        return time.perf_counter() - began, None
    return time.perf_counter() - began, json.loads(output)


def printed(command: list[str], root: Path, cache: str) -> str:
    """What a command of a checkout prints."""
    done = subprocess.run(
        command, env=environment(root, cache), capture_output=True, text=True, timeout=LIMIT
    )
    if not done.stdout.strip():
        sys.exit(f"{' '.join(command)}: {done.stderr[-500:]}")
    return done.stdout


def watched(root: Path, cache: str, film: Path, args: argparse.Namespace) -> list[float]:
    """Seconds to the passages, the first word and the answer of the other question."""
    command = [sys.executable, "-c", WATCH, str(film), args.another, args.model]
    began = time.time()
    return [float(line) - began for line in printed(command, root, cache).split()]


def main() -> None:
    """Print a row for each film and checkout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("film", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 60.0])
    parser.add_argument("--question", required=True)
    parser.add_argument("--another", default="", help="a question that follows")
    parser.add_argument("--rounds", type=int, default=1, help="how often it is asked")
    parser.add_argument("--model", default="")
    parser.add_argument("--before", type=Path, help="an earlier checkout")
    args = parser.parse_args()
    args.model = args.model or f"{serve_in_thread(Echo)}#echo"
    sides = {"before": args.before} if args.before else {}
    sides["now"] = ROOT
    another = "another: passages, s | first word, s | answer, s"
    print(f"| film | side | first answer, s | state | citations | again, s | {another} |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        films = [Path(folder) / f"{args.film.stem}-{minutes:g}-min.mp4" for minutes in args.minutes]
        for film, minutes in zip(films, args.minutes, strict=True):
            repeat(args.film, film, 60 * minutes)
        compare(films, sides, args)


def compare(films: list[Path], sides: dict[str, Path], args: argparse.Namespace) -> None:
    """Ask every film of every side, first and again, and then another question in turns."""
    for film in films:
        rows: dict[str, list[Any]] = {}
        times: dict[str, list[list[float]]] = {side: [] for side in sides}
        with tempfile.TemporaryDirectory() as folder:
            for side, root in sides.items():
                cache = Path(folder) / side
                link_models(cache)
                first, answer = asked(root, str(cache), film, args.question, args)
                again = asked(root, str(cache), film, args.question, args)[0] if answer else 0.0
                status = answer["status"] if answer else f"none within {LIMIT} s"
                cited = len(answer["evidence"]) if answer else 0
                rows[side] = [film.name, side, f"{first:.1f}", status, cited, f"{again:.1f}"]
            for _ in range(args.rounds if args.another else 0):
                for side, root in sides.items():
                    times[side].append(watched(root, str(Path(folder) / side), film, args))
        for side, row in rows.items():
            medians = [f"{median(each):.1f}" for each in zip(*times[side], strict=True)]
            print(f"| {' | '.join(map(str, row + medians))} |", flush=True)


if __name__ == "__main__":
    main()
