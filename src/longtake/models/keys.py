"""Which API key belongs to which host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from longtake.entries import ModelEntry, OpenAIEntry
from longtake.models.http import check_url

KEYS: Mapping[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "api.together.xyz": "TOGETHER_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""The environment variable of each vendor's key; the key is sent to that host only."""


def bound_key(base_url: str, entries: Iterable[ModelEntry]) -> str:
    """The variable that holds this server's key; empty if no key is bound to it.

    The user's own entries come before the built-in table.
    """
    url = check_url(base_url, base_url, keyed=False)
    for entry in entries:
        if isinstance(entry, OpenAIEntry) and entry.api_key_env and entry.base_url:
            own = check_url(entry.base_url, entry.base_url, keyed=False)
            if (own.scheme, own.host, own.port) == (url.scheme, url.host, url.port):
                return entry.api_key_env
    # on another port, or without encryption, it is not the vendor's own server
    is_vendor = url.scheme == "https" and url.port in (None, 443)
    return KEYS.get(url.host, "") if is_vendor else ""
