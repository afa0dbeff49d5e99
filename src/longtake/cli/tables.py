"""Tables that several commands print."""

from __future__ import annotations

from collections.abc import Sequence

import click

from longtake.session.estimate import Estimate


def show_estimates(estimates: Sequence[Estimate], *, err: bool = False) -> None:
    """Print one line per method: the most that it can use."""
    width = first_column([each.method for each in estimates])
    head = f"{'at most':<{width}}{'calls':>8}{'frames':>9}{'tokens in':>11}{'out':>9}{'cost':>10}"
    click.echo(head, err=err)
    for each in estimates:
        cost = "unknown" if each.cost is None else f"${each.cost:.4f}"
        usage = f"{figure(each.calls):>8}{figure(each.frames):>9}"
        tokens = f"{figure(each.tokens_in):>11}{figure(each.tokens_out):>9}"
        click.echo(f"{each.method:<{width}}{usage}{tokens}{cost:>10}", err=err)
        for stage in each.stages:
            odds = f"needed {stage.reached:>4.0%}  ends here {stage.stopped:>4.0%}"
            click.echo(
                f"  {stage.stage:<{width}}{odds}  usually {stage.tokens:,.0f} tokens", err=err
            )


def figure(value: int | None) -> str:
    """A figure of an estimate; unknown for a method without ``bounds``."""
    return "unknown" if value is None else f"{value:,}"


def first_column(names: Sequence[str]) -> int:
    """Width of a column of methods; the address of a method can be long."""
    return max([16, *(len(name) + 1 for name in names)])
