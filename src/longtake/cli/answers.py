"""How an answer is shown: live, replayed, or as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from longtake.cli.output import say
from longtake.cli.painting import bold, faint, in_one_line, wrapped
from longtake.display import visible
from longtake.errors import LongtakeError
from longtake.session.sharing import kind_of, quoted, said, sureness, times_of, with_footnotes
from longtake.sinks.meter import Meter
from longtake.steps.claims import claims
from longtake.types import GIVEN, Answer, Evidence, Result, Usage

STATUS = {
    "answered": "",
    "unsupported": "no moment was found that supports this answer",
    "abstained": "no answer: the model's replies could not be read",
    "budget_spent": "the budget ran out; this is the best answer so far",
    "cancelled": "cancelled; this is the best answer so far",
    "not_credible": "the method's own review rejects this answer",
}


def exit_code(answer: Answer) -> int:
    """0 if there is an answer, 3 if the run ended early or the method abstained."""
    return 0 if answer.status in GIVEN else 3


def show(
    answer: Answer,
    usage: Usage,
    *,
    unseen: Sequence[str] = (),
    quiet: bool = False,
    meter: Meter | None = None,
    calibrated: bool = False,
) -> None:
    """Print the answer, its confidence, its evidence, what was not looked at, and the cost.

    ``quiet`` leaves out everything but the answer and its citations; a ``meter`` adds what each
    model was used for.
    """
    click.echo(bold(wrapped(with_footnotes(answer) or said(answer))))
    _show_status(answer)
    sure = sureness(answer.confidence, calibrated=calibrated)
    if sure and not quiet:
        click.echo(f"  confidence {sure}")
    if answer.reason and answer.status != "abstained" and not quiet:
        click.echo(wrapped(f"because {answer.reason}", indent="  "))
    for number, cited in enumerate(answer.evidence, start=1):
        click.echo(citation(number, cited))
    if quiet:
        return
    if unseen:
        click.echo(faint(wrapped(f"not looked at: {'; '.join(unseen)}", indent="  ")))
    click.echo(faint(f"  {spent(usage)}"))
    for model, used in (meter.by_model if meter else {}).items():
        click.echo(faint(f"    {model}: {spent(used)}"))


def _show_status(answer: Answer) -> None:
    if answer.status == "abstained" and answer.reason:
        click.echo(wrapped(answer.reason, indent="  "))
    elif STATUS[answer.status]:
        click.echo(f"  {STATUS[answer.status]}")


def citation(number: int, cited: Evidence) -> str:
    """``[1] 00:12:31–00:12:34  said  “…”``, in one line."""
    start = f"  [{number}] {times_of(cited)}  {visible(kind_of(cited))}"
    words = quoted(cited)
    if not words:
        return start
    return f"{start}  “{in_one_line(words, taken=len(start) + 4)}”"


def spent(usage: Usage) -> str:
    """Usage in one line."""
    # many endpoints do not report cached tokens
    cached = f" ({usage.tokens_cached:,} cached)" if usage.tokens_cached else ""
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return (
        f"{usage.frames} frames, {usage.calls} calls, {usage.tokens_in:,} tokens in{cached}, "
        f"{usage.tokens_out:,} out, {cost}, {usage.seconds:.1f} s"
    )


@contextmanager
def report_spending(meter: Meter) -> Iterator[None]:
    """Print what was spent when Ctrl-C or an error ends a question."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted after {spent(meter.total)}; an unfinished call is not counted")
        raise
    except LongtakeError:
        # most errors come before any call, and then nothing was spent
        if meter.total.calls:
            say(f"ended after {spent(meter.total)}")
        raise


def plain(result: Result) -> dict[str, Any]:
    """A result for ``--json``."""
    answer = result.answer
    return {
        "method": result.method,
        "models": dict(result.models),
        "status": answer.status,
        "choice": answer.choice,
        "text": answer.text,
        "reason": answer.reason,
        "confidence": answer.confidence,
        "evidence": [_plain_evidence(cited) for cited in answer.evidence],
        "claims": [
            {"text": claim.text, "evidence": list(claim.citations)} for claim in claims(answer)
        ],
        "usage": dataclasses.asdict(result.usage),
    }


def _plain_evidence(cited: Evidence) -> dict[str, Any]:
    return {
        "start": cited.segment.start,
        "end": cited.segment.end,
        "source": cited.source,
        "text": cited.text,
        "score": cited.score,
    }
