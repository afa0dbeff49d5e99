"""Deterministic randomness: everything random in the laboratory is derived from hashes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def digest(*words: object, size: int = 8) -> bytes:
    """A hash of the words that is the same in every process, unlike Python's own."""
    text = "\x1f".join(map(str, words))
    # model output can contain lone surrogates, which plain UTF-8 cannot encode
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def share(*words: object) -> float:
    """A number in [0, 1) determined by the words."""
    return int.from_bytes(digest(*words), "big") / 2**64


def pick(items: Sequence[T], *words: object) -> T:
    """One of the items, determined by the words."""
    return items[int.from_bytes(digest(*words), "big") % len(items)]


def generator(*words: object) -> random.Random:
    """A random generator seeded by the words."""
    return random.Random(digest(*words, size=32))


def numbers(*words: object) -> np.random.Generator:
    """A NumPy generator seeded by the words."""
    return np.random.default_rng(int.from_bytes(digest(*words, size=16), "big"))
