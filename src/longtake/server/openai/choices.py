"""Recognises multiple-choice questions in the prompts that harnesses write.

::

    Select the best answer to the following question …    instruction, left out
    What is on the table?                                 the question
    A. a cup                                              options: "A.", "(A)", "A)", "1.", "-",
    B. a hat                                              (A) … (B) … on one line, or one a line
    The best answer is:                                   after "Options:"

Only lines that are known instructions are left out; whatever else surrounds the options stays part
of the question. What is not recognised is asked as it stands, open-ended.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

MOST = len(string.ascii_uppercase)
_LETTER = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])\s?[.):])\s*(\S.*?)\s*$")
_NUMBER = re.compile(r"\s*(?:\((\d{1,2})\)|(\d{1,2})[.)])\s+(\S.*?)\s*$")
_BULLET = re.compile(r"\s*[-*•]\s+(\S.*?)\s*$")
_HEADER = re.compile(r"\s*(?:possible |answer )?(?:options?|choices|candidates)\s*:\s*$", re.I)
_INLINE = re.compile(r"\(([A-Z])\)\s*")
_QUESTION = re.compile(r"^\s*question\s*:\s*", re.I)
_SUBTITLES = re.compile(
    r"this video's subtitles are listed below\s*:\s*(.*?)(?=^select the best answer|\Z)",
    re.I | re.S | re.M,
)
_INSTRUCTION = re.compile(
    r"""(?:these\ are\ the\ frames\ of\ a\ video
    |(?:please\ )?select\ the\ (?:best|correct)\ (?:answer|option)
    |(?:please\ )?(?:respond|answer|reply)\ with\ (?:only\ |just\ )?(?:the\ |a\ |an\ )?
        (?:option'?s?\b|letter|single|one)
    |(?:please\ )?(?:directly\ )?(?:give|choose|provide|output|pick)\ (?:only\ )?
        (?:the\ )?(?:best|correct|right|letter)
    |only\ give\ the\ best\ option
    |(?:carefully\ )?watch\ (?:this|the)\ video
    |based\ on\ your\ observations,?\ select
    |the\ (?:best|correct|final)?\ ?answer\ is\s*:?\s*$
    |(?:best\ option|your\ (?:answer|choice)|answer|best\ answer)\s*:\s*\(?\s*$
    |answer\ the\ question\ (?:with|using|by)
    |you\ are\ an?\ (?:helpful|expert)\b[^\n]{0,80}assistant
    |(?:you\ (?:should|must)\ )?(?:do\ not|don't)\ (?:give|output|include|explain)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a sentence begins that says in which form to answer."""
_SENTENCE = re.compile(r"(?<=[.!])\s+(?=[A-Z])")


@dataclass(frozen=True)
class ParsedQuestion:
    """A question as it was understood."""

    text: str
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """What the client calls the options; empty if they have no names, or there are none."""
    material: str = ""
    """Subtitles that the prompt brought along."""

    @property
    def form(self) -> str:
        """``multiple choice`` or ``open-ended``."""
        return "multiple choice" if self.options else "open-ended"

    def said(self, choice: str | None, text: str) -> str:
        """The answer as the client asked for it: the option's name, else its words."""
        if choice is None or not self.options:
            return text
        number = string.ascii_uppercase.index(choice)
        return self.labels[number] if self.labels else self.options[number]


def read_question(prompt: str) -> ParsedQuestion:
    """The question, and its options if the prompt has any."""
    material = ""
    brought = _SUBTITLES.search(prompt)
    if brought:
        material = brought[1].strip()
        prompt = prompt[: brought.start()] + prompt[brought.end() :]
    lines = prompt.splitlines()
    block = _labelled(lines) or _headed(lines) or _inline(lines)
    if block is None:
        return ParsedQuestion(without_instructions(prompt), material=material)
    before, after = lines[: block.start], lines[block.end :]
    if before and _HEADER.match(before[-1]):
        before = before[:-1]
    text = without_instructions("\n".join([*before, *block.rest, *after]))
    # options alone are no question
    if not text:
        return ParsedQuestion(prompt.strip(), material=material)
    return ParsedQuestion(text, tuple(block.options), tuple(block.labels), material)


def without_instructions(text: str) -> str:
    """The text without the sentences that only say in which form to answer."""
    kept = []
    for line in text.splitlines():
        sentences = [s for s in _SENTENCE.split(line) if not _INSTRUCTION.match(s.strip())]
        if sentences or not line.strip():
            kept.append(" ".join(sentences))
    joined = _QUESTION.sub("", "\n".join(kept).strip())
    return re.sub(r"\n{3,}", "\n\n", joined).strip()


@dataclass(frozen=True)
class _Block:
    """Lines that are options."""

    start: int
    end: int
    options: Sequence[str]
    labels: Sequence[str]
    rest: Sequence[str] = ()
    """What else stood in these lines."""


def _labelled(lines: Sequence[str]) -> _Block | None:
    """The last run of lines with consecutive letters or numbers, blank lines aside."""
    best = None
    for start in range(len(lines)):
        for pattern, names in ((_LETTER, string.ascii_uppercase), (_NUMBER, range(1, MOST + 1))):
            block = _run(lines, start, pattern, [str(name) for name in names])
            # a run inside a longer one would begin with another name than the first
            if block is not None:
                best = block
    return best


def _run(
    lines: Sequence[str], start: int, pattern: re.Pattern[str], names: Sequence[str]
) -> _Block | None:
    options: list[str] = []
    end = start
    for number in range(start, len(lines)):
        line = lines[number]
        if not line.strip() and options:
            continue
        match = pattern.match(line)
        if match is None or len(options) == len(names):
            break
        if (match[1] or match[2]) != names[len(options)]:
            break
        options.append(match[3])
        end = number + 1
    if len(options) < 2:
        return None
    return _Block(start, end, options, names[: len(options)])


def _headed(lines: Sequence[str]) -> _Block | None:
    """Options without names, one a line, after a line such as ``Options:``."""
    for start, line in enumerate(lines):
        if not _HEADER.match(line):
            continue
        options = []
        end = start + 1
        for end in range(start + 1, len(lines) + 1):
            if end == len(lines) or not lines[end].strip() or _INSTRUCTION.match(lines[end]):
                break
            bullet = _BULLET.match(lines[end])
            options.append(bullet[1] if bullet else lines[end].strip())
        if 2 <= len(options) <= MOST:
            return _Block(start, end, options, ())
    return None


def _inline(lines: Sequence[str]) -> _Block | None:
    """``(A) a cup (B) a hat`` on one line, perhaps after the question."""
    for number, line in enumerate(lines):
        marks = list(_INLINE.finditer(line))
        letters = "".join(mark[1] for mark in marks)
        if len(marks) < 2 or not string.ascii_uppercase.startswith(letters):
            continue
        ends = [mark.start() for mark in marks[1:]] + [len(line)]
        spans = zip(marks, ends, strict=True)
        options = [line[mark.end() : end].strip().rstrip(",;") for mark, end in spans]
        before = line[: marks[0].start()].strip()
        # "does he take (A) or (B)?" has no options
        if all(re.search(r"\w", each) for each in options) and (not before or before[-1] in "?.:!"):
            return _Block(number, number + 1, options, letters, [before])
    return None
