"""A real server, and Debian's Chromium to look at it with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.serving import start_server

from longtake_bench.lab.film import World, make_world, write_world

MINUTES = 3
CLIPS = Path(__file__).parents[3] / "shared" / "media"
"""Real clips, on machines that have them; elsewhere films are made in their place."""


@dataclass(frozen=True)
class Served:
    """A server that runs in a process of its own."""

    home: str
    enter: str
    """The one-time link."""
    token: str
    films: Path
    world: World


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser; the tests are skipped where it is missing."""
    path = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if path is None:
        pytest.skip("Chromium is missing: make browser installs it; the API tests still run")
    pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make browser")
    return path


@pytest.fixture(scope="session")
def clip() -> Callable[[str, Path], Path | None]:
    """Copies a real clip into a folder, if it is there."""

    def copy(name: str, folder: Path) -> Path | None:
        source = CLIPS / name
        return Path(shutil.copy(source, folder)) if source.is_file() else None

    return copy


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World]:
    """A folder with one film of the laboratory, and the film to add."""
    folder = tmp_path_factory.mktemp("browser")
    world = make_world(seed=7, minutes=MINUTES)
    write_world(world, folder / "world")
    shown = folder / "films"
    shown.mkdir()
    for ending in (".mp4", ".srt"):
        (folder / "world" / f"film{ending}").rename(shown / f"harbour{ending}")
    return shown, world


@pytest.fixture(scope="session")
def served(
    films: tuple[Path, World],
    tmp_path_factory: pytest.TempPathFactory,
    lend_models: Callable[[Path], Path],
) -> Iterator[Served]:
    """The server, with simulated models."""
    folder, world = films
    cache = lend_models(tmp_path_factory.mktemp("cache"))
    options = ["--model", "lab/acuity=0.8", "--set", "perception.reader=false"]
    process, started = start_server(folder, cache, *options, "--set", "perception.listener=none")
    try:
        home = started["url"].partition("/enter")[0]
        token = Path(started["token_file"]).read_text()
        yield Served(home, started["url"], token, folder, world)
    finally:
        process.terminate()
        process.wait(60)
