"""``longtake report``."""

from __future__ import annotations

from pathlib import Path

import click

from longtake.cli.eval import draw
from longtake.cli.options import common
from longtake.cli.output import emit_json
from longtake.config import Settings
from longtake.evals import report as reports
from longtake.evals.benchmarks import load
from longtake.evals.runs import RunFolder


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--data", type=click.Path(path_type=Path), required=True, metavar="DIR",
              help="The benchmark's files: labels are never kept in a run.")  # fmt: skip
@common
def report(runs: tuple[Path, ...], data: Path, settings: Settings, as_json: bool) -> None:  # noqa: ARG001
    """Score runs and set them side by side, as Markdown.

    The first run is compared with each of the others on the questions both have answered.

    \b
    Example:
      longtake report runs/videoagent runs/uniform --data nextqa
    """
    found = []
    for path in runs:
        folder = RunFolder(path)
        spec = folder.spec()["benchmark"]
        options = {
            k: str(v) for k, v in spec.items() if k not in ("name", "files", "limit", "sample") and v is not None
        }
        benchmark = draw(
            load(spec["name"], data, options), spec.get("limit"), spec.get("sample"), folder.spec()["seed"]
        )
        found.append(reports.read(folder, benchmark))
    if as_json:
        emit_json({"reports": reports.plain(found)})
    else:
        click.echo(reports.markdown(found))
