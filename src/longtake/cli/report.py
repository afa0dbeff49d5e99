"""``longtake report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json, say
from longtake.cli.places import PAGE, Kind, check_place
from longtake.config import Settings
from longtake.errors import ConfigError, LongtakeError, RunError
from longtake.evals import presets
from longtake.evals import report as reports
from longtake.evals.benchmarks import about, load
from longtake.evals.markdown import markdown
from longtake.evals.page import page
from longtake.evals.report import Report
from longtake.evals.runs import RunFolder
from longtake.replacing import replacing

_file = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--data",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The benchmark's files: labels are never kept in a run. Repeat it for runs on several.",
)
@click.option(
    "--html", type=_file, metavar="FILE", help="Write one page with plots that stands alone."
)
@click.option(
    "--submission",
    type=_file,
    metavar="FILE",
    help="Write the answers as the benchmark's authors take them.",
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
    """Score runs and set them side by side, as Markdown, JSON or a page.

    The first run on a benchmark is compared with each other one on it, on the questions both have answered. Figures
    that a paper printed are shown apart, as published.

    \b
    Example:
      longtake report runs/videoagent runs/uniform --data nextqa --html report.html
    """
    if html is not None:
        check_place(html, PAGE, inputs=(submission,))
    found = [read(path, data) for path in runs]
    published = {
        name: presets.read(name).published
        for name in dict.fromkeys(r.spec["preset"] for r in found if r.spec.get("preset"))
    }
    if submission is not None:
        _submit(found, submission)
    if html is not None:
        _write(html, page(found, beside=html.resolve().parent, published=published))
    if as_json:
        plain = {name: [vars(figure) for figure in figures] for name, figures in published.items()}
        emit_json({"reports": reports.plain(found), "published": plain})
    else:
        click.echo(markdown(found, published))


def read(path: Path, data: Sequence[Path]) -> Report:
    """A run beside the labels of its benchmark, loaded as it was then, from the first folder that holds its files."""
    folder = RunFolder(path.resolve())
    spec = folder.spec()
    asked = spec["benchmark"]
    problems: list[LongtakeError] = []
    for files in data or (None,):
        try:
            benchmark = load(asked["name"], files, asked["options"])
            return reports.read(
                folder,
                benchmark.draw(
                    limit=asked.get("limit"), sample=asked.get("sample"), seed=spec["seed"]
                ),
            )
        except (ConfigError, RunError) as problem:
            problems.append(problem)
    if len(problems) == 1:
        raise problems[0]
    raise RunError(
        f"{path}: no folder given with --data holds the files of {asked['name']} that it was run on"
    )


def _submit(found: list[Report], file: Path) -> None:
    name = found[0].spec["benchmark"]["name"]
    columns = about(name).submission
    if len(found) > 1 or columns is None:
        raise ConfigError(
            "--submission takes one run"
            if columns
            else f"{name}: its authors take no submission file"
        )
    check_place(file, Kind("a submission", (",".join(columns).encode(),)))
    _write(file, reports.submission(found[0], columns))


def _write(file: Path, text: str) -> None:
    try:
        with replacing(file) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror})") from error
    say(f"wrote {file}")
