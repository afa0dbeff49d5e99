"""The lab: worlds with known truth, generated from their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.errors import ConfigError
from longtake.evals.benchmarks import About
from longtake.evals.items import Benchmark
from longtake.evals.lab import lab
from longtake.lab.world import MOST_MINUTES, MOST_SEED


def _made(options: Mapping[str, str], *, captions: bool) -> Benchmark:
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


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:  # noqa: ARG001
    """Worlds drawn from their scripts."""
    return _made(options, captions=False)


def load_captions(folder: Path, options: Mapping[str, str]) -> Benchmark:  # noqa: ARG001
    """The same worlds as captions alone."""
    return _made(options, captions=True)


OPTIONS = {
    "seeds": "FIRST-LAST (default 0-2; 1000 and up to publish)",
    "minutes": "length of each world (default 30)",
    "questions": "questions about each world (default 40)",
    "noise": "noise of the simulated encoder (default: the profile's)",
}
ABOUT = About(
    "Lab worlds",
    "nothing: they are generated from their seeds",
    "no files",
    "Apache-2.0",
    verified=True,
    load=load,
    options=OPTIONS,
    made=True,
)
CAPTIONS = About(
    "Lab worlds as captions at 1 fps",
    "nothing: they are generated from their seeds",
    "no files",
    "Apache-2.0",
    verified=True,
    load=load_captions,
    made=True,
    options={name: meaning for name, meaning in OPTIONS.items() if name != "noise"},
)
