"""From the command to the first answer about a film that was never seen.

    python benchmarks/first_answer.py FILM --question TEXT [--another TEXT] [--minutes 5 60]
                                      [--before CHECKOUT] [--model local/qwen2.5-1.5b]

The film is repeated, without encoding it again, to each of the lengths. It is asked with an empty
cache and with the method ``lookup``, where the checkout has it; then once more, and another
question, to see what later answers take. Python keeps compiled modules, as it does for an installed
package. Unless ``--model`` names another, the model is a server in this process that replies at
once with the first passage it is shown, so that the time is that of everything else. Weights of
local models are linked into the empty cache from ``--weights``. The table shows wall time, the
answer's state and the number of citations, for this checkout and an earlier one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av

from longtake.config import Settings, cache_folder

ROOT = Path(__file__).parent.parent


class Echo(BaseHTTPRequestHandler):
    """A model that answers with the first passage of its prompt."""

    def do_POST(self) -> None:
        """Reply to a chat completion."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = json.dumps(request["messages"], ensure_ascii=False)
        passage = re.search(r"1\. \[[\d:]+\] \w+: (.*?)(?:\\n|\")", prompt)
        text = passage.group(1) if passage else "not told"
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps({"id": "1", "model": "echo", "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def repeated(film: Path, minutes: float, folder: Path) -> Path:
    """The film over and over, its packets copied, until it is long enough."""
    path = folder / f"{film.stem}-{minutes:g}-min.mp4"
    with av.open(str(path), "w") as target:
        streams: dict[int, Any] = {}
        offset = 0.0
        while offset < 60 * minutes:
            with av.open(str(film)) as source:
                for stream in source.streams:
                    if stream.type in ("video", "audio") and stream.index not in streams:
                        streams[stream.index] = target.add_stream_from_template(stream)
                assert source.duration is not None
                for packet in source.demux():
                    if packet.dts is None or packet.stream.index not in streams:
                        continue
                    shift = round(offset / packet.time_base)
                    packet.dts, packet.pts = packet.dts + shift, packet.pts + shift
                    packet.stream = streams[packet.stream.index]
                    target.mux(packet)
                # a little more than the film, since sound and picture do not end together
                offset += source.duration / 1e6 + 0.1
    return path


def asked(
    root: Path, cache: str, film: Path, question: str, args: argparse.Namespace
) -> tuple[float, Any]:
    """Seconds that ``longtake ask`` takes, and its answer; ``None`` if it took too long."""
    command = [sys.executable, "-m", "longtake", "ask", str(film), question, "--json"]
    # version 0.1 has another method by default, and not this one
    if (root / "src" / "longtake" / "methods" / "lookup").exists():
        command += ["--method", "lookup"]
    command += ["--model", args.model] if args.model else []
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "LONGTAKE_CACHE": cache}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{cache}/compiled"}
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=args.limit
        )
    except subprocess.TimeoutExpired:
        return time.perf_counter() - began, None
    if not done.stdout.strip():
        sys.exit(f"{' '.join(command)}: {done.stderr[-500:]}")
    return time.perf_counter() - began, json.loads(done.stdout)


def main() -> None:
    """Print a row for each film and checkout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("film", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 60.0])
    parser.add_argument("--question", required=True)
    parser.add_argument("--another", default="", help="a question that follows")
    parser.add_argument("--model", default="")
    parser.add_argument(
        "--weights", type=Path, default=cache_folder(Settings()) / "models", help="GGUF files"
    )
    parser.add_argument("--before", type=Path, help="an earlier checkout")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one answer")
    args = parser.parse_args()
    if not args.model:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        args.model = f"http://127.0.0.1:{server.server_port}/v1#echo"
    sides = {"before": args.before} if args.before else {}
    sides["now"] = ROOT
    print("| film | side | first answer, s | state | citations | again, s | another, s |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        films = [repeated(args.film, minutes, Path(folder)) for minutes in args.minutes]
        compare(films, sides, args)


def link(weights: Path, folder: Path) -> None:
    """Have the files of local models in a cache; downloading them is not what is measured."""
    folder.mkdir()
    for file in weights.glob("*.gguf"):
        (folder / file.name).symlink_to(file)


def compare(films: list[Path], sides: dict[str, Path], args: argparse.Namespace) -> None:
    """Ask every film of every side, first and again."""
    for film in films:
        for side, root in sides.items():
            with tempfile.TemporaryDirectory() as cache:
                link(args.weights, Path(cache) / "models")
                first, answer = asked(root, cache, film, args.question, args)
                again = other = float("nan")
                if answer:
                    again, _ = asked(root, cache, film, args.question, args)
                if answer and args.another:
                    other, _ = asked(root, cache, film, args.another, args)
            status = answer["status"] if answer else f"none within {args.limit:.0f} s"
            cited = len(answer["evidence"]) if answer else 0
            later = [f"{again:.1f}", f"{other:.1f}"]
            row = [film.name, side, f"{first:.1f}", status, cited, *later]
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
