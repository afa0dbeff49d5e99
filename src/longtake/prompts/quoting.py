"""Text from a film, quoted so that it cannot pass for anything else.

A film can show any words, including words aimed at the model that watches it. A quotation contains
no character from which a delimiter, a thinking block, a tool call tag or a chat template's turn
marker could be built: angle brackets become ``‹ ›``, bracketed capitals such as ``[INST]`` become
``(INST)``, and invisible characters are dropped. Whatever a person could read stays readable.
"""

from __future__ import annotations

import re
import unicodedata

TAG = "material"

_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})
_TURN_MARKER = re.compile(r"\[(/?[A-Z][A-Z_ ]+)\]")


def defuse(text: str) -> str:
    """The text without anything that could end its quotation or start another turn."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # unseen characters are not printable, and nearly all texts are printable throughout
    if lines.replace("\n", "").replace("\t", "").isprintable():
        seen = lines
    else:
        seen = "".join(char for char in lines if char in "\n\t" or not _unseen(char))
    return _TURN_MARKER.sub(r"(\1)", seen.translate(_ANGLES))


def quote(text: str, name: str) -> str:
    """The text as quoted material; ``name`` says what it is."""
    label = re.sub(r"[^A-Za-z0-9_ -]", "", name)
    return f'<{TAG} name="{label}">\n{defuse(text).strip()}\n</{TAG}>'


def _unseen(char: str) -> bool:
    """Whether a character is a control, format or private-use one, a surrogate or a line break."""
    if char in "\u200c\u200d":  # joiners are part of how Persian, Hindi and emoji are spelt
        return False
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
