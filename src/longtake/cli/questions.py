"""Questions from a file or standard input: one per line, as text or as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from longtake.cli.session import read_question
from longtake.errors import ConfigError
from longtake.types import Question


def read_questions(place: str) -> list[Question]:
    """The questions in a file, or on standard input if the place is ``-``.

    A line is a question, or an object with ``question`` and perhaps ``options``. Empty lines and
    lines that begin with ``#`` are left out.
    """
    questions = []
    for number, line in enumerate(_text(place).splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            questions.append(_question(line, f"{place}, line {number}"))
    if not questions:
        raise ConfigError(f"{place}: there is no question in it")
    return questions


def _text(place: str) -> str:
    try:
        return sys.stdin.read() if place == "-" else Path(place).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{place}: invalid UTF-8 ({error})") from error


def _question(line: str, where: str) -> Question:
    if not line.startswith("{"):
        return read_question(line, ())
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where}: malformed JSON ({error})") from error
    text, options = row.get("question"), row.get("options", [])
    listed = isinstance(options, list) and all(isinstance(each, str) for each in options)
    if not isinstance(text, str) or not listed:
        raise ConfigError(f'{where}: write {{"question": "…", "options": ["…", "…"]}}')
    return read_question(text, tuple(options))
