"""The laboratory as a benchmark: worlds with known truth, drawn straight from their scripts or from encoded films."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from longtake.config import Settings, cache_folder
from longtake.evals.items import Asked, Benchmark, Item
from longtake.footage.captioned import CaptionedFootage
from longtake.footage.protocol import Footage
from longtake.lab.encoder import LabEncoder
from longtake.lab.footage import LabFootage
from longtake.lab.grammar import sentence
from longtake.lab.profile import PROFILE
from longtake.lab.questions import make_questions
from longtake.lab.world import make_script
from longtake.perception.senses import Senses
from longtake.session.films import open_film


@dataclass(frozen=True)
class LabSource:
    """Worlds by name, ``seed:minutes``; ``films`` holds their encoded films where those are to be used."""

    noise: float | None = None
    """Noise of the simulated encoder; ``None``: the profile's."""
    films: Path | None = None
    captions: bool = False
    """Give a caption a second and no pictures: everything that a perfect eye would write."""
    settings: Settings = field(default_factory=Settings)

    def footage(self, video: str) -> Footage:
        """The world of that name."""
        if self.films is not None:
            path = self.films / video.replace(":", "_") / "film.mp4"
            # the lab's encoder reads the code in the pictures
            senses = Senses(
                self.settings.perception, cache_folder(self.settings), images=LabEncoder(self.noise)
            )
            return open_film(path, self.settings, senses=senses)
        return _captioned(video) if self.captions else _drawn(video, self.noise)


@lru_cache(maxsize=4)
def _drawn(video: str, noise: float | None) -> Footage:
    seed, _, minutes = video.partition(":")
    return LabFootage(make_script(int(seed), int(minutes)), encoder=LabEncoder(noise))


@lru_cache(maxsize=4)
def _captioned(video: str) -> Footage:
    seed, _, minutes = video.partition(":")
    script = make_script(int(seed), int(minutes))
    captions = [
        " ".join(map(sentence, script.visible(second))) for second in range(int(script.duration))
    ]
    return CaptionedFootage(script.name, captions, LabEncoder())


def lab(
    seeds: Sequence[int],
    minutes: int,
    questions: int,
    *,
    noise: float | None = None,
    films: Path | None = None,
    captions: bool = False,
    opened_with: Settings | None = None,
) -> Benchmark:
    """``questions`` of each world, kinds in turn; encoded films are opened with the settings given."""
    items = []
    for seed in seeds:
        for asked in make_questions(make_script(seed, minutes), questions):
            label = asked.answer if asked.options else asked.answer_text
            items.append(
                Item(
                    Asked(f"{seed}_{asked.id}", f"{seed}:{minutes}", asked.question),
                    label,
                    {"type": asked.kind},
                    asked.evidence,
                )
            )
    settings = {
        "profile": PROFILE.name,
        "profile_hash": PROFILE.hash,
        "minutes": minutes,
        "noise": noise,
        "seeds": list(seeds),
    }
    name = "lab-captions" if captions else "lab"
    source = LabSource(noise, films, captions, opened_with or Settings())
    return Benchmark(name, items, source, {}, settings)
