"""Option letters in the forms in which models write them.

``B``, ``(B)``, ``**B**``, ``B.``, ``Option B``, ``Answer: B.``, ``The correct answer is (B)``, the letter
with the option's text, and that text alone are all B. ``A or B`` is no answer, and neither is a sentence that
begins with the article "A".
"""

from __future__ import annotations

import re
import unicodedata

from longtake.types import Question

_WRAPPING = " \t\n*_`\"'“”‘’[](){}<>.:,;!$\\"
_STATEMENT = re.compile(
    r"""\b(?:(?:final|correct|best|right|my)\s+)*(?:answer|choice|option)\b
        \s*(?:would\s+be|should\s+be|must\s+be|is|are|was)?\s*[:=\-–—]*\s*
        (?:option|choice|letter)?\s*[\[("'*_`{$\\]*(?:(?:boxed|text)\s*\{)*\s*
        ([A-Za-z])(?![A-Za-z'’])""",
    re.IGNORECASE | re.VERBOSE,
)
_LEADING = re.compile(
    r"^[\s\[(\"'*_`]*([A-Za-z])[\])\"'*_`]*\s*(?:[.):\-–—,]|\n|$)\s*[*_`]*(.*)$", re.DOTALL
)


def read_letter(text: str, question: Question) -> str | None:
    """The letter a text states, or ``None`` where it states none or more than one."""
    letters = question.letters
    bare = text.strip(_WRAPPING)
    if len(bare) == 1 and bare.upper() in letters:
        return bare.upper()
    if named := _option_named(text, question):
        return named
    stated = {match.upper() for match in _statements(text)}
    if len(stated) == 1:
        letter = stated.pop()
        return letter if letter in letters and not _rivals(text, letter, letters) else None
    if stated:
        return None
    if match := _LEADING.match(text.strip()):
        letter, rest = match.group(1).upper(), match.group(2)
        if letter in letters and match.group(1).isupper():
            return _confirmed(letter, rest, question)
    return None


def plain(text: str) -> str:
    """A text for comparison: case, accents' encoding, punctuation and spacing apart."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[^\w\s]|_", " ", folded).split())


def _option_named(text: str, question: Question) -> str | None:
    """The letter of the only option whose text this is."""
    wanted = plain(text)
    hits = [
        letter
        for letter, option in zip(question.letters, question.options, strict=True)
        if wanted and plain(option) == wanted
    ]
    return hits[0] if len(hits) == 1 else None


def _statements(text: str) -> list[str]:
    """Letters in "the answer is B"; a lower-case one counts only where nothing but its end follows."""
    found = []
    for match in _STATEMENT.finditer(text):
        letter, rest = match.group(1), text[match.end() : match.end() + 3].strip(" *_`\"'")
        # "the answer is a man": an article is followed by a word, a letter is not
        if rest[:1].isalnum() and not (letter.isupper() and letter not in "AI"):
            continue
        found.append(letter)
    return found


def _rivals(text: str, letter: str, letters: str) -> bool:
    """Whether a text also holds another letter as an alternative: "B or C", "B/C", "(B) and (C)"."""
    others = "".join(other for other in letters if other != letter)
    if not others:
        return False
    one = rf"[\[(\"'*_`]*(?:option\s+)?[\[(\"'*_`]*[{others}][\])\"'*_`]*(?![\w'’])"
    own = rf"[\[(\"'*_`]*(?:option\s+)?[\[(\"'*_`]*{letter}[\])\"'*_`]*"
    joined = (
        r"\s*(?:\bor\b|\band\b|/|,|&|\+|\bversus\b|\bvs\b|\|)\s*(?:maybe|perhaps|possibly|also)?\s*"
    )
    return bool(
        re.search(rf"(?<!\w){own}{joined}{one}", text)
        or re.search(rf"(?<!\w){one}{joined}{own}(?!\w)", text)
    )


def _confirmed(letter: str, rest: str, question: Question) -> str | None:
    """The letter that begins a text, unless what follows speaks for another option."""
    own = plain(question.options[question.letters.index(letter)])
    said = plain(rest)
    if not said or said == own:
        return letter
    if _option_named(rest, question) is not None:
        return None
    others = "".join(other for other in question.letters if other != letter)
    # a bare capital further on may be another choice; "A" and "I" are words unless they are bracketed
    capitals = "".join(other for other in others if other not in "AI")
    bare = rf"|(?<![\w'’])[{capitals}](?![\w'’])" if capitals else ""
    if others and re.search(rf"\([{others}]\)|\boption\s+[{others}]\b{bare}", rest):
        return None
    if re.match(r"(?:or|and|/|but|maybe|perhaps)\b", said) or _rivals(
        f"{letter} {rest}", letter, question.letters
    ):
        return None
    return letter
