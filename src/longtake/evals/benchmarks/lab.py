"""The laboratory: worlds with known truth, made here from their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from longtake.errors import ConfigError
from longtake.evals.benchmarks import About
from longtake.evals.items import Benchmark
from longtake.evals.lab import lab


def _made(options: Mapping[str, str], *, captions: bool) -> Benchmark:
    try:
        first, _, last = options.get("seeds", "0-2").partition("-")
        seeds = range(int(first), int(last or first) + 1)
        minutes, questions = int(options.get("minutes", "30")), int(options.get("questions", "40"))
        noise = float(options["noise"]) if "noise" in options else None
    except ValueError as error:
        raise ConfigError(f"lab: {error}") from error
    if noise is not None and not noise >= 0:  # nor is it NaN
        raise ConfigError("lab: noise is 0 or more, up to inf")
    if (
        not seeds
        or not 0 <= seeds[0] <= seeds[-1] < 16384
        or not 1 <= minutes <= 255
        or questions < 1
    ):
        raise ConfigError(
            "lab: seeds are FIRST-LAST of 0 to 16383, minutes 1 to 255, questions 1 and more"
        )
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
    "questions": "questions of each world (default 40)",
    "noise": "noise of the simulated encoder (the profile's)",
}
ABOUT = About(
    "Laboratory worlds",
    "nothing: they are made from their seeds",
    "no files",
    "Apache-2.0",
    verified=True,
    load=load,
    options=OPTIONS,
    made=True,
)
CAPTIONS = About(
    "Laboratory worlds as captions at 1 fps",
    "nothing: they are made from their seeds",
    "no files",
    "Apache-2.0",
    verified=True,
    load=load_captions,
    made=True,
    options={name: meaning for name, meaning in OPTIONS.items() if name != "noise"},
)
