"""The films that a command line names: files, folders, and addresses that may be downloaded."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from longtake.cli.output import say
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, MediaError
from longtake.index.store import private_folder
from longtake.media.folders import films_in

DOWNLOADER = "yt-dlp"
RIGHTS = (
    "downloading {url} with yt-dlp: you are responsible for having the right to; many sites "
    "forbid it in their terms, and films are usually protected by copyright"
)
FORMAT = "bestvideo[height<=720]+bestaudio/best[height<=720]/best"
"""Enough for every model: pictures are scaled down anyway."""


def is_address(text: str) -> bool:
    """Whether a film is named by its address on the web."""
    return text.startswith(("http://", "https://"))


def films_named(names: Sequence[str], settings: Settings, *, download: bool) -> list[Path]:
    """The files behind names; folders are searched, addresses are downloaded if ``download``."""
    paths: list[Path] = []
    for name in names:
        if is_address(name):
            paths.append(_downloaded(name, settings, allowed=download))
        elif Path(name).is_dir():
            found = [place.path for place in films_in([Path(name)])]
            if not found:
                raise MediaError(name, "not_found", "no films in this folder")
            paths += found
        else:
            paths.append(Path(name))
    return paths


def _downloaded(url: str, settings: Settings, *, allowed: bool) -> Path:
    """The film at an address, downloaded once by the user's own yt-dlp."""
    if not allowed:
        raise ConfigError(f"{url}: pass --download to fetch it with {DOWNLOADER}, if you may")
    folder = private_folder(cache_folder(settings) / "downloads")
    name = hashlib.blake2b(url.encode(), digest_size=12).hexdigest()
    existing = [path for path in folder.glob(f"{name}.*") if path.suffix not in (".part", ".ytdl")]
    if existing:
        return existing[0]
    program = shutil.which(DOWNLOADER)
    if program is None:
        raise ConfigError(f"--download needs {DOWNLOADER}: pipx install {DOWNLOADER}")
    say(RIGHTS.format(url=url))
    target = folder / f"{name}.%(ext)s"
    command = [program, "--no-playlist", "--format", FORMAT, "--output", str(target)]
    # after "--" nothing is an option, whatever an address begins with
    done = subprocess.run([*command, "--", url], stdin=subprocess.DEVNULL, check=False)
    made = [path for path in folder.glob(f"{name}.*") if path.suffix not in (".part", ".ytdl")]
    if done.returncode or not made:
        detail = f"{DOWNLOADER} could not download it (exit code {done.returncode})"
        raise MediaError(url, "not_found", detail)
    return made[0]
