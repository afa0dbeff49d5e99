"""What the results of a run amount to: mean usage, how questions ended, and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

ERRORS_LISTED = 5
"""Distinct errors that are listed; the rest are counted."""


def mean_usage(rows: Sequence[Mapping[str, Any]], what: str) -> float:
    """Mean of a usage figure per question, without those that ended in an error."""
    values = [row["usage"][what] or 0.0 for row in rows if row["status"] != "error"]
    return sum(values) / len(values) if values else 0.0


def mean_count(rows: Sequence[Mapping[str, Any]], what: str) -> float | None:
    """Mean of ``seen`` or ``rounds`` per question; ``None`` for runs from before it was counted."""
    values: list[float] = [row[what] for row in rows if what in row]
    return sum(values) / len(values) if values else None


def in_text(value: float | None) -> str:
    """A mean as tables show it."""
    return "–" if value is None else f"{value:.1f}"


def mean_tokens(rows: Sequence[Mapping[str, Any]]) -> float:
    """Mean tokens per question, in and out."""
    return mean_usage(rows, "tokens_in") + mean_usage(rows, "tokens_out")


def count_statuses(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many questions ended in which status."""
    return Counter(row["status"] for row in rows)


def count_errors(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many questions ended in which error."""
    return Counter(row["error"] for row in rows if row["status"] == "error")


def list_errors(errors: Counter[str], most: int = ERRORS_LISTED) -> list[str]:
    """Errors with their counts, the most frequent first."""
    listed = errors.most_common(most)
    lines = [f"{count} × {text}" for text, count in listed]
    rest = errors.total() - sum(count for _, count in listed)
    if rest:
        lines.append(f"{rest} × something else")
    return lines
