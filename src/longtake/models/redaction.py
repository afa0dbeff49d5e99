"""Keeps a key out of everything that is written."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "[key]"
"""What replaces a key that a server echoes."""


def without_key(text: str, key: str) -> str:
    """Text without the key, whatever its case: host names are lower-cased."""
    return re.sub(re.escape(key), HIDDEN, text, flags=re.IGNORECASE) if key else text


def redacted(data: Any, key: str) -> Any:
    """Decoded JSON without the key, in texts and in names."""
    if not key:
        return data
    if isinstance(data, str):
        return without_key(data, key)
    if isinstance(data, list):
        return [redacted(each, key) for each in data]
    if isinstance(data, dict):
        return {redacted(name, key): redacted(each, key) for name, each in data.items()}
    return data
