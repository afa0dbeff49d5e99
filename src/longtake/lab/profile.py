"""The parameters of the laboratory by edition, and its randomness, which is derived from hashes."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from longtake.errors import unknown

T = TypeVar("T")


@dataclass(frozen=True)
class WorldProfile:
    """How films are generated. Lengths are in seconds; pairs are (minimum, maximum)."""

    cast_coats: int = 5
    """Coat colours per film; each is worn with two hats, so a coat alone identifies nobody."""
    scene: tuple[int, int] = (20, 120)
    scenes_per_episode: tuple[int, int] = (3, 7)
    people_per_scene: tuple[int, int] = (1, 3)
    deed: tuple[int, int] = (12, 40)
    deed_gap: tuple[int, int] = (2, 14)
    same_person: float = 0.55
    """Probability that the person who did the last deed also does the next one."""
    twin: float = 0.5
    """Probability that a deed differs from an earlier one in exactly one respect."""
    on_theme: float = 0.35
    """Probability that a thing belongs to the film's theme."""
    sign: float = 0.75
    """Probability that a scene has a sign."""
    sign_length: tuple[int, int] = (12, 40)
    line_gap: tuple[int, int] = (12, 40)
    small_talk: float = 0.3
    """Probability that a spoken line states no fact."""


@dataclass(frozen=True)
class PictureProfile:
    """How films are drawn and encoded."""

    width: int = 480
    height: int = 270
    fps: int = 10
    gop: int = 40


@dataclass(frozen=True)
class QuestionProfile:
    """How questions are drawn."""

    balanced: bool = False
    """Whether options give no hint of the answer; they no longer do, so it only marks lab-2."""


@dataclass(frozen=True)
class ModelProfile:
    """Defaults of the simulated model; its name can override them."""

    acuity: float = 0.8
    """Probability of noticing a fact that is visible in a picture."""
    reading: float = 1.0
    """Probability of taking in a fact that the prompt states in words."""
    hallucination: float = 0.02
    """Probability, per picture, of seeing a deed that is not there."""
    temptation: float = 0.25
    """Probability that a guess is drawn from the options seen elsewhere, rather than from all."""
    verbosity: float = 0.0
    """Average number of filler sentences per free text."""
    json_faults: float = 0.0
    """Probability that a JSON reply is corrupted."""
    latency: float = 0.5
    """Seconds reported per call, in addition to those per token."""
    seconds_per_token: float = 0.01
    """Seconds reported per token of the reply."""
    picture_tokens: int = 256
    characters_per_token: int = 4
    context: int = 131_072
    price_in: float = 0.5
    """US dollars per million tokens."""
    price_out: float = 1.5
    dilution: float = 0.0
    """Loss of attention per doubling of what a call contains; 0: everything gets full attention."""
    middle: float = 0.0
    """How much more is lost in the middle of a call than on average."""
    judging: float = 1.0
    """Share of verdicts on answers of others that follow from the facts; the rest are noise."""
    grading: float = 1.0
    """Share of verdicts on its own knowledge that follow from the facts; the rest are noise."""
    position_bias: float = 0.0
    """Probability of choosing the first option whatever is known."""


@dataclass(frozen=True)
class EncoderProfile:
    """The simulated image–text encoder."""

    dim: int = 256
    noise: float = 3.0
    """Norm of the noise in a picture's vector, relative to that of its content."""
    scene_share: float = 0.5
    """Share of the noise energy that all moments of a scene have in common."""
    logit_scale: float = 20.0


@dataclass(frozen=True)
class Profile:
    """Everything a published figure depends on, apart from the method and its prompts."""

    name: str = "lab-1"
    world: WorldProfile = field(default_factory=WorldProfile)
    picture: PictureProfile = field(default_factory=PictureProfile)
    model: ModelProfile = field(default_factory=ModelProfile)
    encoder: EncoderProfile = field(default_factory=EncoderProfile)
    questions: QuestionProfile = field(default_factory=QuestionProfile)

    @property
    def hash(self) -> str:
        """Identifier of the whole parameter set; every result records it."""
        text = json.dumps(_since_lab_1(asdict(self)), sort_keys=True)
        return f"{self.name}:{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


def _since_lab_1(values: dict[str, Any]) -> dict[str, Any]:
    """The values without parameters that lab-1 did not have, where they change nothing.

    So a profile keeps its hash when a later edition adds a parameter.
    """
    model = {key: value for key, value in values["model"].items() if _ADDED.get(key) != value}
    kept = {**values, "model": model}
    if values["questions"] == asdict(QuestionProfile()):
        del kept["questions"]
    return kept


_ADDED = {"dilution": 0.0, "middle": 0.0, "judging": 1.0, "grading": 1.0, "position_bias": 0.0}
"""Parameters of models that lab-2 added, with the values that make them lab-1's."""
LAB_1 = Profile()
LAB_2 = Profile(
    name="lab-2",
    questions=QuestionProfile(balanced=True),
    # where these numbers come from: docs/lab.md, "Calibration of lab-2"
    model=ModelProfile(dilution=0.1, middle=0.25, judging=0.5, grading=0.9),
)
PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (LAB_1, LAB_2)}
"""Every profile by its name."""
PROFILE = LAB_1
"""Worlds, pictures, the encoder, and the model of plain lab names."""
CURRENT = LAB_2
"""The profile of questions and experiments."""


def profile_named(name: str) -> Profile:
    """The profile with that name."""
    if name not in PROFILES:
        raise unknown("profile of the laboratory", name, list(PROFILES))
    return PROFILES[name]


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
