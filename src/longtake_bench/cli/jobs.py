"""``--on``: asking in processes of this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import click

from longtake.cli.jobs import given_workers
from longtake.cluster.backends import BackendAddress
from longtake.errors import ConfigError
from longtake_bench.results import QuestionResult
from longtake_bench.runner import AskAll, run_all

spend_option = click.option(
    "--max-spend",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="With --on: ask no further questions once the run has cost this much.",
)


@contextmanager
def asking_on(
    where: BackendAddress | None,
    *,
    max_cost: float | None = None,
    earlier: Mapping[str, QuestionResult] | None = None,
) -> Iterator[AskAll | None]:
    """Yield what asks questions on an engine, or ``None`` without ``--on``.

    The costs of ``earlier`` results count towards ``max_cost``, the limit of the whole run.
    """
    if where is None:
        if max_cost is not None:
            raise ConfigError("--max-spend needs --on; add --on processes")
        yield None
        return
    spent = sum((row.cost for row in (earlier or {}).values()), 0.0)
    with where.open(given_workers()) as engine:
        yield partial(run_all, workers=engine, max_cost=max_cost, spent=spent)
