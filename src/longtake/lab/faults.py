"""Corrupts JSON replies in the ways in which real models do."""

from __future__ import annotations

import json
import re

from longtake.lab.chance import pick, share

FAULTS = ("prose", "fence", "comma", "quotes", "cut", "words", "wrong_name")
"""Prose around the object, a code fence, a trailing comma, single quotes, a truncated end, no JSON
at all, misnamed fields."""


def spoil(text: str, rate: float, *words: object) -> str:
    """Corrupt a JSON reply at the given rate; the words determine whether and how."""
    if share("fault", *words) >= rate:
        return text
    kind = pick(FAULTS, "kind of fault", *words)
    if kind == "prose":
        return f"Sure, here is my reply:\n\n{text}\n\nLet me know if you need anything else!"
    if kind == "fence":
        return f"```json\n{text}\n```"
    if kind == "comma":
        return re.sub(r"\}$", ",}", text)
    if kind == "quotes":
        return text.replace('"', "'")
    if kind == "cut":  # as if the limit of tokens were reached
        return text[: max(1, len(text) * 2 // 3)]
    if kind == "words":
        return "I have looked at this carefully and cannot put it into that form."
    data = json.loads(text)
    if not isinstance(data, dict):
        return text
    renamed = {f"my_{name}": value for name, value in data.items()}
    return json.dumps(renamed, ensure_ascii=False)
