"""Golden data: inputs and outputs of the authors' code (tests/paper/golden)."""

import hashlib
import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "paper" / "golden"
TOLERANCE = 2e-6


def cases(name):
    """Inputs and outputs of a set."""
    stored = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return [(case["in"], case["out"]) for case in stored["cases"]]


def ints(seed, n, low, high):
    """The integers that the formulas name."""
    raw = np.random.PCG64(seed).random_raw(n) >> np.uint64(33)
    return low + (raw % np.uint64(high - low + 1)).astype(np.int64)


def checked(checksum, *arrays):
    """Whether integer arrays are those that the authors' code was given."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.asarray(array).astype("<i8").tobytes())
    return digest.hexdigest()[: len(checksum)] == checksum


def unit(rows):
    """Each row over the square root of its sum of squares."""
    rows = np.asarray(rows, np.float64)
    return rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))


def film(given):
    """The rows of a film of VideoDetective's sets."""
    spec = given["film"]
    lengths, dims = spec["lengths"], spec["dims"]
    frames, shots = sum(lengths), len(lengths)
    base = ints(spec["seed"], dims, -50, 50)
    centre = ints(spec["seed"] + 1, shots * dims, -50, 50).reshape(shots, dims)
    noise = ints(spec["seed"] + 2, frames * dims, -spec["noise"], spec["noise"])
    rows = spec["a"] * base + spec["b"] * np.repeat(centre, lengths, axis=0)
    rows = rows + noise.reshape(frames, dims)
    assert checked(given["checksum"], rows)
    return unit(rows)
