"""Films of a few scenes with known cuts; each scene has its own background and drifting squares."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from longtake.video.clip import Encoding, write_film

WIDTH, HEIGHT = 160, 96


def scene(seed: int, count: int) -> Iterator[np.ndarray]:
    """Pictures of one scene: blocks of colour with a few moving squares."""
    random = np.random.default_rng(seed)
    ground = random.integers(0, 256, (HEIGHT // 16, WIDTH // 16, 3))
    base = np.kron(ground, np.ones((16, 16, 1))).astype(np.uint8)
    squares = random.integers(0, 256, (3, 3)).astype(np.uint8)
    start, speed = random.uniform(0, 1, (3, 2)), random.uniform(-0.02, 0.02, (3, 2))
    for number in range(count):
        picture = base.copy()
        for colour, place, way in zip(squares, start, speed, strict=True):
            x, y = ((place + number * way) % 1 * (WIDTH - 16, HEIGHT - 16)).astype(int)
            picture[y : y + 16, x : x + 16] = colour
        yield picture


def lengths(seed: int) -> list[int]:
    """Lengths of three to six scenes, 10 to 40 seconds each."""
    random = np.random.default_rng(1000 + seed)
    return random.integers(10, 40, int(random.integers(3, 7))).tolist()


def make_scenes(
    path: Path, seconds: Sequence[int], *, seed: int = 0, crf: int = 23, gop: int = 20
) -> Path:
    """A film of scenes of the given lengths, at three pictures per second."""

    def pictures() -> Iterator[np.ndarray]:
        for number, length in enumerate(seconds):
            yield from scene(100 * seed + number, 3 * length)

    options = {"preset": "ultrafast", "crf": str(crf)}
    write_film(path, pictures(), Encoding(fps=Fraction(3), gop=gop, options=options))
    return path
