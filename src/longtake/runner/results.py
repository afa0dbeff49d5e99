"""Results as plain data: the one place from which JSON output, records of runs and replies select.

Times are seconds, and ``None`` stands for what is unknown.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from longtake.agents.answer import claims
from longtake.types import Answer, Evidence, Result

OUTCOME = ("status", "choice", "text", "reason", "confidence")
"""The parts of an answer that say what was answered."""


def result_data(result: Result) -> dict[str, Any]:
    """A result: how it was made, its answer with citations and claims, and what it cost."""
    answer = result.answer
    return {
        "method": result.method,
        "models": dict(result.models),
        **answer_data(answer),
        "evidence": [evidence_data(cited) for cited in answer.evidence],
        "nearest": [evidence_data(frame) for frame in answer.nearest],
        "claims": [
            {"text": each.text, "evidence": list(each.citations)} for each in claims(answer)
        ],
        "usage": asdict(result.usage),
    }


def answer_data(answer: Answer) -> dict[str, Any]:
    """An answer without its citations."""
    context = answer.context and [answer.context.start, answer.context.end]
    parts = {part: getattr(answer, part) for part in OUTCOME}
    return {**parts, "unchecked": answer.unchecked, "context": context}


def evidence_data(cited: Evidence) -> dict[str, Any]:
    """A citation."""
    return {
        "start": cited.segment.start,
        "end": cited.segment.end,
        "source": cited.source,
        "text": cited.text,
        "score": cited.score,
    }
