"""Who said something."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtake._util.timecode import clock
from longtake.algorithms import lexical
from longtake.algorithms.speakers import by_speaker, speaker, speakers
from longtake.footage.protocol import Footage
from longtake.retrieval.citing import not_found
from longtake.retrieval.passages import Passage, is_aside, lines_of, utterances
from longtake.retrieval.question_kinds import asks_who_asked, asks_who_said
from longtake.retrieval.ranking import RELEVANT
from longtake.tracing.events import note
from longtake.types import Answer, Evidence, Line, Question

_SPELLED = re.compile(r"(?<![A-Za-z])([A-Z])_")  # "L_C_D_", as AMI writes it


MIN_LEAD, MIN_LEAD_OVERLAPPED, OVERLAP_SHARE = 0.05, 0.08, 0.3
"""How far the closest line must lead those of other speakers for its speaker to be named; the
second value applies if somebody else talks during more than the third, a share of the line. Chosen
by ``benchmarks/meeting_words.py`` on the meetings of the teams ES."""


UNRELATED = 0.4
"""Similarity up to which two words count as unrelated, chosen on the same meetings."""


def of_named_speaker(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages of the speaker whom the question names; all passages if it names none."""
    spoken = [each for each in passages if each.source == "speech"]
    for name in speakers(lines_of(spoken)):
        verb = r"(?:\w+ )?(?:says?|said|mention|talk|tell|told|speak|spoke)"
        if re.search(rf"\b{re.escape(name)} {verb}", question, re.IGNORECASE):
            return [each for each in spoken if speaker(each.text)[0] == name]
    return list(passages)


def who(footage: Footage, question: Question, lines: Sequence[Line]) -> Answer:
    """Who says something: the speaker of the closest line, or unknown if others are as close."""
    about = asks_who_said(question)
    said: list[tuple[str, Line]] = []
    for name, own in by_speaker(lines).items():
        # both sentences and whole lines: a sentence may say little without the rest of its line
        said += [(name, line) for line in (*utterances(own), *own) if not is_aside(line)]
    if not said:
        return not_found(footage, question)
    texts = [_SPELLED.sub(r"\1", line.text) for _, line in said]
    # "I asked what it costs" is closer to the line than "what it costs" alone
    in_person = f"I {question.text.strip().partition(' ')[2].rstrip(' ?')}."
    rows = footage.meanings([about, in_person, *texts])
    asked = rows[0] + rows[1]
    closeness = rows[2:] @ (asked / np.linalg.norm(asked))
    best: dict[str, tuple[float, Line]] = {}
    scores = closeness + 0.75 * shared_words(footage, about, texts)
    for (name, line), score in zip(said, scores.tolist(), strict=True):
        # who asked something is not who said it
        if asks_who_asked(question) != line.text.endswith("?"):
            score -= 0.1
        if name not in best or score > best[name][0]:
            best[name] = (score, line)
    order = sorted(best, key=lambda name: -best[name][0])
    if best[order[0]][0] < RELEVANT:
        return not_found(footage, question)
    name, (score, line) = order[0], best[order[0]]
    lead = score - (best[order[1]][0] if len(order) > 1 else 0.0)
    note("who_said", name=name, lead=round(lead, 4))
    found = f'"{line.text}" at {clock(line.segment.start)}'
    others = [each for each in lines if speaker(each.text)[0] != name]
    together = max((each.segment.overlap(line.segment) for each in others), default=0.0)
    is_crowded = together > OVERLAP_SHARE * line.segment.duration
    if not name or lead < (MIN_LEAD_OVERLAPPED if is_crowded else MIN_LEAD):
        reason = f"it is unknown who said it; the closest line is {found}"
        return Answer(reason=reason, status="abstained")
    evidence = Evidence(line.segment, "speech", f"{name}: {line.text}", round(score, 4))
    return Answer(text=f"{name}: {found}", evidence=(evidence,))


def shared_words(footage: Footage, about: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """The share of the words of ``about`` that each text holds, weighted by their rarity in all.

    A word that is similar to one of the text counts in part.
    """
    keywords = sorted(lexical.lemmas([about]))
    held_by = [lexical.lemmas([text]) for text in texts]
    times = Counter(word for words in held_by for word in words)
    column = {word: number for number, word in enumerate(sorted(times))}
    weights = np.array([math.log((len(texts) + 1) / (times[word] + 0.5)) for word in keywords])
    rows = footage.meanings([*keywords, *column])
    # any two words are somewhat similar
    alike = (rows[: len(keywords)] @ rows[len(keywords) :].T - UNRELATED) / (1 - UNRELATED)
    shares = [alike[:, [column[w] for w in words]].max(axis=1, initial=0.0) for words in held_by]
    return np.asarray(np.array(shares) @ weights / (weights.sum() or 1.0), np.float64)
