"""The lab as a benchmark: worlds with known truth, drawn from their scripts or as encoded films."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError
from longtake.footage.plain import CaptionedFootage
from longtake.footage.protocol import Footage
from longtake.perception.loader import PerceptionModels
from longtake.runner.films import open_film
from longtake_bench.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake_bench.lab.facts import sentence
from longtake_bench.lab.footage import LabEncoder, LabFootage
from longtake_bench.lab.profile import PROFILE
from longtake_bench.lab.questions import make_questions
from longtake_bench.lab.world import MOST_MINUTES, MOST_SEED, make_script


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
            senses = PerceptionModels(
                self.settings.perception, cache_folder(self.settings), images=LabEncoder(self.noise)
            )
            return open_film(path, self.settings, senses=senses)
        return _generated(video, self.noise, self.captions)


# a worker gets all questions about a world in a row, so a few worlds are enough
@lru_cache(maxsize=4)
def _generated(video: str, noise: float | None, captioned: bool) -> Footage:
    seed, _, minutes = video.partition(":")
    script = make_script(int(seed), int(minutes))
    if not captioned:
        return LabFootage(script, encoder=LabEncoder(noise))
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
            asked = BenchmarkQuestion(f"{seed}_{made.id}", f"{seed}:{minutes}", made.question)
            label = made.answer if made.options else made.answer_text
            items.append(LabelledQuestion(asked, label, {"type": made.kind}, made.evidence))
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


def load(folder: Path, options: Mapping[str, str], *, captions: bool = False) -> Benchmark:  # noqa: ARG001
    """Worlds drawn from their scripts, or as captions alone."""
    try:
        first, _, last = options.get("seeds", "0-2").partition("-")
        seeds = range(int(first), int(last or first) + 1)
        minutes = int(options.get("minutes", "30"))
        questions = int(options.get("questions", "40"))
        noise = float(options["noise"]) if "noise" in options else None
    except ValueError as error:
        raise ConfigError(f"lab: {error}") from error
    # "noise < 0" would let NaN pass
    if noise is not None and not noise >= 0:
        raise ConfigError("lab: noise must be 0 or more, up to inf")
    # checked here as well as in each world, so that no world is made before an invalid one
    if not seeds or seeds[0] < 0 or seeds[-1] > MOST_SEED:
        raise ConfigError(f"lab: seeds must be FIRST-LAST within 0-{MOST_SEED}")
    if not 1 <= minutes <= MOST_MINUTES:
        raise ConfigError(f"lab: minutes must be between 1 and {MOST_MINUTES}")
    if questions < 1:
        raise ConfigError("lab: questions must be 1 or more")
    return lab(seeds, minutes, questions, noise=noise, captions=captions)


OPTIONS = {
    "seeds": "FIRST-LAST (default 0-2; 1000 and up to publish)",
    "minutes": "length of each world (default 30)",
    "questions": "questions about each world (default 40)",
    "noise": "noise of the simulated encoder (default: the profile's)",
}
ABOUT = BenchmarkInfo(
    "Lab worlds",
    "nothing: they are generated from their seeds",
    "no files",
    "Apache-2.0",
    load=load,
    options=OPTIONS,
    made=True,
)
CAPTIONS = replace(
    ABOUT,
    title="Lab worlds as captions at 1 fps",
    load=partial(load, captions=True),
    options={name: meaning for name, meaning in OPTIONS.items() if name != "noise"},
)
