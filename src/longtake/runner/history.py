"""Earlier questions: those that are sent with a follow-up question, and the history on disk.

The text that is sent is plain: users can see it, change it and drop it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from longtake._util import write_atomically
from longtake.config import Settings, cache_folder
from longtake.index.store import private_folder
from longtake.prompts import phrase

CARRIED = 20_000
"""Maximum length of the text that is sent; its end matters most."""


def with_carried(question: str, carried: str) -> str:
    """The question with the conversation that it may refer to."""
    text, earlier = question.strip(), carried.strip()
    return f"{text}\n{phrase('shared', 'earlier', earlier=earlier)}" if earlier else text


def carry_on(carried: str, question: str, answer: str) -> str:
    """The conversation with one more question and its answer, to be sent with the next one."""
    turn = f"Q: {' '.join(question.split())}\nA: {' '.join(answer.split())}"
    return f"{carried}\n{turn}".strip()[-CARRIED:]


MOST = 1000
"""Maximum number of questions in the history."""


@dataclass(frozen=True)
class PastQuestion:
    """A question that was asked."""

    at: float
    """Unix time."""
    film: str
    question: str
    result: Mapping[str, Any]
    """The answer, as ``--json`` prints it."""

    @property
    def answer(self) -> str:
        """The answer in words."""
        choice, text = self.result.get("choice"), str(self.result.get("text") or "")
        return f"{choice}. {text}" if choice else text or "(no answer)"


def history_file(settings: Settings) -> Path:
    """The file of the history."""
    return cache_folder(settings) / "history.jsonl"


def remember(settings: Settings, film: Path, question: str, result: Mapping[str, Any]) -> None:
    """Add a question and its answer to the history, unless that is turned off."""
    if not settings.answers.history:
        return
    path = history_file(settings)
    private_folder(path.parent)
    row = {"at": time.time(), "film": str(film), "question": question, "result": dict(result)}
    # surrogates stand for the bytes of a file name that are not valid UTF-8
    line = json.dumps(row).encode()
    with FileLock(f"{path}.lock", timeout=5, mode=0o600):
        kept = path.read_bytes().splitlines()[-(MOST - 1) :] if path.is_file() else []
        write_atomically(path, b"\n".join([*kept, line]) + b"\n")


def past_questions(settings: Settings) -> list[PastQuestion]:
    """The questions of the history, oldest first; damaged lines are skipped."""
    path = history_file(settings)
    if not path.is_file():
        return []
    past = []
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
            past.append(PastQuestion(row["at"], row["film"], row["question"], row["result"]))
        except (ValueError, KeyError, TypeError):
            continue  # cut off by a full disk
    return past


def forget(settings: Settings) -> int:
    """Delete the history; return how many questions it held."""
    count = len(past_questions(settings))
    history_file(settings).unlink(missing_ok=True)
    return count
