"""Every parameter of the laboratory, in one frozen and versioned record.

Results from different profiles are not comparable. Whoever changes a number here gives the profile a new name
and runs every published figure again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class WorldProfile:
    """How films are made. Lengths are in seconds, pairs are least and most."""

    cast_coats: int = 5
    """Coat colours in a film; each is worn with two different hats, so that nobody is told apart by the coat."""
    scene: tuple[int, int] = (20, 120)
    scenes_per_episode: tuple[int, int] = (3, 7)
    people_per_scene: tuple[int, int] = (1, 3)
    deed: tuple[int, int] = (12, 40)
    deed_gap: tuple[int, int] = (2, 14)
    same_person: float = 0.55
    """Chance that the next deed is by the person who did the last."""
    twin: float = 0.5
    """Chance that a deed differs from an earlier one in a single respect."""
    on_theme: float = 0.35
    """Chance that a thing belongs to what the film is about."""
    sign: float = 0.75
    """Chance that a scene has a sign."""
    sign_length: tuple[int, int] = (12, 40)
    line_gap: tuple[int, int] = (12, 40)
    small_talk: float = 0.3
    """Chance that a spoken line says nothing."""


@dataclass(frozen=True)
class PictureProfile:
    """How films look."""

    width: int = 480
    height: int = 270
    fps: int = 10
    gop: int = 40


@dataclass(frozen=True)
class ModelProfile:
    """The simulated model where its name says nothing else."""

    acuity: float = 0.8
    """Chance to take in a fact of a moment that is shown."""
    reading: float = 1.0
    """Chance to take in a fact that the prompt states in words."""
    hallucination: float = 0.02
    """Chance, per picture, to see a deed that is not there."""
    temptation: float = 0.25
    """Chance that a guess goes to an option that was met with elsewhere rather than to any."""
    verbosity: float = 0.0
    """Idle sentences per free text, on average."""
    json_faults: float = 0.0
    """Chance that a JSON reply is spoilt."""
    latency: float = 0.5
    """Seconds that a call is reported to take, beside those of its tokens."""
    seconds_per_token: float = 0.01
    """Seconds that each token of the reply is reported to take."""
    picture_tokens: int = 256
    characters_per_token: int = 4
    context: int = 131_072
    price_in: float = 0.5
    """US dollars per million tokens."""
    price_out: float = 1.5


@dataclass(frozen=True)
class EncoderProfile:
    """The simulated image–text encoder."""

    dim: int = 256
    noise: float = 3.0
    """Length of the noise in a picture's vector, against that of its content."""
    scene_share: float = 0.5
    """Share of that noise, by energy, that all moments of a scene have in common."""
    logit_scale: float = 20.0


@dataclass(frozen=True)
class Profile:
    """Everything that a published figure depends on, method and prompts apart."""

    name: str = "lab-1"
    world: WorldProfile = field(default_factory=WorldProfile)
    picture: PictureProfile = field(default_factory=PictureProfile)
    model: ModelProfile = field(default_factory=ModelProfile)
    encoder: EncoderProfile = field(default_factory=EncoderProfile)

    @property
    def hash(self) -> str:
        """Name of all parameters together, for every result."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{self.name}:{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


PROFILE = Profile()
"""The profile in use."""
