"""The context length that a server reports."""

from __future__ import annotations

from typing import Any

from longtake.models.http import Endpoint

KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""What servers call the context length in their list of models."""


def reported_context(endpoint: Endpoint, model: str) -> int | None:
    """The context length of a model, if its server tells one."""
    listed = endpoint.get("models")
    entries = listed.get("data") if isinstance(listed, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model:
            for key in KEYS:
                if size := _positive(entry.get(key)):
                    return size
    # llama.cpp reports it elsewhere
    props = endpoint.get("../props")
    defaults = props.get("default_generation_settings") if isinstance(props, dict) else None
    return _positive(defaults.get("n_ctx")) if isinstance(defaults, dict) else None


def _positive(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return int(value) if is_count else None
