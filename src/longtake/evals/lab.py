"""The lab as a benchmark: worlds with known truth, drawn from their scripts or as encoded films."""

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
from longtake.lab.profile import CURRENT
from longtake.lab.questions import make_questions
from longtake.lab.world import make_script
from longtake.perception.senses import Senses
from longtake.session.films import open_film


@dataclass(frozen=True)
class LabSource:
    """Worlds by name, ``seed:minutes``."""

    noise: float | None = None
    """Noise of the simulated encoder; ``None``: the profile's."""
    films: Path | None = None
    """Folder of encoded films, to be used instead of drawing worlds from their scripts."""
    captions: bool = False
    """Instead of pictures, give one caption per second with everything that is visible."""
    settings: Settings = field(default_factory=Settings)

    def footage(self, video: str) -> Footage:
        """The world with that name."""
        if self.films is not None:
            # a colon is not allowed in file names everywhere
            path = self.films / video.replace(":", "_") / "film.mp4"
            # the lab's encoder reads the code in the pictures
            senses = Senses(
                self.settings.perception, cache_folder(self.settings), images=LabEncoder(self.noise)
            )
            return open_film(path, self.settings, senses=senses)
        return _captioned(video) if self.captions else _drawn(video, self.noise)


# a worker gets all questions about a world in a row, so a few worlds are enough
@lru_cache(maxsize=4)
def _drawn(video: str, noise: float | None) -> Footage:
    seed, _, minutes = video.partition(":")
    return LabFootage(make_script(int(seed), int(minutes)), encoder=LabEncoder(noise))


@lru_cache(maxsize=4)
def _captioned(video: str) -> Footage:
    seed, _, minutes = video.partition(":")
    script = make_script(int(seed), int(minutes))
    captions = []
    for second in range(int(script.duration)):
        sentences = [sentence(fact) for fact in script.visible(second)]
        captions.append(" ".join(sentences))
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
    """``questions`` about each world, of every kind in turn.

    Encoded films are opened with the settings ``opened_with``.
    """
    items = []
    for seed in seeds:
        for made in make_questions(make_script(seed, minutes), questions):
            asked = Asked(f"{seed}_{made.id}", f"{seed}:{minutes}", made.question)
            label = made.answer if made.options else made.answer_text
            items.append(Item(asked, label, {"type": made.kind}, made.evidence))
    settings = {
        "profile": CURRENT.name,
        "profile_hash": CURRENT.hash,
        "minutes": minutes,
        "noise": noise,
        "seeds": list(seeds),
    }
    name = "lab-captions" if captions else "lab"
    source = LabSource(noise, films, captions, opened_with or Settings())
    return Benchmark(name, items, source, {}, settings)
