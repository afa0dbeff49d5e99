"""Probes a model and shows what it can do."""

from __future__ import annotations

import click

from longtake.models.catalogue import Catalogue
from longtake.models.chat import Chat
from longtake.models.manners import BIASED
from longtake.models.probe import Report


def probed_chat(catalogue: Catalogue, name: str) -> Chat:
    """The model itself, without retries or cached replies, or the one that it relies on."""
    needed = catalogue.backend(name).needs(catalogue.opening(name))
    return catalogue.bare(needed[0] if needed else name)


def show_report(report: Report) -> None:
    """Print what a probe found."""
    words = {True: "yes", False: "no", None: "unknown"}
    click.echo(f"{report.model}: {'reachable' if report.reachable else 'not reachable'}")
    if report.reachable:
        click.echo(f"  JSON schema  {words[report.json_schema]}  {report.reply!r}")
        _show_form(report)
        click.echo(f"  vision       {words[report.vision]}")
        click.echo(f"  context      {report.context or 'unknown'}")
        click.echo(f"  latency      {report.seconds} s for a short reply")
        if report.reading and report.writing:
            speeds = f"reads {report.reading:g}, writes {report.writing:g} tokens/s"
            click.echo(f"  speed        {speeds}")
        if report.bias:
            shares = ", ".join(f"{letter} {share:.0%}" for letter, share in report.bias.items())
            biased = max(report.bias.values()) > BIASED
            told = "; options are rotated from now on" if biased else ""
            click.echo(f"  bias         {shares}{told}")


def _show_form(report: Report) -> None:
    """How typed replies are asked for, and what became of the other ways."""
    if not report.form:
        return
    tried = [f"{way}: {verdict}" for way, verdict in report.verdicts.items()]
    click.echo(f"  form         {report.form}  ({'; '.join(tried) or 'nothing else tried'})")
    offered = {True: "yes, one token", False: "no", None: "unknown"}
    click.echo(f"  log-probs    {offered[report.letters]}")
