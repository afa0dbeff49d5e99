"""``longtake cache``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json, human_bytes
from longtake.config import Settings
from longtake.display import visible
from longtake.errors import ConfigError
from longtake.index.fingerprint import fingerprint
from longtake.session.films import open_store


@click.group()
def cache() -> None:
    """See and clear what was derived from films.

    \b
    Example:
      longtake cache list
      longtake cache clear holiday.mp4
    """


@cache.command("list")
@common
def list_films(settings: Settings, as_json: bool) -> None:
    """Films in the store, most recently used first, and the space they take.

    \b
    Example:
      longtake cache list
    """
    store = open_store(settings)
    films = store.films()[::-1]
    total = sum(film.bytes for film in films)
    if as_json:
        emit_json(
            {
                "folder": str(store.root),
                "bytes": total,
                "limit_bytes": store.limit_bytes,
                "films": [
                    {
                        "fingerprint": f.fingerprint,
                        "name": f.name,
                        "bytes": f.bytes,
                        "last_used": f.last_used,
                    }
                    for f in films
                ],
            }
        )
        return
    for film in films:
        used = datetime.fromtimestamp(film.last_used).strftime("%Y-%m-%d %H:%M")
        click.echo(
            f"{film.fingerprint}  {human_bytes(film.bytes):>9}  {used}  {visible(film.name)}"
        )
    click.echo(
        f"{len(films)} films, {human_bytes(total)} of {human_bytes(store.limit_bytes)} in {store.root}"
    )


@cache.command()
@click.argument("films", nargs=-1, type=click.Path(path_type=Path), metavar="[FILM]...")
@click.option("--all", "everything", is_flag=True, help="Every film.")
@common
def clear(films: tuple[Path, ...], everything: bool, settings: Settings, as_json: bool) -> None:
    """Remove everything derived from the given films, by file or by fingerprint; or from all.

    \b
    Example:
      longtake cache clear holiday.mp4
    """
    if not films and not everything:
        raise ConfigError(
            "name a film (or its fingerprint from 'longtake cache list'), or pass --all"
        )
    store = open_store(settings)
    known = {film.fingerprint for film in store.films()}
    chosen: set[str] = known if everything else set()
    for film in films:
        if str(film) in known:
            chosen.add(str(film))
        else:
            # both identities: a film may have been indexed with --full-hash and without
            chosen |= {fingerprint(film), fingerprint(film, full=True)} & known
    freed = sum(store.clear(identity) for identity in sorted(chosen))
    if as_json:
        emit_json({"cleared": sorted(chosen), "freed_bytes": freed})
    else:
        click.echo(f"cleared {len(chosen)} films, {human_bytes(freed)} freed")
