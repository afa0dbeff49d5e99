"""``longtake serve`` and ``longtake mcp``."""

from __future__ import annotations

import functools
import os
import secrets
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from longtake.cli.options import COUNT, EXISTING, common, settings_options
from longtake.cli.output import Output, prints_json, say
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, MissingExtra
from longtake.llm.http import is_loopback
from longtake.server.options import PORT, ServeOptions

TOKEN = "LONGTAKE_SERVE_TOKEN"
"""Environment variable that holds the user's own token."""


_films = functools.partial(click.option, "--films", type=EXISTING, multiple=True, metavar="DIR")
_models = functools.partial(click.option, "--model", "models", multiple=True)


@click.command()
@_films(
    default=(Path(),),
    show_default="current folder",
    help="A folder of films, or one film; repeatable.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT)
@click.option("--open", "browse", is_flag=True, help="Open the page in a browser.")
@_models(metavar="[ROLE=]NAME", help="A model for questions that name none; repeatable.")
@click.option("--at-once", type=COUNT, default=2, help="Maximum number of runs at the same time.")
@click.option("--max-spend", type=float, metavar="USD", help="Maximum cost of all runs together.")
@click.option(
    "--max-upload", type=float, default=16.0, metavar="GB", help="Maximum size of an uploaded film."
)
@click.option(
    "--allow-url", multiple=True, metavar="DOMAIN", help="Allow films from this domain; repeatable."
)
@click.option(
    "--otlp",
    default="",
    show_default=False,
    metavar="URL",
    help="Send spans of runs, without their content, to an OpenTelemetry collector (extra: otel).",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help=f"Bind another interface; requires a token in ${TOKEN}.",
)
@click.option(
    "--host-name",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name of the server; repeatable.",
)
@common
def serve(browse: bool, max_upload: float, settings: Settings, **given: Any) -> None:
    """Start a server with a page on which to ask questions and watch answers being found.

    The page opens with the one-time link that is printed. Programs send a token instead, which is
    in a file that only you can read. Without --host, only this machine can connect. Needs the extra
    'serve'.

    \b
    Example:
      longtake serve --films ~/Videos --open
    """
    try:
        from longtake.server import app
    except ImportError as error:
        raise MissingExtra("serve", "longtake serve") from error
    # the other options are fields of the same names
    options = ServeOptions(
        settings=settings,
        own_process=True,
        max_upload=round(max_upload * 1e9),
        token=os.environ.get(TOKEN, ""),
        **given,
    )
    if options.otlp:
        import longtake.tracing.otel  # noqa: F401 - raises here rather than in the worker
    host = options.host
    if not is_loopback(host):
        if not options.token:
            raise ConfigError(f"--host {host} allows other machines to connect: set ${TOKEN} first")
        options = replace(options, hosts=(*options.hosts, host))

    as_json = prints_json()

    def ready(url: str, token_file: Path | None) -> None:
        shown = [f"Open {url} (works once, for ten minutes)"]
        Output({"url": url, "token_file": token_file}, shown).show(as_json=as_json)
        if token_file is not None and not as_json:
            say(f"token for programs: {token_file}")
        if browse:
            webbrowser.open(url)

    with app.server_process():
        app.serve(options, ready)


@click.command()
@_films(
    required=True, help="A folder of films, or one film; repeatable. Nothing outside is opened."
)
@_models(metavar="[ROLE=]NAME", help="A model for questions; repeatable.")
@click.option("--max-spend", type=float, metavar="USD", help="Maximum cost of all questions.")
@settings_options
def mcp(settings: Settings, **given: Any) -> None:
    """Offer films as tools to an assistant, over the Model Context Protocol.

    The assistant's host starts this command and talks to it on stdio. 'longtake serve' offers the
    same tools at /mcp. Needs the extra 'mcp'.

    \b
    Example:
      longtake mcp --films ~/Videos
    """
    try:
        from longtake.server.mcp import build_mcp, run_on_stdio
        from longtake.server.security import AccessKeys
        from longtake.server.state import open_state, owned_folder
    except ImportError as error:
        raise MissingExtra("mcp", "longtake mcp") from error
    # each assistant starts its own process, which needs its own folder for runs
    names = ("mcp", *(f"mcp-{number}" for number in range(2, 17)))
    with owned_folder(*(cache_folder(settings) / name for name in names)) as data:
        options = ServeOptions(settings=settings, folder=data, **given)
        state = open_state(options, AccessKeys(secrets.token_hex(16), 0))
        run_on_stdio(build_mcp(state))
