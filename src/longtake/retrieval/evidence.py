"""Rules for lines as evidence: whether a line contradicts an answer or another line, and whether it
is an instruction to the reader instead of evidence.

Two texts that make the same statement contradict each other if one has another number or name in
the same place, or negates what the other asserts. The rules are for English, and prefer to miss a
contradiction: paraphrases, number words and parts of names do not contradict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from longtake.algorithms import lexical, passages
from longtake.algorithms.lexical import NUMBERS, SCALES
from longtake.retrieval.question_kinds import answer_type, negated

SAME = 0.6
"""A text makes the same statement if it contains this share of its words, weighted by rarity."""
ASKED = 0.8
"""The same for the words of a question, or of a statement that is negated."""
HELD = 0.6
"""A text may be cited for an answer if it contains this share of its words, weighted by rarity."""

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[.,!?;:]")
_ENDS = frozenset(".!?;")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
# these agree with a number, but mostly mean something else: "the second one", "no idea"
_LOOSE = {word: value for value, word in enumerate(_ORDINALS.split(), start=1)}
_LOOSE |= {"once": 1, "twice": 2, "both": 2, "couple": 2, "pair": 2, "dozen": 12, "no": 0}
_AND_A_HALF = ["and", "a", "half"]
_IS = frozenset(["is", "are", "was", "were", "be", "it's", "that's", "equals", "costs", ":"])
_NAMING = frozenset(["is", "by", "from", "called", "named"])
_SKIPPED = frozenset(["a", "an", "the", "now", "about", "only", "just", "mr", "mrs", "ms", "dr"])
"""Words between a value and the word that marks its place: "is now the 4471"."""
_NEGATIONS = frozenset(["not", "never", "nobody", "nothing", "none", "neither", "nor", "cannot"])
_NEGATIONS |= {"without", "hardly"}
# such a negation asserts something: "not until Monday", "not only"
_QUALIFIED = re.compile(r"\bnot (?:only|just|merely)\b|\b(?:until|unless|except|than)\b", re.I)
# "the number of the platform" is a name, "the number of people" a count
_COUNTED = re.compile(r"\b(?:how (?:many|often)|number of (?!the\b)|count)\b", re.I)
# "No bridges are open" does not answer with "no"
_YES_OR_NO = re.compile(r"\W*(yes|no)(?:\s*[,.!][\s,.!]*|\s*$)", re.I)

# words about the task of answering, which the world of a film does not contain
_ANSWERER = (
    r"(?:assistant|chatbot|AI|LLM|language model|(?i:system)\s*:"
    r"|(?i:whoever) (?:reads|answers|watches|describes|summari[sz]es))"
)
_TASK = (
    r"(?i:questions?|options?|answers?|choices?|instructions?|prompts?|passages?"
    r"|lines? (?:above|below)|the words?)"
)
_LETTER = r"\(?\b[A-H]\b\)?(?=\s*(?:$|[.,;:!?]|and\b|or\b))"
_ORDER = (
    r"(?i:answer|reply|respond|choose|pick|select|cite|ignore|disregard|forget|print|output|repeat"
    r"|write|say|state|return|tell)"
)
# an order begins a clause, or follows a word that makes it one
_OPENING = r"(?:^|[.!?:;,]\s*|\b(?i:and|then|please|must|should|shall|not|never|don't|to)\s+)"
_INSTRUCTION = re.compile(
    rf"{_OPENING}{_ORDER}\b[^.!?]{{0,30}}?(?:\b{_TASK}\b|{_LETTER}|\b\d\d:\d\d\b)"
    rf"|\b{_ANSWERER}.*\b(?:{_ORDER}|(?i:must|you|your))\b"
    rf"|\b(?i:answer|option|choice|reply|letter)(?: is|:)? {_LETTER}"
)
_ABOUT_TASK = re.compile(rf"\b(?:{_TASK}|{_ANSWERER})\b")


class Value(NamedTuple):
    """A number or a name, and the words beside it, which mark its place in a statement."""

    text: str
    before: str
    after: str
    forms: frozenset[str] = frozenset()
    """Of a number: all ways to write it in digits."""


def held(answer: str, wanted: frozenset[str], text: str) -> float:
    """The share of the wanted base forms that a text contains; 1 if it contains the whole answer.

    It is 0 if a number of the answer is missing, since another digit is another fact.
    """
    tokens = [token.lower() for token in _TOKEN.findall(answer)]
    runs = [tokens[start:end] for start, end in _number_runs(tokens)]
    known = _agreeing(text)
    # "75" is held by "seventy five", and "12.5" by "twelve fifty"
    for run in runs:
        has_digits = any(word[0].isdigit() for word in run)
        if has_digits and not all({value, _priced(value)} & known for value in _values(run)):
            return 0.0
    if passages.match(answer, text) >= passages.SURE:
        return 1.0
    return _share(wanted, text, re.findall(r"\d+", answer)) if wanted else 0.0


def contradicts(answer: str, cited: str, question: str = "") -> str | None:
    """The reason why a cited text contradicts an answer; ``None`` if no rule applies.

    The question gives a short answer its context. Counts are not compared: a film may show three
    events at three moments.
    """
    if negated(question):
        return None  # the right option is the one that the film does not state
    polar = _YES_OR_NO.match(answer)
    claim = answer[polar.end() :] if polar else answer
    if polar and not claim:
        statement = question.rstrip(" ?")
        return _denial(statement, cited, denies=polar[1].lower() == "no")
    stated = lexical.lemmas(value.text for value in names(claim))
    about = frozenset(
        word for word in lexical.lemmas([claim]) - stated if not _is_number(word)
    ) or lexical.lemmas([question])
    counted, named = _COUNTED.search(question), answer_type(question) == "name"
    for part in _close_sentences(cited):
        if _share(about, part) >= SAME:
            pair = None if counted else _other_number(claim, part, cited)
            pair = pair or _other_name(claim, part, cited, named=named)
            if pair is not None:
                return f"the answer says {pair[0]}, the cited line {pair[1]}"
    return _denial(claim, cited, denies=False)


def is_instruction(text: str, question: str = "") -> bool:
    """Whether a line instructs its reader how to answer, so that it cannot be evidence.

    It gives an order about the question, its options or the answer, or addresses the answerer. Such
    a line may be evidence for a question that is about these things itself.
    """
    return not _ABOUT_TASK.search(question) and _INSTRUCTION.search(text) is not None


def numbers(text: str) -> list[Value]:
    """The numbers that a text states, in digits; "one" alone is mostly a pronoun."""
    tokens = _TOKEN.findall(text)
    return [value for run in _number_runs(tokens) for value in _run_values(tokens, run)]


def _run_values(tokens: Sequence[str], run: tuple[int, int]) -> list[Value]:
    start, end = run
    words = [token.lower() for token in tokens[start:end]]
    if words == ["one"]:
        return []
    before, after = _beside(tokens, start, end)
    return [Value(value, before, after, _forms(words)) for value in _values(words)]


def names(text: str) -> list[Value]:
    """The capitalised names in a text; the first word of a sentence only if it is rare."""
    tokens = _TOKEN.findall(text)
    words = [token for token in tokens if token[0].isalpha()]
    capitals = [word for word in words if word[0].isupper()]
    is_bare = len(words) == len(capitals) <= 3
    if not is_bare and 2 * len(capitals) > len(words) + 1:
        return []  # in a title or a line in capitals, capitals do not mark names
    values: list[Value] = []
    start = 0
    while start < len(tokens):
        end = start
        while end < len(tokens) and _has_capital(tokens[end]):
            end += 1
        opens = start == 0 or tokens[start - 1] in _ENDS
        rare = lexical.idf(tokens[start].lower()) >= 1.2  # as for names in question_kinds
        if end > start and (is_bare or not opens or rare or end - start > 1):
            before, after = _beside(tokens, start, end)
            values.append(Value(" ".join(tokens[start:end]), before, after))
        start = max(end, start + 1)
    return values


def _other_number(claim: str, part: str, text: str) -> tuple[str, str] | None:
    """A number that the text lacks, and the one that a part of it has in the same place."""
    known, claimed = _agreeing(text), _agreeing(claim)
    missing = [value for value in numbers(claim) if not value.forms & known]
    others = [value for value in numbers(part) if not value.forms & claimed]
    for one in missing:
        for other in others:
            alone = not one.before and not one.after
            if alone or _same_place(one, other):
                return one.text, other.text
    return None


def _other_name(claim: str, part: str, text: str, *, named: bool = False) -> tuple[str, str] | None:
    """A name that the text lacks, and the one that a part of it has in the same place.

    ``named``: the question asks for a name, so a claim may consist of a name alone.
    """
    missing = [value for value in names(claim) if not _mentions(text, value.text)]
    others = [value for value in names(part) if not _mentions(claim, value.text)]
    for one in missing:
        alone = not one.before and not one.after
        for other in others:
            fits = named and other.before in _NAMING if alone else _same_place(one, other)
            if fits:
                return one.text, other.text
    return None


def _denial(claim: str, text: str, *, denies: bool) -> str | None:
    """The reason why the text denies what the claim asserts, or with ``denies``, asserts it.

    Every short sentence that makes the statement must contradict the claim.
    """
    words = lexical.lemmas([claim])
    about = []
    for sentence in _sentences(text):
        in_sentence = lexical.lemmas([sentence])
        if words and len(in_sentence) <= 2 * len(words) + 2 and _share(words, sentence) >= ASKED:
            about.append(sentence)
    opposed = [_opposed(words, claim, sentence) for sentence in about]
    if denies:
        opposed = [None if word else min(words) for word in opposed]
    if not opposed or None in opposed:
        return None
    return f'the cited line says the opposite about "{opposed[0]}"'


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?;])\s+", text.strip())


def _close_sentences(text: str) -> list[str]:
    """All pairs of consecutive sentences: "The code? It is 4471." """
    sentences = _sentences(text)
    return [f"{one} {other}" for one, other in pairwise(sentences)] or sentences


def _same_place(one: Value, other: Value) -> bool:
    """Whether the same word follows both, or none does and the same one precedes them."""
    if one.after or other.after:
        return one.after == other.after
    return bool(one.before) and one.before == other.before


def _beside(tokens: Sequence[str], start: int, end: int) -> tuple[str, str]:
    """The word before a value, and the content word right after it; empty where there is none."""
    before = ""
    for token in reversed(tokens[:start]):
        word = token.lower().replace("’", "'")
        if word in _ENDS or word == ",":
            break
        if word not in _SKIPPED:
            before = "is" if word in _IS else lexical.lemma(word)
            break
    after = tokens[end].lower() if end < len(tokens) else ""
    is_content = after[:1].isalpha() and after not in lexical.STOP
    return before, lexical.lemma(after) if is_content else ""


def _number_runs(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Where number words and digits follow one another: "two hundred and five" is one run."""
    runs: list[tuple[int, int]] = []
    start = 0
    while start < len(tokens):
        end = start
        # "half a million"
        if tokens[start : start + 2] == ["half", "a"] and SCALES.keys() & tokens[start + 2 :][:1]:
            end += 2
        while end < len(tokens) and _is_number(tokens[end]):
            end += 1
            if tokens[end : end + 3] == _AND_A_HALF:
                end += 3
            elif tokens[end : end + 1] == ["and"] and _is_number((tokens[end + 1 :] or [""])[0]):
                end += tokens[end - 1].lower() in SCALES
        if end > start:
            runs.append((start, end))
        start = max(end, start + 1)
    return runs


def _is_number(token: str) -> bool:
    word = token.lower()
    return token[:1].isdigit() or word in NUMBERS or word in SCALES


def _values(words: Sequence[str]) -> list[str]:
    """The numbers of a run, in digits."""
    digits = [word for word in words if word[0].isdigit()]
    spelt = [word for word in words if not word[0].isdigit() and word not in ("and", "a")]
    if not spelt:
        return [part for word in digits for part in _parts(word)]
    if not digits and len(spelt) > 1 and all(NUMBERS.get(word, 99) < 10 for word in spelt):
        return ["".join(str(NUMBERS[word]) for word in spelt)]  # "four four seven one"
    total, current = 0.0, 0.0
    for word in words:
        if word in SCALES:
            scale = SCALES[word]
            current = (current or 1) * scale
            if scale > 100:
                total, current = total + current, 0.0
        elif word == "half":
            current += 0.5
        elif word not in ("and", "a"):
            value = float(NUMBERS[word]) if word in NUMBERS else float(_parts(word)[0])
            # "nineteen eighty-four"
            current = 100 * current + value if value >= 10 <= current < 100 else current + value
    return [f"{total + current:.15g}"]


def _parts(word: str) -> list[str]:
    """A number in digits without separators; the parts of a time of day or a range."""
    plain = re.sub(r",(?=\d{3}\b)", "", word)
    return [part.lstrip("0") or "0" for part in re.split("[:,]", plain)]


def _agreeing(text: str) -> frozenset[str]:
    """All numbers that a text contains, in any notation."""
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    known = {str(_LOOSE[token]) for token in tokens if token in _LOOSE}
    for start, end in _number_runs(tokens):
        known |= _forms(tokens[start:end])
    return frozenset(known)


def _forms(run: Sequence[str]) -> frozenset[str]:
    """The numbers that a run may mean: "twelve fifty" is 1250, 12.5, or 12 and 50."""
    known = set(_values(run))
    known |= {str(NUMBERS[word]) for word in run if word in NUMBERS}
    parts = [part for word in run if word[0].isdigit() for part in _parts(word)]
    known.update(["".join(parts), *parts])
    for value in list(known):
        known |= {value.partition(".")[0], _priced(value)}
    return frozenset(known - {""})


def _priced(value: str) -> str:
    """A number as a price without its point: 12.5 is 1250, which "twelve fifty" is read as."""
    whole, _, decimals = value.partition(".")
    return f"{whole}{decimals:0<2}" if decimals else value


def _has_capital(token: str) -> bool:
    return len(token) > 1 and token[0].isupper() and token.lower() not in lexical.STOP


def _mentions(text: str, name: str) -> bool:
    """Whether a text contains any part of a name, allowing for recognition errors."""
    parts = name.split()
    return any(part in text or passages.match(part, text) >= passages.SURE for part in parts)


def _share(words: frozenset[str], text: str, held_too: Sequence[str] = ()) -> float:
    """The share of base forms, weighted by rarity, that a text contains; 1 if there are none."""
    total = sum(map(lexical.idf, sorted(words)))
    shared = sum(map(lexical.idf, sorted(words & lexical.lemmas([text]).union(held_too))))
    return shared / total if total else 1.0


def _opposed(words: frozenset[str], one: str, other: str) -> str | None:
    """A word that one text only asserts and the other only negates."""
    (asserted, denied), (also_asserted, also_denied) = _signs(one), _signs(other)
    opposed = (asserted - denied) & (also_denied - also_asserted)
    opposed |= (denied - asserted) & (also_asserted - also_denied)
    return min(opposed & words, default=None)


def _signs(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The base forms that a text asserts, and those that it negates; questions do neither."""
    asserted: set[str] = set()
    denied: set[str] = set()
    for sentence in _sentences(text):
        if sentence.endswith("?") or _QUALIFIED.search(sentence):
            continue
        left = 0  # words within which a negation still waits for what it negates
        tokens = [token.lower().replace("’", "'") for token in _TOKEN.findall(sentence)]
        for place, token in enumerate(tokens):
            follower = tokens[place + 1] if place + 1 < len(tokens) else ""
            is_content = token[0].isalnum() and token not in lexical.STOP
            if token in _NEGATIONS or token.endswith("n't"):
                left = 4  # "not a very good idea"
            elif token == "no" and follower.isalpha() and follower not in lexical.STOP:
                left = 1  # before other words it is an interjection
            elif is_content:
                (denied if left else asserted).add(lexical.lemma(token))
                left = 0
            else:
                left = max(0, left - 1)
    return frozenset(asserted), frozenset(denied)
