"""Text that can be written down."""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD.

    JSON can spell half of a surrogate pair (``"\\ud83d"``), which no encoding can write: a single
    one in a reply would keep an answer from being printed, traced or stored.
    """
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
