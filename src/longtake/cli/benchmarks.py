"""``longtake benchmarks``."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json
from longtake.config import Settings
from longtake.evals import presets
from longtake.evals.benchmarks import About, about
from longtake.registry import benchmarks as registered


@click.command()
@common
def benchmarks(settings: Settings, as_json: bool) -> None:  # noqa: ARG001
    """The benchmarks: what to download, where to put it, on which terms.

    Below them, the experiments of the papers that 'longtake eval --preset' runs.

    \b
    Example:
      longtake benchmarks
    """
    described = {name: about(name) for name in registered.names()}
    planned = [presets.read(name) for name in presets.names()]
    if as_json:
        plain = [_plain(name, each) for name, each in described.items()]
        emit_json(
            {"benchmarks": plain, "presets": [dataclasses.asdict(preset) for preset in planned]}
        )
        return
    for name, each in described.items():
        note = "" if each.verified else " (loader not tested on the real files)"
        click.echo(f"{name}: {each.title}{note}")
        click.echo(f"  get      {each.get}")
        click.echo(f"  layout   {each.layout}")
        click.echo(f"  licence  {each.licence}")
        for option, meaning in each.options.items():
            click.echo(f"  --of {option}=…  {meaning}")
    click.echo("\nExperiments of the papers, for 'longtake eval --preset NAME':")
    for preset in planned:
        click.echo(f"{preset.name}: {preset.title}")
        click.echo(f"  used     {preset.used}")
        for figure in preset.published:
            click.echo(f"  published  {figure.accuracy:.1f} % {figure.system} ({figure.where})")


def _plain(name: str, each: About) -> dict[str, Any]:
    keys = ("title", "get", "layout", "licence", "verified")
    facts = {key: getattr(each, key) for key in keys}
    return {"name": name, **facts, "options": dict(each.options)}
