"""Ask four questions about a film that is made here, with the built-in models.

    make demo            # or: python examples/demo.py --seed 11
    python examples/demo.py --seeds 5     # five films, and a table of scores

The film is a short guided tour: title cards are drawn into the picture and read by the built-in
reader, the narration comes as subtitles beside the film. The first question, for the moments at
which a place is named, needs no language model, so that it is answered before one is downloaded.
Two of the others are answered in the film; the last asks for something that only eyes could tell,
and the right reply is that it was not found in what can be heard or read. The exit code is 0 if
every question ran to its end.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from longtake._util.timecode import clock
from longtake.video.clip import write_film

MODEL = "local/qwen2.5-coder-1.5b"
SIZE, FPS, SCENE = (640, 360), 10, 12
BEGAN = time.perf_counter()
NEAR = 5.0
"""Seconds within which a citation counts as at the evidence."""

PLACES = ["Harbour Museum", "Old Windmill", "Glass Bakery", "Stone Chapel", "Night Market"]
FOUNDERS = ["Clara Jensen", "Marcus Webb", "Ines Ferreira", "Otto Lindqvist", "Ruth Abara"]
TREASURES = ["a silver telescope", "a clock with one hand", "a whale's jawbone", "a singing bowl"]
FLOORS = ["behind the red curtain", "in the cellar", "on the second floor", "under the stairs"]
COLOURS = ["#20456b", "#6b3020", "#2b5d34", "#5a2b5d", "#5d512b"]
SMALL_WORDS = {"a", "the", "in", "on", "under", "behind", "to", "with"}
UNSEEN = ["What colour is the guide's hat?", "How many people are waiting outside?"]


@dataclass(frozen=True)
class Stop:
    """A place on the tour: a title card, and what the narrator says about it."""

    place: str
    hours: str
    founder: str
    year: int
    treasure: str
    where: str

    @property
    def card(self) -> list[str]:
        """The lines of the title card."""
        return [self.place.upper(), f"Open from {self.hours}"]

    @property
    def narration(self) -> list[str]:
        """What is said, a line for each third of the scene."""
        return [
            f"This is the {self.place}.",
            f"It was founded by {self.founder} in {self.year}.",
            f"Its greatest treasure, {self.treasure}, is kept {self.where}.",
        ]


@dataclass(frozen=True)
class Riddle:
    """A question with its answer, and where in the film to find it; no answer: it is not told."""

    text: str
    answer: str = ""
    moment: tuple[float, float] = (0.0, 0.0)


def tour(seed: int) -> list[Stop]:
    """The stops of a tour in random order."""
    rng = random.Random(seed)
    columns = [rng.sample(each, 4) for each in (PLACES, FOUNDERS, TREASURES, FLOORS)]
    stops = []
    for place, founder, treasure, where in zip(*columns, strict=True):
        opens = rng.randint(7, 11)
        hours = f"{opens} to {opens + rng.randint(5, 9)}"
        stops.append(Stop(place, hours, founder, rng.randint(1820, 1950), treasure, where))
    return stops


def riddles(stops: list[Stop], seed: int) -> list[Riddle]:
    """One question that the narrator answers, one that a card answers, one that nothing does."""
    rng = random.Random(seed)
    heard, shown = rng.sample(range(len(stops)), 2)
    begin = heard * SCENE
    told = stops[heard]
    spoken = [
        Riddle(f"Who founded the {told.place}?", told.founder, (begin + 4, begin + 8)),
        Riddle(f"Where is {told.treasure} kept?", told.where, (begin + 8, begin + 12)),
    ]
    card = stops[shown]
    hours = Riddle(
        f"When is the {card.place} open?", card.hours, (shown * SCENE, (shown + 1) * SCENE)
    )
    return [rng.choice(spoken), hours, Riddle(rng.choice(UNSEEN))]


def write_tour(stops: list[Stop], folder: Path, seed: int) -> Path:
    """Draw the film, and write the narration beside it."""
    film = folder / "tour.mp4"
    colours = random.Random(seed).sample(COLOURS, len(stops))
    cards = [_picture(stop.card, colour) for stop, colour in zip(stops, colours, strict=True)]
    write_film(film, (card for card in cards for _ in range(SCENE * FPS)))
    blocks = []
    for number, stop in enumerate(stops):
        for third, line in enumerate(stop.narration):
            start = number * SCENE + third * SCENE / 3
            times = [clock(at, millis=True).replace(".", ",") for at in (start, start + 3.8)]
            blocks.append(f"{len(blocks) + 1}\n{times[0]} --> {times[1]}\n{line}\n")
    film.with_suffix(".srt").write_text("\n".join(blocks), encoding="utf-8")
    return film


def _picture(lines: list[str], colour: str) -> np.ndarray:
    """A title card."""
    picture = Image.new("RGB", SIZE, colour)
    pen = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        font = ImageFont.load_default(size=54 - 18 * row)
        left = (SIZE[0] - pen.textlength(line, font=font)) / 2
        pen.text((left, 110 + 80 * row), line, font=font, fill="white")
    return np.asarray(picture)


def longtake(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, and show it."""
    quoted = [f'"{argument}"' if " " in argument else argument for argument in arguments]
    print("$ longtake " + " ".join(quoted), flush=True)
    command = [sys.executable, "-m", "longtake", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)


def ask(film: Path, riddle: Riddle) -> dict:
    """Ask one question, with nothing configured, and return the answer."""
    done = longtake("ask", str(film), riddle.text, "--quiet", "--json")
    # 3: the answer was not found, or no reply could be read
    if done.returncode not in (0, 3):
        sys.exit(f"the question failed (exit code {done.returncode})")
    return json.loads(done.stdout)


def is_right(answer: dict, riddle: Riddle) -> bool:
    """Whether the answer holds the truth, or is an abstention where nothing tells it."""
    if not riddle.answer:
        return answer["status"] == "abstained"
    return _words(riddle.answer) <= _words(answer["text"])


def _words(text: str) -> set[str]:
    """The words that matter: "cellar" says where as well as "in the cellar"."""
    return set(re.findall(r"\w+", text.lower())) - SMALL_WORDS


def near(answer: dict, riddle: Riddle) -> int:
    """Number of citations within a few seconds of the evidence."""
    start, end = riddle.moment
    return sum(
        cited["start"] <= end + NEAR and cited["end"] >= start - NEAR
        for cited in answer["evidence"]
    )


def say(step: str) -> None:
    """Tell what happens next, and when."""
    print(f"[{time.perf_counter() - BEGAN:3.0f} s] {step}", flush=True)


def show(answer: dict, riddle: Riddle) -> None:
    """Print what was expected and what came."""
    expected = riddle.answer or "(nothing in the film says or shows it in words)"
    print(f"  expected {expected}")
    print(f"  given    {answer['text'] or answer['reason']}")
    for each in answer["evidence"]:
        print(f"    [{clock(each['start'])}] {each['source']}: {each['text'][:100]}")
    used = answer["usage"]
    print(f"    {used['calls']} calls, {used['seconds']:.0f} s", flush=True)


def play(seed: int) -> tuple[int, int, int, float]:
    """One film and its riddles: right answers, citations, those near, and the slowest answer."""
    stops = tour(seed)
    right = cited = close = 0
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        say("making a film of 48 s: title cards, and a narration as subtitles")
        film = write_tour(stops, Path(folder), seed)
        say("a first question, which needs no language model; the film is indexed for it, once")
        mentions = Riddle(f"List every time that the {stops[0].place} is mentioned.")
        show(ask(film, mentions), Riddle(mentions.text, "in the first twelve seconds"))
        say("the language model: 1.1 GB, once")
        if longtake("models", "pull", MODEL).returncode:
            sys.exit(1)
        say("three questions; the last asks for what nobody says or writes")
        for riddle in riddles(stops, seed):
            began = time.perf_counter()
            answer = ask(film, riddle)
            seconds = time.perf_counter() - began
            show(answer, riddle)
            right += is_right(answer, riddle)
            cited += len(answer["evidence"])
            close += near(answer, riddle)
            slowest = max(slowest, seconds)
    return right, cited, close, slowest


def main() -> int:
    """Make films, ask, and download the model once on the way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=7, help="of the first film and its questions")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of films")
    options = parser.parse_args()
    rows = [(seed, *play(seed)) for seed in range(options.seed, options.seed + options.seeds)]
    print("\nseed  right  citations near  slowest")
    for seed, right, cited, close, slowest in rows:
        print(f"{seed:4}  {right} of 3  {close} of {cited:<10}  {slowest:5.0f} s")
    right, cited, close = (sum(row[place] for row in rows) for place in (1, 2, 3))
    print(f"{right} of {3 * len(rows)} right, {close} of {cited} citations within {NEAR:.0f} s")
    say("done")
    print('Now try your own film: longtake FILM "What is it about?"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
