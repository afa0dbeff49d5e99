"""``longtake benchmarks``."""

from __future__ import annotations

import dataclasses

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json
from longtake.config import Settings
from longtake.evals import presets
from longtake.evals.benchmarks import NAMES, about


@click.command()
@common
def benchmarks(settings: Settings, as_json: bool) -> None:  # noqa: ARG001
    """The benchmarks: what to download, where to put it, on which terms.

    Below them, the experiments of the papers that 'longtake eval --preset' runs.

    \b
    Example:
      longtake benchmarks
    """
    found = [about(name) for name in NAMES]
    planned = [presets.read(name) for name in presets.names()]
    if as_json:
        keys = ("name", "title", "get", "layout", "licence", "verified")
        emit_json(
            {
                "benchmarks": [
                    {k: getattr(b, k) for k in keys} | {"options": dict(b.options)} for b in found
                ],
                "presets": [dataclasses.asdict(preset) for preset in planned],
            }
        )
        return
    for each in found:
        click.echo(
            f"{each.name}: {each.title}"
            + ("" if each.verified else " (loader not held against real files)")
        )
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
