"""``longtake report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from longtake.cli.options import FILE, PATH, common
from longtake.cli.output import PAGE, Kind, check_place, emit_json, write_text
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.evals import presets
from longtake.evals import report as reports
from longtake.evals.benchmarks import about
from longtake.evals.html_report import html_report
from longtake.evals.presets import Published
from longtake.evals.report import RunReport, markdown, read_labelled


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@click.option(
    "--data",
    multiple=True,
    type=PATH,
    metavar="DIR",
    help="The benchmark's files, since a run holds no labels; repeatable for several benchmarks.",
)
@click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Write one self-contained page with plots (extra: report).",
)
@click.option(
    "--submission",
    type=FILE,
    metavar="FILE",
    help="Write the answers in the format of the benchmark's authors.",
)
@common
def report(
    runs: tuple[Path, ...],
    data: tuple[Path, ...],
    html: Path | None,
    submission: Path | None,
    settings: Settings,  # noqa: ARG001
    as_json: bool,
) -> None:
    """Score runs and compare them, as Markdown, JSON or a web page.

    The first run on a benchmark is compared with each other run on it, on the questions that both
    answered. Figures printed in a paper are shown separately, as published.

    \b
    Example:
      longtake report runs/videoagent runs/uniform --data nextqa --html report.html
    """
    if html is not None:
        check_place(html, PAGE, inputs=(submission,))
    scored = [read_labelled(path, data) for path in runs]
    published = _published(scored)
    if submission is not None:
        _submit(scored, submission)
    if html is not None:
        write_text(html, html_report(scored, beside=html.resolve().parent, published=published))
    if as_json:
        figures = {name: [vars(each) for each in listed] for name, listed in published.items()}
        emit_json({"reports": reports.plain(scored), "published": figures})
    else:
        click.echo(markdown(scored, published))


def _published(scored: Sequence[RunReport]) -> Mapping[str, Sequence[Published]]:
    """The papers' figures for the presets that were run, by preset."""
    published = {}
    for each in scored:
        if preset := each.spec.get("preset"):
            published[preset] = presets.read(preset).published
    return published


def _submit(scored: Sequence[RunReport], file: Path) -> None:
    name = scored[0].spec["benchmark"]["name"]
    columns = about(name).submission
    if columns is None:
        raise ConfigError(f"{name}: its authors accept no submission file")
    if len(scored) > 1:
        raise ConfigError("--submission takes one run")
    check_place(file, Kind("a submission", (",".join(columns).encode(),)))
    write_text(file, reports.submission(scored[0], columns))
