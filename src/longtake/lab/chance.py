"""Chance that is the same on every machine: everything random in the laboratory is drawn from here."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def digest(*words: object, size: int = 8) -> bytes:
    """A hash of words, never Python's own, which differs from process to process."""
    text = "\x1f".join(map(str, words))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def share(*words: object) -> float:
    """A number in [0, 1) that depends on the words alone."""
    return int.from_bytes(digest(*words), "big") / 2**64


def pick(items: Sequence[T], *words: object) -> T:
    """One of the items, by the words alone."""
    return items[int.from_bytes(digest(*words), "big") % len(items)]


def generator(*words: object) -> random.Random:
    """A generator seeded by words."""
    return random.Random(digest(*words, size=32))


def numbers(*words: object) -> np.random.Generator:
    """A generator of arrays seeded by words."""
    return np.random.default_rng(int.from_bytes(digest(*words, size=16), "big"))
