"""Option letters in the forms in which models write them.

``B``, ``(B)``, ``**B**``, ``B.``, ``Option B``, ``Answer: B.``, ``The correct answer is (B)``,
``\\boxed{B}``, the letter with the option's text, and that text alone are all B. ``A or B`` is no
answer, and neither is a sentence that begins with the article "A".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from longtake.types import Question

_LOST = "\ufffc"
"""Stands for the last word of a text that was cut off."""
_WRAPPING = " \t\r\n*_`\"'“”‘’[](){}<>.:,;!$\\"
_OPEN = r"""[\s\[("'“‘*_`{$<\\]{0,12}"""

_STATEMENT = re.compile(
    rf"""(?:\b(?:answer|(?:final|correct|best|right|my)\s(?:choice|option|letter))\b
            [*_`"']{{0,3}}\s{{0,3}}
            (?:would\s+be|should\s+be|must\s+be|has\s+to\s+be|is|was)?\s{{0,3}}[:=\-–—]{{0,2}}
         |\bI(?:['’]d|\s+would|\s+will)?\s+(?:choose|pick|select|go\s+with)\b:?
         |^[\s*_`#>"'(-]{{0,8}}(?:option|choice)\b[*_`"']{{0,3}}\s{{0,3}}[:=]{{0,1}}
        ){_OPEN}(?:(?:option|choice|letter)\b{_OPEN})?([A-Za-z])(?![A-Za-z'’])""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""The letter after words that announce an answer."""
_BOXED = re.compile(
    r"\\boxed\s{0,3}\{\s{0,3}(?:\\text\w{0,4}\s?\{\s{0,3})?\(?([A-Za-z])\)?[\s}]{0,4}\}"
)
_NAMED = re.compile(
    r"\b(?:answer|choice)\b[*_`]{0,3}\s{0,3}(?:is\b|:)[:\s*_`\"'“]{0,8}(\S.{0,300}?)(?:[.!]?[\s*_`\"'”]{0,8}(?:\n|$))",
    re.IGNORECASE,
)
"""Words to the end of the line after "the answer is"."""
_LEADING = re.compile(
    r"[\s\[(\"'“*_`]{0,12}([A-Z])[\])\"'”*_`]{0,6}\s{0,3}(?:[.):\-–—,]|\n|$)\s*[*_`]{0,3}(.*)",
    re.DOTALL,
)
_DENIED = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bwrong|\bincorrect|\bfalse|\bleast\s+likely|\bunlikely|\bif|\bunless"
    r"|\bwhether|\bsuppose|\bassum\w+|\bsay|\bclaim\w*|\breads?)\s+(?:that\s+)?(?:the\s+|an?\s+)?$",
    re.IGNORECASE,
)
"""Words before a statement that turn it round, or make it somebody else's."""
_DOUBTED = re.compile(
    rf"""[\])"'”*_`}}$.]{{0,6}}\s{{0,3}}(?:\?|/|&|\+|\||{_LOST}|(?:or|nor|and|vs|versus)\b
        |,\s*(?:or|and|[A-Z]\b)
        |(?:(?:is|was|seems?|looks?)\s+(?!(?:the\s+|clearly\s+)?(?:correct|right|best))[\w{_LOST}]
           |is\s*n['’]t|can(?:not)?\b|could\b|would\b|might\b|may\b|does\b|has\b|shows?\b))""",
    re.IGNORECASE | re.VERBOSE,
)
"""What follows a letter that is not, after all, the answer."""


class _Stated(NamedTuple):
    letter: str
    start: int
    end: int


def read_letter(text: str, question: Question, *, cut: bool = False) -> str | None:
    """The letter a text states, or ``None`` where it states none or more than one.

    ``cut`` says that the text has lost its end: its last word may have been another one.
    """
    # conclusions are at the end
    whole = unicodedata.normalize("NFKC", text[-20_000:]).strip()
    if cut:
        whole = re.sub(r"\w*$", _LOST, whole)
    # all of them: a reply that announces two letters is no answer
    stated = list(_statements(whole, question))
    alone = _line_letter(whole, question)
    if alone is not None:
        return alone if all(one.letter == alone for one in stated) else None
    if stated:
        return None if _options_announce(whole, question) else _agreed(whole, stated, question)
    if announces(whole):  # an announcement that names no single option
        return None
    leading = None if cut else _leading(whole, question)
    return leading if leading is not None else _last_line(whole, question)


def stated_letters(text: str, question: Question) -> set[str]:
    """Every letter that a text announces as the answer, also where they contradict one another."""
    return {one.letter for one in _statements(unicodedata.normalize("NFKC", text), question)}


def announces(text: str) -> bool:
    """Whether a text has words that announce a letter, be it one of the options or not."""
    return any(not _article(text, match) for match in _STATEMENT.finditer(text))


def normalized_text(text: str) -> str:
    """A text for comparison: case, accents' encoding, punctuation and spacing apart."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[^\w\s]|_", " ", folded).split())


def _article(text: str, match: re.Match[str]) -> bool:
    """Whether what looks like a letter is the article in "the answer is a man"."""
    letter = match.group(1)
    rest = text[match.end() : match.end() + 3]
    # a letter that is an answer is not followed by a plain word, except a capital that is no word
    spaced = rest[:1].isspace() and rest.strip(" *_`\"'")[:1].isalnum()
    return spaced and (letter.islower() or letter in "AI")


def _options_announce(text: str, question: Question) -> bool:
    """Whether the text repeats an option such as "option C", whose words look like a statement."""
    words = normalized_text(text)
    announcing = [option for option in question.options if _STATEMENT.search(option)]
    return any(normalized_text(option) in words for option in announcing)


def _option_named(text: str, question: Question) -> str | None:
    """The letter of the only option whose text this is."""
    # the lost word may have made it another option
    if _LOST in text:
        return None
    wanted = normalized_text(text)
    letters = [
        letter
        for letter, option in zip(question.letters, question.options, strict=True)
        if wanted and normalized_text(option) == wanted
    ]
    # two options of one text cannot be told apart by it
    return letters[0] if len(letters) == 1 else None


def _statements(text: str, question: Question) -> Iterator[_Stated]:
    """Letters that are announced: "the answer is B", "\\boxed{B}", "Answer: the dog"."""
    for match in _STATEMENT.finditer(text):
        if not _article(text, match):
            yield _Stated(match.group(1).upper(), match.start(), match.end())
    for match in _BOXED.finditer(text):
        yield _Stated(match.group(1).upper(), match.start(), match.end())
    for match in _NAMED.finditer(text):
        letter = _option_named(match.group(1), question)
        if letter is not None:
            yield _Stated(letter, match.start(), match.end())


def _agreed(text: str, stated: list[_Stated], question: Question) -> str | None:
    """The one letter that all statements name, unless the text takes it back."""
    letter = stated[0].letter
    if letter not in question.letters or any(one.letter != letter for one in stated):
        return None
    for one in stated:
        if _DENIED.search(text[max(0, one.start - 40) : one.start]):
            return None
        if _DOUBTED.match(text, one.end):
            return None
    # only what comes after the last statement can take it back
    rest = text[max(one.end for one in stated) :]
    return None if _supports_another(rest, letter, question) else letter


def _supports_another(rest: str, letter: str, question: Question) -> bool:
    """Whether what follows a letter names another option, by its letter or by its text."""
    for match in re.finditer(r"(?<![\w'’])([A-Z])(?![\w'’])", rest):
        other = match.group(1)
        if other == letter or other not in question.letters:
            continue
        # "A" and "I" are words unless they stand in brackets or after "option"
        before, after = rest[max(0, match.start() - 20) : match.start()], rest[match.end() :][:2]
        marked = re.search(r"(?:[(\[*\"']|option\s)$", before, re.IGNORECASE)
        if other in "AI" and not marked and after[:1].isspace() and after[1:2].islower():
            continue
        return True
    words = f" {normalized_text(rest)} "
    chosen = normalized_text(question.options[question.letters.index(letter)])
    return any(
        f" {other} " in words
        for other in map(normalized_text, question.options)
        if other and other != chosen and f" {other} " not in f" {chosen} "
    )


def _leading(text: str, question: Question) -> str | None:
    """The letter that begins a text, unless what follows supports another option."""
    # a reply that leads with a letter and then explains it
    match = _LEADING.match(text)
    if match is None or match.group(1) not in question.letters:
        return None
    letter, rest = match.groups()
    words = normalized_text(rest)
    if not words or rest[:1] in "/&|":
        return None
    if re.match(r"(?:or|and|but|maybe|perhaps|no|wait|not)\b", words):
        return None
    return None if _supports_another(rest, letter, question) else letter


def _last_line(text: str, question: Question) -> str | None:
    """The option that the last line alone names, if no other line does so."""
    lines = [line for line in text.splitlines() if line.strip(_WRAPPING)]
    named = [letter for line in lines if (letter := _line_letter(line, question))]
    return _line_letter(lines[-1], question) if len(named) == 1 else None


def _line_letter(line: str, question: Question) -> str | None:
    """The letter of a line that is a letter, an option's text, or both."""
    if _LOST in line:
        return None
    named = _option_named(line, question)
    bare = line.strip(_WRAPPING).upper()
    if len(bare) == 1 and bare in question.letters:
        # an option may be the letter of another one
        return bare if named in (None, bare) else None
    if named is not None:
        return named
    for letter, option in zip(question.letters, question.options, strict=True):
        if normalized_text(line) == normalized_text(f"{letter} {option}"):
            return letter
    return None
