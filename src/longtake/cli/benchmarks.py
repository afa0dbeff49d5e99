"""``longtake benchmarks``."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json
from longtake.config import Settings
from longtake.evals import presets
from longtake.evals.benchmarks import BenchmarkInfo, about
from longtake.evals.presets import EvalPreset
from longtake.registry import benchmarks as registered


@click.command()
@common
def benchmarks(settings: Settings, as_json: bool) -> None:  # noqa: ARG001
    """List the benchmarks: what to download, where to put it, under which terms.

    The papers' experiments, which 'longtake eval --preset' runs, follow.

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
        _show(name, each)
    click.echo("\nExperiments from the papers, for 'longtake eval --preset NAME':")
    for preset in planned:
        _show_preset(preset)


def _plain(name: str, described: BenchmarkInfo) -> dict[str, Any]:
    keys = ("title", "get", "layout", "licence", "verified")
    facts = {key: getattr(described, key) for key in keys}
    return {"name": name, **facts, "options": dict(described.options)}


def _show(name: str, described: BenchmarkInfo) -> None:
    note = "" if described.verified else " (loader not tested on the real files)"
    click.echo(f"{name}: {described.title}{note}")
    click.echo(f"  get      {described.get}")
    click.echo(f"  layout   {described.layout}")
    click.echo(f"  licence  {described.licence}")
    for option, meaning in described.options.items():
        click.echo(f"  --of {option}=…  {meaning}")


def _show_preset(preset: EvalPreset) -> None:
    click.echo(f"{preset.name}: {preset.title}")
    click.echo(f"  used     {preset.used}")
    for figure in preset.published:
        click.echo(f"  published  {figure.accuracy:.1f} % {figure.system} ({figure.where})")
