"""What a server's complaint is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FEATURES: Mapping[str, tuple[str, ...]] = {
    "max_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "stop": ("'stop'", '"stop"', "stop sequences"),
    "logprobs": ("logprob",),
    "tools": ("tool",),
}
"""Features that can be left out or sent differently, and the words that name them."""
SCHEMA_WORDS = ("response_format", "json_schema", "json_object", "schema", "grammar", "structured")
REFUSALS = (400, 404, 422, 500, 501)
"""Statuses with which servers refuse a feature. 500 is one of them: llama-cpp-python answers so to
a schema, llama.cpp to pictures for a text model."""
_KEYWORD = "(?:maxLength|minLength|maxItems|minItems|'minimum'|'maximum'|'pattern')"
_BOUNDS = re.compile(
    rf"{_KEYWORD}[^.]{{0,40}}(?:\bnot\b|unsupported)"
    rf"|(?:unsupported|not (?:permitted|supported|allowed))[^.]{{0,60}}{_KEYWORD}"
)
_LOADING = re.compile(r"\bloading\b|\bwarming up\b", re.IGNORECASE)
_SEEING = r"(?:image|picture|vision|multimodal|multi-modal)"
_TAKING = r"(?:support|accept|allow|enabl|available|capab)"
_BLIND = re.compile(
    rf"mmproj|not a multi-?modal|{_SEEING}[^.]{{0,60}}(?:not|n't)\s(?:be\s)?{_TAKING}"
    rf"|(?:not|n't)\s{_TAKING}[^.]{{0,60}}{_SEEING}|unsupported[^.]{{0,40}}{_SEEING}",
    re.IGNORECASE,
)
_MOST_IMAGES = re.compile(
    r"""(?:at\ most|maximum(?:\ of)?|up\ to|no\ more\ than|limit(?:\ of|\ is)?|max(?:imum)?)
        \D{0,20}(\d{1,4})\s+(?:image|picture)s?
      | (?:image|picture)s?\b.{0,60}?(?:at\ most|maximum|limit|up\ to|exceed)\D{0,30}(\d{1,4})\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_loading(status: int, text: str) -> bool:
    """Whether the server has yet to load the model."""
    return status == 503 and _LOADING.search(text) is not None


def most_images(text: str) -> int | None:
    """How many pictures a request may hold, where a complaint says so."""
    match = _MOST_IMAGES.search(text)
    return int(match.group(1) or match.group(2)) if match else None


def refuses_pictures(status: int, text: str) -> bool:
    """Whether a complaint says that the model cannot see."""
    return status in REFUSALS and _BLIND.search(text) is not None


def refused_feature(status: int, text: str, body: Mapping[str, Any]) -> str | None:
    """The feature that a refusal is about, if it was sent and can be left out.

    ``schema`` stands for the way in which a form was asked for, ``bounds`` for limits within it.
    """
    if status not in REFUSALS:
        return None
    complaint = text.lower()
    forced = "response_format" in body or "tool_choice" in body
    if forced and _BOUNDS.search(text):
        return "bounds"
    if "response_format" in body and any(word in complaint for word in SCHEMA_WORDS):
        return "schema"
    for feature, words in FEATURES.items():
        if feature in body and any(word in complaint for word in words):
            # a tool that only carries the form can be done without
            return "schema" if feature == "tools" and forced else feature
    return None
