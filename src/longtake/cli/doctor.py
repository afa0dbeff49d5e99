"""``longtake doctor``."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from longtake import __version__
from longtake._util import visible
from longtake.cli.discovery import Advice, advise, described, look_around, plain_findings
from longtake.cli.options import common
from longtake.cli.output import emit_json, human_bytes, rows
from longtake.config import Settings, user_config_file
from longtake.errors import ConfigError
from longtake.index.store import Store
from longtake.runner.films import open_store

PACKAGES = ("av", "numpy", "pillow", "pydantic", "pysubs2")
"""Packages that longtake cannot work without."""


@click.command()
@common
def doctor(settings: Settings, as_json: bool) -> None:
    """Show what is installed, configured and available, and what to do next.

    \b
    Example:
      longtake doctor
    """
    store = open_store(settings)
    # the folder is created on first use, so it may not exist yet
    free = shutil.disk_usage(_existing(store.root)).free
    used, problem = _used(store)
    candidates = (user_config_file(), Path("longtake.toml").absolute())
    configs = [str(path) for path in candidates if path.is_file()]
    packages = {name: _version(name) for name in PACKAGES}
    found = look_around(settings)
    advice = [*_on_storage(used, free, store.limit_bytes), *advise(found)]
    if as_json:
        cache = {
            "folder": str(store.root),
            "bytes": used,
            "limit_bytes": store.limit_bytes,
            "free_bytes": free,
            "problem": problem,
        }
        emit_json(
            {
                "longtake": __version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "packages": packages,
                "config_files": configs,
                "cache": cache,
                "found": plain_findings(found),
                "advice": [asdict(each) for each in advice],
            }
        )
        return
    size = f"{human_bytes(used)} of {human_bytes(store.limit_bytes)}"
    space = f"{store.root}: {size}, {human_bytes(free)} free on its disk"
    rows(
        [
            ("longtake", __version__),
            ("python", f"{platform.python_version()} ({sys.executable})"),
            ("platform", platform.platform()),
            *((name, number or "MISSING") for name, number in packages.items()),
            ("config", ", ".join(configs) or f"none (yours would be {user_config_file()})"),
            ("cache", problem or space),
            ("model", found.model or "the built-in ones"),
            *described(found),
        ]
    )
    show_advice(advice)


def _on_storage(used: int, free: int, limit: float) -> list[Advice]:
    """What to do about a cache or disk that is nearly full."""
    advice = []
    # with less, indexing a long film or downloading a model may fail
    if free < 2e9:
        why = f"only {human_bytes(free)} are free where the cache is"
        advice.append(Advice(why, "longtake cache list"))
    if used > limit:
        advice.append(Advice("the cache is over its limit", "longtake cache clear --all"))
    return advice


def show_advice(advice: Sequence[Advice]) -> None:
    """Print what to do, each with its command."""
    click.echo()
    if not advice:
        click.echo('everything is ready: longtake ask FILM "a question"')
    for each in advice:
        click.echo(visible(f"{each.why}:\n    {each.command}"))


def _used(store: Store) -> tuple[int, str]:
    """Bytes in the store, and what is wrong with its folder, if anything."""
    try:
        return sum(film.bytes for film in store.films()), ""
    # a broken cache is what this command is for: show it instead of failing
    except ConfigError as error:
        return 0, str(error)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
