"""``longtake mcp``."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from longtake.cli.options import PATH, common
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, MissingExtra
from longtake.server.options import ServeOptions


@click.command()
@click.option(
    "--films",
    "folders",
    type=PATH,
    multiple=True,
    required=True,
    metavar="DIR",
    help="A folder of films, or one film; repeatable. Nothing outside is opened.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[ROLE=]NAME",
    help="A model for questions; repeatable.",
)
@click.option("--max-spend", type=float, metavar="USD", help="Most cost of all questions together.")
@common
def mcp(
    folders: tuple[Path, ...],
    models: tuple[str, ...],
    max_spend: float | None,
    settings: Settings,
    as_json: bool,
) -> None:
    """Offer films as tools to an assistant, over the Model Context Protocol.

    The assistant's host starts this command and talks to it on stdio. 'longtake serve' offers the
    same tools at /mcp. Needs the extra 'mcp'.

    \b
    Example:
      longtake mcp --films ~/Videos
    """
    if as_json:
        raise ConfigError("--json: this command speaks its own protocol")
    try:
        from longtake.server.mcp import build_mcp, run_on_stdio
        from longtake.server.security import AccessKeys
        from longtake.server.state import open_state, owned_folder
    except ImportError as error:
        raise MissingExtra("mcp", "longtake mcp") from error
    for folder in folders:
        if not folder.exists():
            raise ConfigError(f"--films {folder}: does not exist")
    # each assistant's host starts a process of its own, and none shares the folder of its runs
    names = ("mcp", *(f"mcp-{number}" for number in range(2, 17)))
    with owned_folder(*(cache_folder(settings) / name for name in names)) as data:
        options = ServeOptions(
            settings=settings, films=folders, models=models, max_spend=max_spend, folder=data
        )
        state = open_state(options, AccessKeys(secrets.token_hex(16), 0))
        run_on_stdio(build_mcp(state))
