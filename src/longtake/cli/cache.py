"""``longtake cache``."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import click

from longtake._util import visible
from longtake.cli.options import FILM, common
from longtake.cli.output import Output, human_bytes
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.index.source import fingerprint
from longtake.runner.films import open_store
from longtake.runner.rendering import plural


@click.group()
def cache() -> None:
    """List and clear the data derived from films.

    \b
    Example:
      longtake cache list
      longtake cache clear holiday.mp4
    """


@cache.command("list")
@common
def list_films(settings: Settings) -> Output:
    """List the films in the cache, most recently used first, with their sizes.

    \b
    Example:
      longtake cache list
    """
    store = open_store(settings)
    films = store.films()[::-1]
    total = sum(film.bytes for film in films)
    facts = ("fingerprint", "name", "bytes", "last_used")
    rows = [{fact: getattr(film, fact) for fact in facts} for film in films]
    lines = []
    for film in films:
        used = datetime.fromtimestamp(film.last_used).strftime("%Y-%m-%d %H:%M")
        size = human_bytes(film.bytes)
        lines.append(f"{film.fingerprint}  {size:>9}  {used}  {visible(film.name)}")
    size = f"{human_bytes(total)} of {human_bytes(store.limit_bytes)}"
    lines.append(f"{plural(len(films), 'film')}, {size} in {store.root}")
    cache = {"folder": store.root, "bytes": total, "limit_bytes": store.limit_bytes}
    return Output({**cache, "films": rows}, lines)


@cache.command()
@click.argument("paths", nargs=-1, type=FILM, metavar="[FILM]...")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Clear all films, the vocabulary, and the captions of benchmarks.",
)
@common
def clear(paths: tuple[Path, ...], everything: bool, settings: Settings) -> Output:
    """Delete the data derived from the given films (files or fingerprints), or from all films.

    \b
    Example:
      longtake cache clear holiday.mp4
    """
    if not paths and not everything:
        raise ConfigError("name a film or fingerprint (see 'longtake cache list'), or pass --all")
    store = open_store(settings)
    known = {film.fingerprint for film in store.films()}
    chosen: set[str] = known if everything else set()
    for path in paths:
        if str(path) in known:
            chosen.add(str(path))
        else:
            chosen |= {fingerprint(path)} & known
    freed = sum(store.clear(identity) for identity in sorted(chosen))
    if everything:
        # written by earlier versions
        captions = store.root / "captions"
        older = [*captions.glob("*"), *store.root.glob("words.db")]
        freed += sum(file.stat().st_size for file in older)
        for file in older:
            file.unlink()
        shutil.rmtree(captions, ignore_errors=True)
    cleared = f"cleared {plural(len(chosen), 'film')}, {human_bytes(freed)} freed"
    return Output({"cleared": sorted(chosen), "freed_bytes": freed}, [cleared])
