"""The built-in runtime beside a llama.cpp that is built for this machine's processor.

    npm install --ignore-scripts node-llama-cpp @node-llama-cpp/linux-x64
    python benchmarks/native_llm.py MODEL.gguf … --package node_modules/node-llama-cpp [--runs 3]

The wheel of ``xllamacpp`` uses AVX2; the packages of node-llama-cpp choose at run time what the
processor offers, as a llama.cpp compiled there or Ollama does. Both read the same prompt of about
400 tokens and write 40, in turns. The table shows the medians in tokens per second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from longtake.models.backends.local import LocalChat, Weights
from longtake.models.chat import Card

LINES = [
    "[0:12] speech: Do you want to share your creativity with the world?",
    "[0:20] speech: Then let others copy your work, be inspired by it and change it.",
    "[0:41] speech: Teachers, authors and artists build a richer, better, more vibrant culture.",
    "[1:05] text: All rights reserved, except fair use",
    "[1:22] speech: We provide free copyright licenses that let you keep your copyright.",
    "[1:50] text: Allow commercial uses of your work? Yes, as long as others share alike.",
    "[2:31] speech: It only takes a minute, just come to our website and answer a few questions.",
]
PROMPT = "Lines from a film:\n" + "\n".join(LINES * 3) + "\nWhat licenses are there?\n"
TOKENS = 40


def native(package: Path, model: Path, threads: int) -> dict[str, float]:
    """Tokens per second of node-llama-cpp."""
    script = Path(__file__).with_suffix(".mjs")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(PROMPT)
        file.flush()
        command = ["node", script, package.absolute(), model, file.name, threads, TOKENS]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode or not done.stdout:
        sys.exit(done.stderr[-500:])
    rates: dict[str, float] = json.loads(done.stdout.splitlines()[0])
    return rates


def built_in(chat: LocalChat) -> dict[str, float]:
    """Tokens per second of the runtime in this process."""
    address, key = chat.address()
    body = {"prompt": PROMPT, "n_predict": TOKENS, "cache_prompt": False, "ignore_eos": True}
    reply = httpx.post(
        address.removesuffix("/v1") + "/completion",
        json=body,
        headers={"Authorization": f"Bearer {key}"},
        timeout=600,
    )
    timings = reply.json()["timings"]
    return {"reading": timings["prompt_per_second"], "writing": timings["predicted_per_second"]}


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--package", type=Path, required=True, help="folder of node-llama-cpp")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print("| model | reading: built-in | native | | writing: built-in | native | |")
    print("|---|---|---|---|---|---|---|")
    for model in args.models:
        chat = LocalChat(Card("local"), Weights(model, threads=args.threads))
        built_in(chat)  # the first round warms up
        rounds = [
            (built_in(chat), native(args.package, model, args.threads)) for _ in range(args.runs)
        ]
        cells = [model.stem]
        for what in ("reading", "writing"):
            ours = statistics.median(one[what] for one, _ in rounds)
            theirs = statistics.median(other[what] for _, other in rounds)
            cells += [f"{ours:.0f}", f"{theirs:.0f}", f"× {theirs / ours:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
