"""Whether lines answer a question: read by the reranker, with the names that the question gives.

::

    1  the film speaks of a question if the reranker's score of a line, or of two or three
       consecutive ones, reaches a threshold
    2  a line supports an answer if the line's score for the answer and the best score for the
       question together reach another one
    3  the names in a question must be mentioned where the answer is: in the cited lines, by their
       speaker, or earlier in the film with nobody else introduced since
    4  a line that repeats the question, as an instruction to the reader does, decides nothing if
       another line answers

The reranker was trained on English questions as people type them into a search box. Without one, or
for a question in another language, the film is taken to speak of everything that was found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical, passages
from longtake.algorithms.speakers import speaker
from longtake.footage.protocol import Footage
from longtake.retrieval.evidence import contradicts, names, numbers
from longtake.types import Evidence, Line, Question, Segment

THRESHOLDS: Mapping[str, float] = {"question": 0.0, "account": 0.0, "support": 0.0}
"""Used with a reranker for which none were measured: even odds."""
WINDOW = 3
"""Consecutive lines that are read together, at most."""
READ = 16
"""Lines that share words with a question and are read for other answers."""
CONFLICTING = 2.0
"""How far a line may score below the cited one and still answer the same question."""
SCENE = 30.0
"""Seconds around a line within which a mention of a name counts for it."""
CLOSE = 0.7
"""Similarity from which a word of the film stands for a misspelt one."""
_CARD = re.compile(r"(?:[A-Z][\w'’.-]+ ){1,2}[A-Z][\w'’-]+")


class Reader:
    """The footage's reranker with a question."""

    def __init__(self, footage: Footage, question: Question) -> None:
        self.question = question
        self._reranker = footage.reranker if reads(question.text) else None
        self._queries = [f"{question.text} {option}" for option in question.options]

    def __bool__(self) -> bool:
        return self._reranker is not None

    def threshold(self, name: str) -> float:
        """A threshold of the reranker: ``question``, ``account`` or ``support``."""
        known = self._reranker.thresholds if self._reranker else {}
        return known.get(name, THRESHOLDS[name])

    def relevance(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """How well each text answers the question; with options, the one that it fits best."""
        return self._scores([self.question.text, *self._queries], texts)

    def support(self, answer: str, texts: Sequence[str], relevance: float) -> NDArray[np.float32]:
        """How far each text supports an answer; from 0 on it may be cited.

        ``relevance``: the best one of the texts that the answer is from.
        """
        return self._scores([answer], texts) + relevance - self.threshold("support")

    def _scores(self, queries: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        if self._reranker is None or not texts:
            return np.full(len(texts), np.inf, np.float32)
        rows = [self._reranker.scores(query, texts) for query in queries]
        return np.asarray(np.max(rows, axis=0), np.float32)


def reads(question: str) -> bool:
    """Whether the reranker understands a question: it knows English."""
    return lexical.language_of(question) in ("English", "")


def missing_names(question: str, evidence: Sequence[Evidence], footage: Footage) -> list[str]:
    """The names and larger numbers of a question that are not mentioned where it is answered."""
    speech, onscreen = footage.known_lines()
    lines = [*speech, *onscreen]
    here = " ".join(each.text for each in evidence)
    missing = []
    first = question.split()[0]
    for value in names(question.replace("'s ", " ").replace("’s ", " ")):
        # the first word has a capital in any case
        name = value.text.removeprefix(first).strip()
        if not name or mentions(here, name):
            continue
        places = [line.segment for line in lines if mentions(line.text, name)]
        if not any(_is_introduced(places, each.segment, onscreen) for each in evidence):
            missing.append(name)
    numerals = re.findall(r"\b\d{2,}\b", question)
    return missing + [number for number in numerals if number not in here]


def _is_introduced(places: Sequence[Segment], at: Segment, onscreen: Sequence[Line]) -> bool:
    """Whether a name is mentioned near a moment, or before it with no other name card since."""
    if any(place.start <= at.end + SCENE and place.end >= at.start - SCENE for place in places):
        return True
    before = [place.end for place in places if place.end <= at.start]
    if not before:
        return False
    cards = [line for line in onscreen if max(before) < line.segment.start < at.start]
    return not any(_CARD.fullmatch(line.text.strip()) for line in cards)


def mentions(text: str, name: str) -> bool:
    """Whether a text contains a name, or its rarest part, allowing for recognition errors."""
    if passages.match(name, text) >= passages.SURE:
        return True
    rarest = max(name.split(), key=lambda part: (lexical.idf(part.lower()), len(part)))
    return passages.match(rarest, text) >= passages.SURE


def repeats(text: str, question: str) -> bool:
    """Whether a line contains the question itself, as one does that wants to be its answer."""
    return passages.match(question, speaker(text)[1]) >= passages.SURE


def conflicting(
    question: Question, answer: str, cited: Sequence[Evidence], footage: Footage
) -> list[Evidence]:
    """The lines that answer the question with another value than the cited ones do.

    They are as relevant as those, up to :data:`CONFLICTING`, and give a number or a name where the
    answer has another one, or repeat the question before something else.
    """
    reader = Reader(footage, question)
    if not reader or not cited:
        return []
    speech, onscreen = footage.known_lines()
    lines = [Evidence(line.segment, "speech", line.text) for line in speech]
    lines += [Evidence(line.segment, "onscreen", line.text) for line in onscreen]
    shared = passages.by_words([question.text], [each.text for each in lines])[0]
    order = np.argsort(-shared, kind="stable")[:READ].tolist()
    about = [lines[place] for place in order if shared[place] > 0]
    scores = reader.relevance([each.text for each in about])
    best = float(reader.relevance([each.text for each in cited]).max())
    if best < reader.threshold("question"):
        return []
    least = max(best - CONFLICTING, reader.threshold("question"))
    stated = " ".join([answer, *(each.text for each in cited)])
    found = []
    for each, score in zip(about, scores.tolist(), strict=True):
        if score >= least and (
            differs(stated, each.text, question.text)
            or contradicts(cited[0].text, each.text, question.text)
        ):
            found.append(each)
    return found


def differs(answer: str, text: str, question: str) -> bool:
    """Whether a text has a number or a name where the answer has another one."""
    for values in (numbers, names):
        asked = {value.text for value in values(question)}
        mine = [value for value in values(answer) if value.text not in asked]
        theirs = [value for value in values(text) if value.text not in asked]
        if mine and theirs:
            agree = [
                value
                for value in mine
                if mentions(text, value.text) or any(value.forms & other.forms for other in theirs)
            ]
            if not agree:
                return True
    new = lexical.lemmas([answer]) - lexical.lemmas([question])
    return repeats(text, question) and not new & lexical.lemmas([text])


def corrected(question: str, texts: Sequence[str]) -> str:
    """A question whose unknown words are replaced by similar ones of the film."""
    vocabulary = sorted({word for text in texts for word in lexical.content_words(text)})

    def word(match: re.Match[str]) -> str:
        typed = match[0]
        if lexical.is_known(typed.lower()) or typed.lower() in vocabulary:
            return typed
        close = difflib.get_close_matches(typed.lower(), vocabulary, n=1, cutoff=CLOSE)
        return close[0] if close else typed

    return re.sub(r"[^\W\d_]{4,}", word, question)
