"""Short texts that code puts into prompts, kept in one Markdown file per owner.

``symphony/phrases.md`` holds the phrases of Symphony, each under a heading with its name::

    ## look_first
    Not yet: …

Like any prompt file it can be overridden, and its phrases may have ``$slots``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

NAME = "phrases"
"""File name of an owner's phrases, without the suffix."""
_HEADING = re.compile(r"^## (\w+)[ \t]*$", re.MULTILINE)


@lru_cache(maxsize=64)
def split(text: str) -> Mapping[str, str]:
    """The phrases of a file by name; text above the first heading is a comment."""
    _, *parts = _HEADING.split(text)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
