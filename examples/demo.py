"""Make a three-minute film, index it, and look at it again: the commands a new user types.

make demo
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from longtake.media.writer import Encoding, write_film

SCENES = [
    ("HARBOUR", (30, 80, 120), "The boats left the harbour before sunrise."),
    ("MARKET STREET 12", (150, 90, 40), "On Market Street somebody sold red umbrellas."),
    ("STATION", (70, 70, 70), "The last train to the coast leaves at nine."),
]
SECONDS = 60
FPS = 10


def pictures() -> Iterator[np.ndarray]:
    """A minute of each scene: a place, its sign, and somebody walking through."""
    for sign, colour, _ in SCENES:
        for number in range(SECONDS * FPS):
            picture = Image.new("RGB", (480, 270), colour)
            draw = ImageDraw.Draw(picture)
            draw.text((24, 20), sign, fill="white", font_size=28)
            x = 480 * number // (SECONDS * FPS)
            draw.ellipse((x - 12, 130, x + 12, 154), fill=(240, 200, 160))
            draw.rectangle((x - 14, 154, x + 14, 220), fill=(200, 30, 30))
            yield np.asarray(picture)


def subtitles() -> str:
    """One spoken line in the middle of each scene."""
    blocks = []
    for number, (_, _, line) in enumerate(SCENES):
        minute = f"00:{number:02d}"
        blocks.append(f"{number + 1}\n{minute}:30,000 --> {minute}:34,000\n{line}\n")
    return "\n".join(blocks)


def longtake(*arguments: str) -> None:
    """Run a command as a user would, and show it."""
    print(f"\n$ longtake {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "longtake", *arguments], check=True)


def main() -> None:
    """Everything in a temporary folder; only the index stays, in the user's cache."""
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        print(f"making {film} ({len(SCENES) * SECONDS} s)", flush=True)
        write_film(film, pictures(), Encoding(fps=Fraction(FPS), gop=4 * FPS))
        film.with_suffix(".srt").write_text(subtitles())
        longtake("info", str(film))
        longtake("index", str(film))
        longtake("index", str(film))
        longtake("frames", str(film), "--at", "32,00:01:32,00:02:32", "--out", folder)


if __name__ == "__main__":
    main()
