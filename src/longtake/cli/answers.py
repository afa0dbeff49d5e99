"""How an answer is shown, live, replayed or as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from longtake.cli.output import say
from longtake.display import visible
from longtake.errors import LongtakeError
from longtake.sinks.meter import Meter
from longtake.timecode import clock
from longtake.types import Answer, Evidence, Result, Usage

STATUS = {
    "answered": "",
    "abstained": "no answer: the model's replies could not be read",
    "budget_spent": "the budget ended the search; this is the best answer so far",
    "not_credible": "the method's own review does not find this credible",
}


def exit_code(answer: Answer) -> int:
    """0 where there is an answer, 3 where the budget or an abstention ended it."""
    return 0 if answer.status in ("answered", "not_credible") else 3


def show(answer: Answer, usage: Usage) -> None:
    """The answer, its confidence, its citations, and what it cost."""
    said = f"{answer.choice}. {answer.text}" if answer.choice else answer.text or "(no answer)"
    click.echo(visible(said))
    if STATUS[answer.status]:
        click.echo(f"  {STATUS[answer.status]}")
    if answer.reason:
        click.echo(visible(f"  because {answer.reason}"))
    click.echo(
        f"  confidence {'unknown' if answer.confidence is None else f'{answer.confidence:.0%}'}"
    )
    for cited in answer.evidence:
        click.echo(visible(f"  {citation(cited)}"))
    click.echo(f"  {spent(usage)}")


def citation(cited: Evidence) -> str:
    """``[00:12:31] speech: “…”``."""
    end = f"–{clock(cited.segment.end)}" if cited.segment.end - cited.segment.start >= 1 else ""
    quoted = f" “{cited.text}”" if cited.text else ""
    return f"[{clock(cited.segment.start)}{end}] {cited.source}{quoted}"


def spent(usage: Usage) -> str:
    """What was used, in one line."""
    cached = f" ({usage.tokens_cached:,} cached)" if usage.tokens_cached else ""
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return (
        f"{usage.frames} frames, {usage.calls} calls, {usage.tokens_in:,} tokens in{cached}, "
        f"{usage.tokens_out:,} out, {cost}, {usage.seconds:.1f} s"
    )


@contextmanager
def telling_what_was_spent(meter: Meter) -> Iterator[None]:
    """Ctrl-C or an error ends a question, not the account of it."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted after {spent(meter.total)}; a call that was under way is not counted")
        raise
    except LongtakeError:
        if meter.total.calls:
            say(f"ended after {spent(meter.total)}")
        raise


def plain(result: Result) -> dict[str, Any]:
    """A result as ``--json`` has it."""
    answer = result.answer
    return {
        "method": result.method,
        "models": dict(result.models),
        "status": answer.status,
        "choice": answer.choice,
        "text": answer.text,
        "reason": answer.reason,
        "confidence": answer.confidence,
        "evidence": [
            {
                "start": e.segment.start,
                "end": e.segment.end,
                "source": e.source,
                "text": e.text,
                "score": e.score,
            }
            for e in answer.evidence
        ],
        "usage": dataclasses.asdict(result.usage),
    }
