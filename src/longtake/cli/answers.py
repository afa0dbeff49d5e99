"""How an answer is shown: live, replayed, or as JSON."""

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
from longtake.steps.claims import claims
from longtake.timecode import clock
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


def in_words(answer: Answer, *, none: str) -> str:
    """The chosen option with its letter, or the text of an open answer."""
    if answer.choice:
        return f"{answer.choice}. {answer.text}"
    return answer.text or none


def show(answer: Answer, usage: Usage) -> None:
    """Print the answer, its confidence, its evidence and its cost."""
    click.echo(visible(with_footnotes(answer) or in_words(answer, none="(no answer)")))
    if answer.status == "abstained" and answer.reason:
        click.echo(visible(f"  {answer.reason}"))
    elif STATUS[answer.status]:
        click.echo(f"  {STATUS[answer.status]}")
    if answer.reason and answer.status != "abstained":
        click.echo(visible(f"  because {answer.reason}"))
    confidence = "unknown" if answer.confidence is None else f"{answer.confidence:.0%}"
    click.echo(f"  confidence {confidence}")
    numbered = bool(claims(answer))
    for number, cited in enumerate(answer.evidence, start=1):
        mark = f"[{number}] " if numbered else ""
        click.echo(visible(f"  {mark}{citation(cited)}"))
    click.echo(f"  {spent(usage)}")


def with_footnotes(answer: Answer) -> str:
    """An answer of several claims, each followed by the numbers of its citations; else empty."""
    marked = []
    for claim in claims(answer):
        notes = "".join(f"[{place + 1}]" for place in claim.citations)
        marked.append(f"{claim.text} {notes}".strip())
    return " ".join(marked)


def citation(cited: Evidence) -> str:
    """``[00:12:31–00:12:34] speech “…”``."""
    end = f"–{clock(cited.segment.end)}" if cited.segment.end - cited.segment.start >= 1 else ""
    quoted = f" “{cited.text}”" if cited.text else ""
    return f"[{clock(cited.segment.start)}{end}] {cited.source}{quoted}"


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
