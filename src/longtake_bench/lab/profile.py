"""The parameters of the laboratory and of a model, and randomness derived from hashes."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from longtake.errors import ConfigError, unknown
from longtake_bench.lab.facts import KINDS

T = TypeVar("T")


@dataclass(frozen=True)
class WorldProfile:
    """How films are generated. Pairs are (minimum, maximum), in seconds where they are lengths.

    Ten numbers are the medians of ten equal parts of what was measured, in whole seconds; one of
    them is drawn. ``benchmarks/calibration.py durations`` prints them.
    """

    cast_coats: int = 5
    """Coat colours per film; each is worn with two hats, so a coat alone identifies nobody."""
    scene: tuple[int, int] = (20, 120)
    scenes_per_episode: tuple[int, int] = (3, 7)
    people_per_scene: tuple[int, int] = (1, 3)
    event: tuple[int, ...] = (1, 2, 3, 3, 4, 4, 5, 7, 10, 19)
    """Lengths of deeds and signs: the stretches of evidence of NExT-GQA."""
    deed_gap: tuple[int, ...] = (0, 1, 1, 2, 3, 4, 5, 7, 10, 23)
    """Between two deeds: the gaps between these stretches."""
    small: float = 0.26
    """Probability that a deed or sign is small: it can be made out for a single second of its
    length, in a close frame. The share of things in NExT-GQA's answers that captions of one frame
    a second name in at most a fifth of the evidence."""
    same_person: float = 0.55
    """Probability that the person who did the last deed also does the next one."""
    twin: float = 0.5
    """Probability that a deed differs from an earlier one in exactly one respect."""
    on_theme: float = 0.35
    """Probability that a thing belongs to the film's theme."""
    sign: float = 0.75
    """Probability that a scene has a sign."""
    line: tuple[int, ...] = (2, 2, 3, 3, 4, 5, 7, 9, 13, 24)
    """Lengths of spoken lines: those of AMI with five words or more."""
    line_gap: tuple[int, ...] = (0, 0, 1, 1, 1, 1, 2, 3, 4, 9)
    """Between two spoken lines: the pauses between AMI's."""
    small_talk: float = 0.78
    """Probability that a spoken line states no fact; 84 an hour do, as in earlier editions."""


@dataclass(frozen=True)
class PictureProfile:
    """How films are drawn and encoded."""

    width: int = 480
    height: int = 270
    fps: int = 10
    gop: int = 40


@dataclass(frozen=True)
class ModelProfile:
    """Defaults of the simulated model; its name can override them.

    Where the numbers of its errors come from: docs/lab.md, "Calibration of models".
    """

    acuity: float = 0.8
    """Probability of noticing a fact that is visible in a picture."""
    reading: float = 1.0
    """Probability of noticing a fact that the prompt states in words."""
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
    dilution: float = 0.12
    """Loss of attention per doubling of what a call contains; 0: everything gets full attention."""
    middle: float = 0.25
    """How much more is lost in the middle of a call than on average."""
    judging: float = 0.5
    """Share of verdicts on answers of others that follow from the facts; the rest are noise."""
    grading: float = 0.9
    """Share of its self-assessments that follow from the facts; the rest are noise."""
    position_bias: float = 0.0
    """Probability of choosing the first option regardless of what is known."""


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

    name: str = "lab-3"
    world: WorldProfile = field(default_factory=WorldProfile)
    picture: PictureProfile = field(default_factory=PictureProfile)
    model: ModelProfile = field(default_factory=ModelProfile)
    encoder: EncoderProfile = field(default_factory=EncoderProfile)

    @property
    def hash(self) -> str:
        """Identifier of the whole parameter set; every result records it."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{self.name}:{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


PROFILE = Profile()
"""The edition: changing any number in it, or a draw that uses one, makes another."""


@dataclass(frozen=True)
class LabModel:
    """The parameters of a simulated model.

    Without ``profile`` it gives everything full attention and judges without error.
    """

    seed: int = 0
    acuity: float = PROFILE.model.acuity
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """Blind spots: acuity per kind (``action``, ``people``, ``onscreen``, ``spoken``)."""
    reading: float = PROFILE.model.reading
    hallucination: float = PROFILE.model.hallucination
    verbosity: float = PROFILE.model.verbosity
    json_faults: float = PROFILE.model.json_faults
    latency: float = PROFILE.model.latency
    sleep: bool = False
    """Whether a call really takes the time that it reports."""
    tools: bool = True
    """Whether native tool calls are supported; if not, methods describe tools in the prompt."""
    context: int = PROFILE.model.context
    world: tuple[int, int] | None = None
    """Seed and minutes of the only world it recognises; ``None``: all worlds."""
    dilution: float = 0.0
    """Loss of attention per doubling of what a call contains."""
    middle: float = 0.0
    """How much more is lost in the middle of a call."""
    judging: float = 1.0
    """Share of verdicts on answers of others that are not noise."""
    grading: float = 1.0
    """Share of its self-assessments that are not noise."""
    position_bias: float = PROFILE.model.position_bias
    """Probability of choosing the first option regardless of what is known."""
    profile: str = ""
    """The edition of the laboratory whose errors the model makes where they are not set."""

    @classmethod
    def of(cls, profile: str) -> LabModel:
        """The default model of an edition, or without one."""
        if not profile:
            return cls()
        if profile != PROFILE.name:
            raise unknown("profile of the laboratory", profile, [PROFILE.name])
        errors = ("dilution", "middle", "judging", "grading")
        return cls(profile=profile, **{name: getattr(PROFILE.model, name) for name in errors})

    @property
    def name(self) -> str:
        """The name that :func:`parse` turns back into this model."""
        parts = [f"profile={self.profile}"] if self.profile else []
        usual = LabModel.of(self.profile)
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name == "by_kind":
                parts += [f"{kind}={acuity:g}" for kind, acuity in sorted(value.items())]
            elif part.name == "world":
                if value is not None:
                    parts.append(f"world={value[0]}:{value[1]}")
            elif part.name != "profile" and value != getattr(usual, part.name):
                # "g" would shorten a large integer to a form that cannot be parsed back
                number = str(int(value)) if isinstance(value, int) else f"{value:g}"
                parts.append(f"{part.name}={number}")
        return "lab/" + ",".join(parts or [f"acuity={self.acuity:g}"])


UNBOUNDED = ("latency", "verbosity", "dilution")
"""Numbers of any size; all others that are not whole are shares, between 0 and 1."""


def parse(text: str) -> LabModel:
    """The model with the given name: ``acuity=0.8,seed=3``, with or without the ``lab/`` prefix."""
    values: dict[str, Any] = {}
    by_kind: dict[str, float] = {}
    known = {part.name: part.type for part in fields(LabModel) if part.name != "by_kind"}
    for piece in filter(None, text.removeprefix("lab/").split(",")):
        key, equals, value = (word.strip() for word in piece.partition("="))
        if key not in known and key not in KINDS.values():
            raise unknown("parameter of a lab model", key, [*known, *KINDS.values()], where=text)
        try:
            if not equals:
                raise ValueError(piece)
            parsed = _parse_value(key, value)
        except ValueError as error:
            raise ConfigError(f"lab/{text}: {piece!r} is not NAME=NUMBER", key=key) from error
        if key in UNBOUNDED and not (parsed >= 0 and math.isfinite(parsed)):
            raise ConfigError(f"lab/{text}: {key} must be finite and not negative", key=key)
        if key not in UNBOUNDED and isinstance(parsed, float) and not 0 <= parsed <= 1:
            raise ConfigError(f"lab/{text}: {key} must be between 0 and 1", key=key)
        group = by_kind if key in KINDS.values() else values
        group[key] = parsed
    return replace(LabModel.of(values.get("profile", "")), by_kind=by_kind, **values)


def _parse_value(key: str, value: str) -> Any:
    if key == "world":
        seed, _, minutes = value.partition(":")
        return int(seed), int(minutes)
    if key in ("sleep", "tools"):
        return bool(int(value))
    kinds = {"profile": str, "seed": int, "context": int}
    return kinds.get(key, float)(value)


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
