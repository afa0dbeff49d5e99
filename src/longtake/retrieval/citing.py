"""What an answer cites: the passages that support it, or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from longtake._util.timecode import SHORT_CLOCK
from longtake.algorithms import lexical
from longtake.footage.protocol import Footage
from longtake.retrieval.evidence import HELD, contradicts, held, is_instruction
from longtake.retrieval.passages import Passage, cite
from longtake.retrieval.question_kinds import is_question, may_be_visible
from longtake.retrieval.relevance import Reader, repeats
from longtake.types import Answer, Question

NOT_FOUND = "not found in what can be heard or read"


NO_QUESTION = "only questions about what this film says and shows are answered"


LOOK = "the pictures may tell: ask a method that looks, with a model that sees"


_TIME = re.compile(rf"\b{SHORT_CLOCK}\b")
_YES_OR_NO = frozenset({"yes", "no"})


SIMILAR = 3.0
"""How far the support of a passage may lie below the best one for it to be cited too."""


NEAREST = 3
"""Passages that are shown instead of an answer."""


def not_found(
    footage: Footage,
    question: Question,
    found: Sequence[Passage] = (),
    *,
    missing: Sequence[str] = (),
) -> Answer:
    """An abstention with the passages that came closest.

    Its reason names what is not mentioned, and the pictures if these may show what is asked for.
    """
    if not question.options and not is_question(question.text):
        return Answer(reason=NO_QUESTION, status="abstained")
    reason = NOT_FOUND
    if missing:
        reason += f": {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not mentioned"
        reason += " where the film speaks of the rest"
    elif "pictures" in footage.has and may_be_visible(question):
        reason += f"; {LOOK}"
    best = sorted(found, key=lambda passage: -passage.relevance)[:NEAREST]
    nearest = tuple(cite(passage, passage.relevance) for passage in best)
    return Answer(reason=reason, status="abstained", nearest=nearest)


def passages_stating(
    answer: str, question: str, passages: Sequence[Passage]
) -> list[tuple[Passage, float]]:
    """The passages that hold the words of an answer, with the share they hold, best first.

    Words of the question, "yes" and "no" count only if the answer has no others. If no single
    passage holds the answer, two consecutive ones may: speech is cut in mid-sentence. Only passages
    that hold about as much of the question as the best one are kept: many things have a price.
    """
    in_question, in_answer = lexical.lemmas([question]), lexical.lemmas([answer]) - _YES_OR_NO
    wanted = in_answer - in_question or in_answer
    for candidates in (passages, pairs_of(passages)):
        shares = [(each, held(answer, wanted, each.text)) for each in candidates]
        enough = [each for each in shares if each[1] >= HELD]
        if enough:
            strength = [held("", in_question | in_answer, passage.text) for passage, _ in enough]
            order = sorted(range(len(enough)), key=lambda place: -strength[place])
            # a passage that holds clearly less than the best is about something else
            bar = 0.9 * max(strength)
            return [enough[place] for place in order if strength[place] >= bar]
    return []


def is_from(answer: str, question: str, text: str) -> bool:
    """Whether the words and numbers that an answer adds to the question are those of a text.

    Times are not: a passage is shown with its own.
    """
    timeless = _TIME.sub("", answer)
    added = lexical.lemmas([timeless]) - lexical.lemmas([question]) - _YES_OR_NO
    return not added or held(timeless, added, text) >= HELD


def supporting(
    reader: Reader, answer: str, question: Question, found: Sequence[Passage]
) -> list[tuple[Passage, float]]:
    """The passages that support an answer, or two consecutive ones together, best first.

    One that states another value is cited only if no other supports the answer.
    """
    if not reader or any(passage.source == "caption" for passage in found):
        return passages_stating(answer, question.text, found)
    pairs = pairs_of(found)
    relevance = float(reader.relevance([each.text for each in (*found, *pairs)]).max())
    for candidates in (found, pairs):
        scores = reader.support(answer, [each.text for each in candidates], relevance)
        best = max(scores.max(initial=-np.inf) - SIMILAR, 0.0)
        kept = [each for each in zip(candidates, scores.tolist(), strict=True) if each[1] >= best]
        agreeing = [each for each in kept if not contradicts(answer, each[0].text, question.text)]
        if kept:
            kept = agreeing or kept
            kept.sort(key=lambda scored: (repeats(scored[0].text, question.text), -scored[1]))
            return kept
    return []


def pairs_of(passages: Sequence[Passage]) -> list[Passage]:
    """Consecutive passages of speech together, since speech is cut in mid-sentence."""
    return [
        Passage(one.source, (*one.lines, *other.lines))
        for one, other in pairwise(passages)
        if one.source == other.source == "speech"
    ]


def evidential(passages: Sequence[Passage], question: str) -> list[Passage]:
    """The passages without instructions, and if others are left, without repeated questions."""
    told = [each for each in passages if not is_instruction(each.text, question)]
    return [each for each in told if not repeats(each.text, question)] or told


def adds_nothing(answer: str, question: str) -> bool:
    """Whether an answer only repeats the question, with or without a yes or no."""
    return not lexical.lemmas([answer]) - lexical.lemmas([question]) - _YES_OR_NO
