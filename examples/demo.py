"""Ask three questions about a film that longtake makes itself, on the built-in models.

    make demo            # or: python examples/demo.py --seed 11

The film comes from the laboratory, so the answers are known. Expected and given answers are printed as they are:
a language model of 1.5 billion parameters that sees through tags, on-screen text and subtitles is not always right.
The exit code is 0 when every question ended.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from longtake.lab.facts import Saying, Sign
from longtake.lab.film import make_world, write_world
from longtake.lab.script import Script
from longtake.timecode import clock
from longtake.types import LETTERS

MODEL = "local/qwen2.5-1.5b"
SECONDS = 100
# few notes, short prompts: what a small model on two cores reads in time. It is always sure of itself, so it is not
# asked whether it is; and it does not know one stretch of the film from another, so all of it is searched.
SETTINGS = (
    "videoagent.initial_frames=3",
    "videoagent.max_rounds=2",
    "videoagent.max_requests=3",
    "videoagent.segment_selection=false",
    "videoagent.retrieval=fused",
    "videoagent.self_evaluation=false",
)


@dataclass(frozen=True)
class Riddle:
    """A question with its answer and where in the film that is to be found."""

    text: str
    options: tuple[str, ...]
    answer: str
    moments: tuple[tuple[float, float], ...]

    @property
    def letter(self) -> str:
        """The right option."""
        return LETTERS[self.options.index(self.answer)]


def riddles(script: Script) -> list[Riddle]:
    """A spoken line, a sign, and the order of two signs."""
    rng = random.Random(script.seed)
    said = [h for h in script.sayings if isinstance(h.fact, Saying)]
    signs = [h for h in script.signs if isinstance(h.fact, Sign)]
    line, sign = rng.choice(said), rng.choice(signs)
    lines = {h.start: next(s.text for s in script.spoken if s.start == h.start) for h in said}
    first, second = sorted(rng.sample(signs, 2), key=lambda h: h.start)
    return [
        _riddle(
            rng,
            "Which of these is said?",
            lines[line.start],
            _recombined(rng, list(lines.values())),
            [line],
        ),
        _riddle(
            rng,
            "Which of these can be read?",
            sign.fact.text,
            _recombined(rng, [h.fact.text for h in signs]),
            [sign],
        ),
        _riddle(
            rng,
            "Which of these two signs is shown first?",
            first.fact.text,
            [second.fact.text],
            [first, second],
        ),
    ]


def _recombined(rng: random.Random, texts: list[str]) -> list[str]:
    """Texts that begin like one of these and end like another, and are none of them."""
    heads, tails = (
        [t.split()[: len(t.split()) // 2] for t in texts],
        [t.split()[len(t.split()) // 2 :] for t in texts],
    )
    mixed = {" ".join([*head, *tail]) for head in heads for tail in tails} - set(texts)
    return rng.sample(sorted(mixed), 3)


def _riddle(rng: random.Random, text: str, answer: str, wrong: list[str], where: list) -> Riddle:
    options = [answer, *wrong]
    rng.shuffle(options)
    return Riddle(text, tuple(options), answer, tuple((h.start, h.end) for h in where))


def longtake(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, and show it."""
    print("$ longtake " + " ".join(f'"{a}"' if " " in a else a for a in arguments), flush=True)
    return subprocess.run(
        [sys.executable, "-m", "longtake", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def ask(film: Path, riddle: Riddle) -> dict:
    """One question, with what came back."""
    options = [word for option in riddle.options for word in ("--option", option)]
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    cast = ["--model", f"llm={MODEL}", "--model", "captioner=senses/words"]
    done = longtake(
        "ask",
        str(film),
        riddle.text,
        *options,
        *cast,
        *settings,
        "--max-seconds",
        str(SECONDS),
        "--json",
    )
    if done.returncode not in (0, 3):
        sys.exit(f"the question did not end (exit code {done.returncode})")
    return json.loads(done.stdout)


def near(answer: dict, riddle: Riddle, reach: float = 5.0) -> int:
    """Citations within ``reach`` seconds of where the answer is to be found."""
    return sum(
        any(start - reach <= cited["start"] <= end + reach for start, end in riddle.moments)
        for cited in answer["evidence"]
    )


def main() -> int:
    """Make the film, fetch the model once, ask."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=7, help="another film, other questions")
    parser.add_argument("--minutes", type=int, default=4)
    options = parser.parse_args()
    began = time.perf_counter()
    if longtake("models", "pull", MODEL).returncode:
        return 1
    fetched = time.perf_counter()
    right = cited = close = 0
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(options.seed, options.minutes)
        print(f"making a film of {options.minutes} minutes", flush=True)
        write_world(world, Path(folder))
        film = Path(folder) / "film.mp4"
        longtake("index", str(film))
        for riddle in riddles(world.script):
            answer = ask(film, riddle)
            right += answer["choice"] == riddle.letter
            cited += len(answer["evidence"])
            close += near(answer, riddle)
            print(f"  expected {riddle.letter}. {riddle.answer}")
            print(f"  given    {answer['choice']}. {answer['text']} ({answer['status']})")
            for each in answer["evidence"]:
                print(f"    [{clock(each['start'])}] {each['text'][:100]}")
            used = answer["usage"]
            print(
                f"    {used['frames']} frames, {used['calls']} calls, {used['tokens_in']} tokens in "
                f"({used['tokens_cached']} cached), {used['seconds']:.0f} s"
            )
    print(
        f"{right} of 3 right, {close} of {cited} citations within 5 s of the evidence, "
        f"{time.perf_counter() - fetched:.0f} s (and {fetched - began:.0f} s to fetch the model)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
