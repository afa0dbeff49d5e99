"""Ask three questions about a film that longtake generates, with the built-in models.

    make demo            # or: python examples/demo.py --seed 11

The film is synthetic, so the right answers are known. Expected and given answers are printed side
by side: a language model of 1.5 billion parameters that sees through tags, on-screen text and
subtitles is not always right. The exit code is 0 if every question ran to its end.
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


@dataclass(frozen=True)
class Riddle:
    """A question with its answer, and where in the film to find it."""

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
    said = [each for each in script.sayings if isinstance(each.fact, Saying)]
    signs = [each for each in script.signs if isinstance(each.fact, Sign)]
    line, sign = rng.choice(said), rng.choice(signs)
    spoken = {each.start: each.text for each in script.spoken}
    lines = [spoken[each.start] for each in said]
    texts = [each.fact.text for each in signs]
    first, second = sorted(rng.sample(signs, 2), key=lambda each: each.start)
    order = [first, second]
    # the order of these calls decides what the random numbers give, and so the questions
    wrong_lines = _recombined(rng, lines)
    hearing = _riddle(rng, "Which of these is said?", spoken[line.start], wrong_lines, [line])
    wrong_signs = _recombined(rng, texts)
    reading = _riddle(rng, "Which of these can be read?", sign.fact.text, wrong_signs, [sign])
    asked = "Which of these two signs is shown first?"
    ordering = _riddle(rng, asked, first.fact.text, [second.fact.text], order)
    return [hearing, reading, ordering]


def _recombined(rng: random.Random, texts: list[str]) -> list[str]:
    """Up to three new texts that begin like one of these and end like another."""
    halves = []
    for text in texts:
        words = text.split()
        middle = len(words) // 2
        halves.append((words[:middle], words[middle:]))
    mixed = {" ".join([*head, *tail]) for head, _ in halves for _, tail in halves}
    new = sorted(mixed - set(texts))
    # a short film may have too few signs to make three
    return rng.sample(new, min(3, len(new)))


def _riddle(rng: random.Random, text: str, answer: str, wrong: list[str], where: list) -> Riddle:
    options = [answer, *wrong]
    rng.shuffle(options)
    moments = tuple((happening.start, happening.end) for happening in where)
    return Riddle(text, tuple(options), answer, moments)


def longtake(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, and show it."""
    quoted = [f'"{argument}"' if " " in argument else argument for argument in arguments]
    print("$ longtake " + " ".join(quoted), flush=True)
    command = [sys.executable, "-m", "longtake", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)


def ask(film: Path, riddle: Riddle) -> dict:
    """Ask one question and return the answer."""
    arguments = ["ask", str(film), riddle.text]
    for option in riddle.options:
        arguments += ["--option", option]
    done = longtake(*arguments, "--max-seconds", str(SECONDS), "--json")
    # 3: the budget ran out, or no reply could be read
    if done.returncode not in (0, 3):
        sys.exit(f"the question failed (exit code {done.returncode})")
    return json.loads(done.stdout)


def near(answer: dict, riddle: Riddle, reach: float = 5.0) -> int:
    """Number of citations within ``reach`` seconds of the evidence."""
    return sum(
        any(start - reach <= cited["start"] <= end + reach for start, end in riddle.moments)
        for cited in answer["evidence"]
    )


def main() -> int:
    """Download the model once, make the film, and ask."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=7, help="of the film and its questions")
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
            tokens = f"{used['tokens_in']} tokens in ({used['tokens_cached']} cached)"
            calls = f"{used['frames']} frames, {used['calls']} calls"
            print(f"    {calls}, {tokens}, {used['seconds']:.0f} s")
    seconds = time.perf_counter() - fetched
    print(f"{right} of 3 right, {close} of {cited} citations within 5 s of the evidence")
    print(f"{seconds:.0f} s, and {fetched - began:.0f} s to download the model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
