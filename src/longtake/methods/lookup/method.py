"""Lookup: search what a film says and shows before looking at pictures. Ours, from no paper.

::

    1  stretch ← the part of the film that the question names, else the whole film
    2  queries ← the question and its options
    3  passages ← everything said, shown and described in the stretch, except lines that instruct
       their reader what to answer
    4  rank the passages by meaning and by the words they share with a query
    5  read the best ones with the question (``retrieval/relevance.py``); if none answers it, or the
       names that it gives are not mentioned there: abstain without calling a model
    6  answer from the best passages and their neighbours in one short prompt, the best one last
    7  if the reply says that the passages do not tell: abstain
    8  cite the passages that the reranker finds to support the answer; if there is none, or the
       answer has words of its own: abstain

An open question that asks for more than a fact (why, what did they think of, summarize) gets an
account of what is said::

    A  stretch ← where the talk is about the question
    B  write a few sentences from what is said there, given the sentences closest to the question
    C  drop each sentence that adds nothing or whose words were not said; if none is left, abstain
    D  search again with question and account: the stretch found is the context of the answer, and
       the sentences that support it are cited

Other kinds of questions have a shorter path:

- what the film is about: the sentences of its overview (``agents/overview``);
- words that are named (every time, how often, when, first, last): every occurrence is cited,
  without a model;
- what is said at a time: the lines there;
- when something is said in other words: the most relevant passage;
- every moment of a kind, without named words: a model reads everything, part by part, the most
  promising part first, and marks the passages.

Lookup looks at no pictures, so it costs one short prompt and suits small text models. Questions
about what is visible but neither said nor written are left to methods that look. A chosen option
that no passage holds is left to the check that follows every method.

The model is not asked how sure it is, nor offered "the passages do not tell": a small model chooses
that even where they plainly do, and its verdicts change with the wording. The words of the passages
decide. There is no confidence, except the odds of the chosen letter where a calibration needs them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from longtake.agents.answer import (
    Choice,
    Guess,
    in_own_words,
    length,
    letter_odds,
    option,
    supported,
)
from longtake.agents.overview import QUOTED, excerpts, held_by, make_overview
from longtake.agents.run import Run
from longtake.algorithms.speakers import speakers
from longtake.errors import ModelError, check_least
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ALL, ask
from longtake.methods.base import SMALL
from longtake.retrieval.citing import (
    NOT_FOUND,
    adds_nothing,
    evidential,
    is_from,
    not_found,
    passages_stating,
    supporting,
)
from longtake.retrieval.occurrences import (
    _span,
    _start,
    all_occurrences,
    asks_at,
    at_time,
    coverage,
    moment,
    tally,
)
from longtake.retrieval.passages import (
    Passage,
    cite,
    excerpt,
    fitting,
    in_parts,
    lines_of,
    numbered,
    read,
    spoken_at,
    timed,
    utterances,
)
from longtake.retrieval.question_kinds import (
    asks_for,
    asks_for_moments,
    asks_for_words,
    asks_who_said,
    in_full,
)
from longtake.retrieval.ranking import (
    asked_for,
    beside,
    choose,
    closest,
    may_tell,
    queries_of,
    relevance_of,
    relevance_with_type,
    reread,
)
from longtake.retrieval.relevance import Reader, corrected, missing_names
from longtake.retrieval.scope import scope
from longtake.retrieval.stretches import Talk
from longtake.retrieval.who_said import of_named_speaker, who
from longtake.tracing.events import PASSAGES_FOUND, note, step
from longtake.types import Answer, Evidence, Line, Question, Segment

LONG_TALK = 600.0
"""Seconds from which on a talk is long."""

_NOT_TOLD = re.compile(r"\bnot\s+(?:told|mentioned|stated|specified|given|said)\b", re.IGNORECASE)


class Moments(BaseModel):
    """Which lines are moments that are asked for."""

    lines: list[int] = Field([], description="the numbers of these lines; none: []")


@dataclass(frozen=True)
class Lookup:
    """Answers from what is said and written in the film, or abstains."""

    name: ClassVar[str] = "lookup"
    paper: ClassVar[str] = "none: ours"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # chosen on one half of real captions and held on the other; over what is said, four are
        # better: see docs/auto.md
        SMALL: {"passages_for_options": 2}
    }
    checks_itself: ClassVar[bool] = True
    """The passages it cites hold the words of the answer (8)."""
    needs_index: ClassVar[bool] = True

    max_passages: int = 4
    """Passages found, without their neighbours."""
    passages_for_options: int | None = None
    """The same for questions with options about captions; unset: ``max_passages``."""
    neighbours: int = 1
    """Passages on either side of a found one."""
    max_words: int = 250
    """Words in the prompt for an answer without options."""
    max_passages_read: int = 2000
    """Passages whose meaning is compared; if there are more, those that share most words."""
    max_citations: int = 3
    """Passages cited for an answer, at most."""

    def __post_init__(self) -> None:
        check_least(self, self.name, neighbours=0)

    def most_passages(self, question: Question, *, captions: bool) -> int:
        """The largest number of passages found for a question."""
        if captions and question.options and self.passages_for_options is not None:
            return self.passages_for_options
        return self.max_passages

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Search, then answer from what was found."""
        question = replace(question, text=in_full(question.text))
        time = asks_at(question)
        if time is not None:
            return at_time(read(footage, None), time, footage)
        stretch = scope(question.text, footage.duration)  # 1
        passages = read(footage, stretch)  # 3
        text = corrected(question.text, [each.text for each in passages])
        question = replace(question, text=text)
        phrase = asks_for_words(question)
        if phrase:
            asked_of = of_named_speaker(question.text, passages)
            answer = all_occurrences(question, phrase, asked_of, footage, stretch)
            if answer.status == "answered" or asks_for(question) != "when":
                return answer
        passages = evidential(passages, question.text)
        # a small model takes minutes for a film of three minutes
        if asks_for_moments(question) and not run["llm"].card.small:
            return self.moments(footage, question, passages, stretch, run)
        spoken = [line for each in passages if each.source == "speech" for line in each.lines]
        if passages and stretch is None and not question.options and asks_for(question) == "about":
            return self.outline(footage, question, run)
        if asks_who_said(question) and speakers(spoken):
            return who(footage, question, spoken)
        if spoken and not question.options and wants_account(question, spoken):
            answer = self.tell(footage, question, spoken, run)
            # the answer may be written on screen
            if answer.status == "answered" or len(spoken) == len(passages):
                return answer
        with step("search"):
            queries = queries_of(footage, question)  # 2
            found = self.search(footage, question, queries, passages)  # 4
        note_found(passages, found, stretch)
        if not found or not may_tell(question, [passage.text for passage in found]):  # 5
            return not_found(footage, question, found)
        best = max(found, key=lambda passage: passage.relevance)
        missing = missing_names(question.text, [cite(best, 0.0)], footage)
        if missing and not question.options:
            return not_found(footage, question, found, missing=missing)
        if phrase:
            return moment(found)
        with step("answer"):
            return self.conclude(footage, question, found, run)

    def search(
        self,
        footage: Footage,
        question: Question,
        queries: Sequence[str],
        passages: Sequence[Passage],
    ) -> list[Passage]:
        """The passages that are relevant to the queries, with neighbours, in time order."""
        if not passages:
            return []
        captions = any(each.source == "caption" for each in passages)
        kind, max_passages = asked_for(question), self.most_passages(question, captions=captions)
        scores = relevance_of(footage, queries, passages, self.max_passages_read)
        promising = relevance_with_type(scores, passages, kind)
        reader = None if captions else Reader(footage, question)
        if reader:
            strongest, relevance = reread(reader, passages, promising)
            if relevance < reader.threshold("question"):
                return []
            # a passage that answers may be worded otherwise
            order = np.argsort(-promising, kind="stable")[:max_passages].tolist()
            numbers = beside(list(dict.fromkeys([*order, strongest])), passages, self.neighbours)
        else:
            numbers = choose(scores, passages, max_passages, self.neighbours, kind)
        found = []
        for number in numbers:
            passage = excerpt(footage, queries[0], passages[number])
            found.append(replace(passage, relevance=float(promising[number])))
        if question.options or not found:
            return found
        best, *others = sorted(found, key=lambda passage: -passage.relevance)
        # the best one is read however long it is
        kept = [best, *fitting(others, self.max_words - len(best.text.split()))]
        return sorted(kept, key=lambda passage: passage.segment)

    def conclude(
        self, footage: Footage, question: Question, found: Sequence[Passage], run: Run
    ) -> Answer:
        """The answer from the passages, or an abstention."""
        proposed = self.propose(footage, question, found, run)  # 6
        choice, text = proposed.choice, proposed.text
        if choice is None and (not text or _NOT_TOLD.search(text)):
            return not_found(footage, question, found)  # 7
        stated = text or option(question, choice)
        holders = supporting(Reader(footage, question), stated, question, found)  # 8
        read_now = " ".join(each.text for each in found)
        if not question.options and not (holders and is_from(text, question.text, read_now)):
            note("not_held", answer=text)
            return not_found(footage, question, found)
        if text and adds_nothing(text, question.text):
            # the line itself may say more
            text = (passages_stating(text, question.text, found) or holders)[0][0].text
            if adds_nothing(text, question.text):
                return not_found(footage, question, found)
        if text and not may_tell(question, [text]):
            note("not_what_was_asked", answer=text)
            return not_found(footage, question, found)
        evidence = [cite(passage, share) for passage, share in holders[: self.max_citations]]
        return replace(proposed, text=text).as_answer(evidence=evidence)

    def propose(
        self, footage: Footage, question: Question, found: Sequence[Passage], run: Run
    ) -> Guess:
        """The letter of an option, or an answer in words; neither if no reply can be read."""
        # a small model reads best what stands right above the question
        passages = sorted(found, key=lambda passage: passage.relevance)
        slots: dict[str, Any] = {"question": question}
        if question.options:
            slots |= {"length": length(footage), "passages": numbered(passages)}
            chosen = ask(run["llm"], "lookup/choose", Choice, default=Choice(), **slots)
            # small models prefer some letters: their replies are right more often than their odds
            return Guess(chosen.choice, odds=self.odds(chosen.choice, slots, run))
        # plain words and short times: forms and numbers would only cost a small model tokens
        slots["passages"] = [timed(each) for each in passages]
        reply = ask(run["llm"], "lookup/answer", default="", max_tokens=100, draft=ALL, **slots)
        return Guess(text=in_own_words(reply))

    def odds(self, choice: str | None, slots: Mapping[str, Any], run: Run) -> Mapping[str, float]:
        """The odds of the letters, if a calibration needs them and the endpoint reports them."""
        if choice is None or not (run.odds and run["llm"].card.letters):
            return {}
        # the answer is known, so neither a spent budget nor a failing call may lose it
        run.propose(Answer(choice))
        try:
            return letter_odds(run["llm"], "lookup/choose", **slots)
        except ModelError as error:
            note("no_odds", why=str(error))
            return {}

    def moments(
        self,
        footage: Footage,
        question: Question,
        passages: Sequence[Passage],
        stretch: Segment | None,
        run: Run,
    ) -> Answer:
        """The passages that a model marks as such moments, as far as the budget goes."""
        if not passages:
            return not_found(footage, question)
        parts = in_parts(passages, self.max_words)
        with step("search"):
            scores = relevance_of(footage, [question.text], passages, self.max_passages_read)
            best = dict(zip(passages, scores.tolist(), strict=True))
            parts.sort(key=lambda part: -max(best[passage] for passage in part))
        answer = not_found(footage, question)
        found: list[Evidence] = []
        parts_read = 0
        for part in parts:
            with step("answer"):
                slots: dict[str, Any] = {"question": question, "passages": numbered(part)}
                reply = ask(run["llm"], "lookup/moments", Moments, default=None, **slots)
            if reply is None:
                continue  # an unreadable reply does not mean that there is none
            chosen = {part[line - 1] for line in reply.lines if 0 < line <= len(part)}
            found = sorted([*found, *(cite(each, 1.0) for each in chosen)], key=_start)
            parts_read += 1
            read_now = "read by a model"
            if parts_read < len(parts):
                read_now = f"compared, {parts_read} of {len(parts)} parts {read_now}"
            covered = coverage(footage, stretch, read_now)
            answer = Answer(reason=f"{NOT_FOUND} {covered}", status="abstained")
            if found:
                counts = Counter(each.source for each in found)
                answer = tally(question, found, counts, covered)
            run.propose(answer)  # if the budget ends before the next part is read
        return answer

    def outline(self, footage: Footage, question: Question, run: Run) -> Answer:
        """What the film is about, from its overview; quoted if no model can be read."""
        with step("search"):
            overview = make_overview(footage)
        sentences = list(overview.summary)
        if overview.by == QUOTED and sentences:
            lines = excerpts(footage, overview.chapters, self.max_words)
            cited_lines = [line.evidence for line in lines]
            note_found(cited_lines, cited_lines)
            text = self.account(question, [line.text for line in lines], run)
            sentences = list(held_by(lines, text, question.text).values())
        cards = [chapter.sentences[0] for chapter in overview.chapters if chapter.on_card]
        text = " ".join(each.text for each in sentences if each not in cards)
        if cards:
            text = f"{text} Its parts: {'; '.join(card.text for card in cards)}.".strip()
            sentences += cards
        elif not sentences:
            sentences = list(overview.summary)
            text = " … ".join(f"“{each.text}”" for each in sentences)
        if not sentences:
            return not_found(footage, question)
        return Answer(text=text, evidence=tuple(dict.fromkeys(each.evidence for each in sentences)))

    def tell(self, footage: Footage, question: Question, lines: Sequence[Line], run: Run) -> Answer:
        """An account of what is said about the question."""
        with step("search"):
            talk = Talk(lines, footage.duration, footage.meanings)
            stretch = talk.find(question.text)  # A
            own = of_named_speaker(question.text, [Passage("speech", (line,)) for line in lines])
            spoken = utterances(lines_of(own))
            shown = closest(footage, question, spoken, stretch, self.max_words)
        note_found(lines, shown)
        missing = missing_names(question.text, [spoken_at(line) for line in shown], footage)
        if not shown or missing:
            return not_found(footage, question, (), missing=missing)
        text = self.account(question, [line.text for line in shown], run)  # B
        kept = supported(text, question.text, shown)  # C
        if not kept:
            note("not_held", answer=text)
            return not_found(footage, question)
        account = " ".join(kept)
        stretch = talk.find(question.text, [account])  # D
        # the last bin may end after the film
        stretch = Segment(stretch.start, min(stretch.end, footage.duration))
        evidence = tuple(spoken_at(line) for line in dict.fromkeys(kept.values()))
        return Answer(text=account, evidence=evidence, context=stretch)

    def account(self, question: Question, passages: Sequence[str], run: Run) -> str:
        """A model's account of the passages."""
        with step("answer"):
            return ask(
                run["llm"],
                "lookup/tell",
                default="",
                max_tokens=200,
                draft=ALL,
                question=question,
                passages=list(passages),
            )


def note_found(
    searched: Sequence[object],
    found: Sequence[Passage | Line | Evidence],
    stretch: Segment | None = None,
) -> None:
    """Note which passages a model is about to read."""
    passages = [
        {"start": each.segment.start, "end": each.segment.end, "text": each.text} for each in found
    ]
    note(PASSAGES_FOUND, lines=len(searched), stretch=_span(stretch), passages=passages)


def wants_account(question: Question, spoken: Sequence[Line]) -> bool:
    """Whether an open question needs more than one line.

    In a long talk, a single line may tell who or how many, but seldom what something is like.
    """
    if question.kind == "fact":
        return False
    is_long = spoken[-1].segment.end - spoken[0].segment.start >= LONG_TALK
    kind = asks_for(question)
    if kind == "fact":
        return is_long and asked_for(question) is None
    return kind in ("about", "account", "list")
