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
    8  cite the passages that hold the words of the answer and that question and answer together are
       about; if none is, abstain

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

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake._util.timecode import clock, parse_time
from longtake.agents.answer import (
    Choice,
    Guess,
    in_own_words,
    length,
    letter_odds,
    option,
    supported,
)
from longtake.agents.overview import (
    QUOTED,
    excerpts,
    fitting,
    held_by,
    is_aside,
    make_overview,
    utterances,
)
from longtake.agents.run import Run
from longtake.algorithms import lexical
from longtake.algorithms import passages as ranking
from longtake.algorithms.evidence import HELD, held, is_instruction
from longtake.algorithms.passages import squeeze
from longtake.algorithms.question_kinds import (
    CERTAIN,
    AnswerType,
    answer_type,
    asks_for,
    asks_for_moments,
    asks_for_words,
    asks_who_asked,
    asks_who_said,
    holds,
    may_be_visible,
)
from longtake.algorithms.scope import scope
from longtake.algorithms.speakers import by_speaker, speaker, speakers
from longtake.algorithms.stretches import Talk
from longtake.errors import ModelError, check_least
from longtake.footage.look import likeness
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ALL, ask
from longtake.methods.base import SMALL
from longtake.retrieval.relevance import WINDOW, Reader, corrected, missing_names, repeats
from longtake.tracing.events import PASSAGES_FOUND, note, step
from longtake.types import Answer, Evidence, Line, Question, Segment

NOT_FOUND = "not found in what can be heard or read"
LOOK = "the pictures may tell: ask a method that looks, with a model that sees"
LONG_TALK = 600.0
"""Seconds from which on a talk is long."""
LONG_OPTION = 12
"""Words above which an option is an account of its own."""

PLACES = {
    "speech": "what is said",
    "onscreen": "what is written on screen",
    "caption": "the captions",
}
_ORDER = re.compile(r"\b(?:first|last)\b", re.IGNORECASE)
_NOT_TOLD = re.compile(r"\bnot\s+(?:told|mentioned|stated|specified|given|said)\b", re.IGNORECASE)

_SPELLED = re.compile(r"(?<![A-Za-z])([A-Z])_")  # "L_C_D_", as AMI writes it
_YES_OR_NO = frozenset({"yes", "no"})

SHORT_SCREEN = 5
"""Screens of at most so many lines are shown whole; of longer ones, only new lines are."""


BEARS = 0.35
"""Relevance from which a passage is about a question, measured by
``benchmarks/lookup_thresholds.py`` on the development half of the benchmark ``films``."""

JUST, CLEARLY, CROWDED = 0.05, 0.08, 0.3
"""How far the closest line must lead those of other speakers for its speaker to be named; the
second value applies if somebody else talks during more than the third, a share of the line. Chosen
by ``benchmarks/meeting_words.py`` on the meetings of the teams ES."""

READ = 16
"""Passages that the reader reads, at about 60 ms each on two cores."""
SIMILAR = 3.0
"""How far the support of a passage may lie below the best one for it to be cited too."""
NEAREST = 3
"""Passages that are shown instead of an answer."""

UNRELATED = 0.4
"""Similarity up to which two words count as unrelated, chosen on the same meetings."""

MAY_BEAR = 0.25
"""Relevance from which a further passage is read, once one reaches :data:`BEARS`."""


@dataclass(frozen=True)
class Passage:
    """Consecutive lines from one source: ``speech``, ``onscreen`` or ``caption``."""

    source: str
    lines: tuple[Line, ...]
    bearing: float = 0.0
    """Its relevance to the question."""

    @property
    def segment(self) -> Segment:
        """From the first line to the last."""
        return Segment(self.lines[0].segment.start, max(line.segment.end for line in self.lines))

    @property
    def text(self) -> str:
        """The lines joined; those of a screen by slashes, since they form no sentence."""
        return (" / " if self.source == "onscreen" else " ").join(line.text for line in self.lines)


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
            answer = every(question, phrase, asked_of, footage, stretch)
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
        best = max(found, key=lambda passage: passage.bearing)
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
        scores = bearing(footage, queries, passages, self.max_passages_read)
        promising = promise(scores, passages, kind)
        reader = None if captions else Reader(footage, question)
        if reader:
            promising, relevance = reread(reader, passages, promising)
            if relevance < reader.threshold("question"):
                return []
            order = np.argsort(-promising, kind="stable")[:max_passages].tolist()
            numbers = beside(order, passages, self.neighbours)
            promising[order[0]] = relevance
        else:
            numbers = choose(scores, passages, max_passages, self.neighbours, kind)
        found = []
        for number in numbers:
            passage = excerpt(footage, queries[0], passages[number])
            found.append(replace(passage, bearing=float(promising[number])))
        if question.options or not found:
            return found
        best, *others = sorted(found, key=lambda passage: -passage.bearing)
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
        if not question.options and not holders:
            note("not_held", answer=text)
            return not_found(footage, question, found)
        if text and adds_nothing(text, question.text):
            text = holders[0][0].text  # the line itself may say more
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
        passages = sorted(found, key=lambda passage: passage.bearing)
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
            scores = bearing(footage, [question.text], passages, self.max_passages_read)
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
        text = " ".join(each.text for each in sentences)
        if not sentences:
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


def queries_of(footage: Footage, question: Question) -> list[str]:
    """The queries of the search.

    Long options of a talk are left out: all of them are about the same talk, and with them fewer
    questions of ``meetings`` are answered right.
    """
    about = asks_for_words(question) or question.text
    written = any(len(each.split()) > LONG_OPTION for each in question.options)
    if written and "captions" not in footage.has:
        return [about]
    return [about, *question.options]


def every(
    question: Question,
    phrase: str,
    passages: Sequence[Passage],
    footage: Footage,
    stretch: Segment | None,
) -> Answer:
    """Every occurrence of a phrase, or the first or last one, with what was read for it."""
    found: list[Evidence] = []
    counts: dict[str, int] = {}
    for source, group in groupby(passages, key=lambda passage: passage.source):
        together = list(group)
        # speech continues in the next line; a screen does not
        runs = [together] if source == "speech" else [[passage] for passage in together]
        hits = [hit for run in runs for hit in ranking.occurrences(phrase, lines_of(run))]
        counts[source] = len(hits)
        found += [Evidence(hit.segment, source, hit.text) for hit in hits]
    covered = coverage(footage, stretch, f"read{alike(phrase, passages, found)}")
    note("occurrences", words=phrase, found=counts)
    if not found:
        nowhere = f'"{phrase}" is not in {" or ".join(map(PLACES.__getitem__, counts or PLACES))}'
        return Answer(reason=f"{nowhere} {covered}", status="abstained")
    found.sort(key=_start)
    order = _ORDER.search(question.text)
    if asks_for(question) == "when":
        if order:
            found = found[:1] if order[0].lower() == "first" else found[-1:]
        also = [clock(cited.segment.start) for cited in found[1:]]
        text = f'At {clock(found[0].segment.start)}: "{found[0].text}"'
        text += f"; also at {', '.join(also)}" if also else ""
        return Answer(text=text, evidence=tuple(found))
    return tally(question, found, counts, covered)


def coverage(footage: Footage, stretch: Segment | None, how: str) -> str:
    """What was read for an answer about all occurrences."""
    part = f"all of {clock(footage.duration)}" if stretch is None else _span(stretch)
    unseen = "; pictures not looked at" if "pictures" in footage.has else ""
    return f"({part} {how}){unseen}"


def tally(
    question: Question, found: Sequence[Evidence], counts: Mapping[str, int], covered: str
) -> Answer:
    """How often something occurs and, for a list, when."""
    times = [
        f"{count} {'time' if count == 1 else 'times'} in {PLACES[source]}"
        for source, count in counts.items()
    ]
    text = " and ".join(times)
    if asks_for(question) == "list":
        text += f": {', '.join(clock(cited.segment.start) for cited in found)}"
    return Answer(text=f"{text} {covered}", evidence=tuple(found))


def alike(phrase: str, passages: Sequence[Passage], found: Sequence[Evidence]) -> str:
    """A remark on lines that may hold a phrase of several words, misheard or misread."""
    if len(phrase.split()) < 2:
        return ""
    exact = " ".join(cited.text for cited in found)
    lines = [line for line in lines_of(passages) if line.text not in exact]
    unsure = [line for line in lines if ranking.match(phrase, line.text) >= ranking.SURE]
    quoted = [f'{clock(line.segment.start)} "{line.text}"' for line in unsure]
    return f"; perhaps also {', '.join(quoted)}" if quoted else ""


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
    if best[order[0]][0] < BEARS:
        return not_found(footage, question)
    name, (score, line) = order[0], best[order[0]]
    lead = score - (best[order[1]][0] if len(order) > 1 else 0.0)
    note("who_said", name=name, lead=round(lead, 4))
    found = f'"{line.text}" at {clock(line.segment.start)}'
    others = [each for each in lines if speaker(each.text)[0] != name]
    together = max((each.segment.overlap(line.segment) for each in others), default=0.0)
    is_crowded = together > CROWDED * line.segment.duration
    if not name or lead < (CLEARLY if is_crowded else JUST):
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


def lines_of(passages: Sequence[Passage]) -> list[Line]:
    """The lines of passages in the order of time."""
    return sorted((line for each in passages for line in each.lines), key=lambda line: line.segment)


def moment(found: Sequence[Passage]) -> Answer:
    """When the most relevant passage is said or shown."""
    best = max(found, key=lambda passage: passage.bearing)
    text = f'At {clock(best.segment.start)}: "{best.text}"'
    return Answer(text=text, evidence=(cite(best, best.bearing),))


def closest(
    footage: Footage, question: Question, spoken: Sequence[Line], stretch: Segment, max_words: int
) -> list[Line]:
    """The lines of the stretch that are closest to the question, in time order.

    None if no line is relevant.
    """
    inside = [line for line in spoken if line.segment.middle in stretch and not is_aside(line)]
    if not inside:
        return []
    keywords = lexical.lemmas([question.text])
    meanings = likeness(footage, question.text, [line.text for line in inside])
    scores = dict(zip(inside, meanings.tolist(), strict=True))
    for line in inside:
        shared = keywords & lexical.lemmas([line.text])
        scores[line] += 0.1 * sum(map(lexical.idf, sorted(shared)))
    chosen = fitting(sorted(inside, key=lambda line: -scores[line]), max_words)
    reader = Reader(footage, question)
    if reader:
        read_now = reader.relevance([line.text for line in chosen[:READ]])
        is_relevant = read_now.max(initial=-np.inf) >= reader.threshold("account")
    else:
        is_relevant = max((scores[line] for line in chosen), default=0.0) >= BEARS
    return sorted(chosen, key=lambda line: line.segment) if is_relevant else []


def spoken_at(line: Line) -> Evidence:
    """A spoken line as evidence."""
    return Evidence(line.segment, "speech", line.text)


def in_parts(passages: Sequence[Passage], max_words: int) -> list[list[Passage]]:
    """Passages in groups of at most ``max_words``; a longer passage is a group of its own."""
    parts: list[list[Passage]] = []
    words = max_words
    for passage in passages:
        length = len(passage.text.split())
        if words + length > max_words:
            parts.append([])
            words = 0
        parts[-1].append(passage)
        words += length
    return parts


def numbered(passages: Sequence[Passage]) -> list[str]:
    """Passages as in a prompt: ``2. [00:01:05] onscreen: ALL RIGHTS RESERVED.``"""
    return [
        f"{number}. [{clock(each.segment.start)}] {each.source}: {each.text}"
        for number, each in enumerate(passages, start=1)
    ]


def timed(passage: Passage) -> str:
    """A passage as in the prompt for a short answer: ``1:05 screen: GO TO ROOM 4``."""
    minutes, seconds = divmod(int(passage.segment.start), 60)
    source = "screen" if passage.source == "onscreen" else passage.source
    return f"{minutes}:{seconds:02} {source}: {passage.text}"


def may_tell(question: Question, texts: Sequence[str]) -> bool:
    """Whether a text holds the type of answer asked for; true if the type is uncertain."""
    kind = asked_for(question)
    if kind not in CERTAIN:
        return True
    return any(holds(kind, text) for text in texts)


def asked_for(question: Question) -> AnswerType | None:
    """The type of answer that an open question asks for; ``None`` with options."""
    return None if question.options else answer_type(question.text)


def cite(passage: Passage, share: float) -> Evidence:
    """A passage as evidence."""
    return Evidence(passage.segment, passage.source, passage.text, round(share, 4))


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
    reason = NOT_FOUND
    if missing:
        reason += f": {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not mentioned"
        reason += " where the film speaks of the rest"
    elif "pictures" in footage.has and may_be_visible(question):
        reason += f"; {LOOK}"
    best = sorted(found, key=lambda passage: -passage.bearing)[:NEAREST]
    nearest = tuple(cite(passage, passage.bearing) for passage in best)
    return Answer(reason=reason, status="abstained", nearest=nearest)


def _start(cited: Evidence) -> Segment:
    return cited.segment


def _span(stretch: Segment | None) -> str:
    return "" if stretch is None else f"{clock(stretch.start)} to {clock(stretch.end)}"


def read(footage: Footage, stretch: Segment | None) -> list[Passage]:
    """Everything said, shown and described in a stretch; indexed now if it was not before."""
    if "captions" in footage.has:
        times = [t for t in footage.times.tolist() if stretch is None or t in stretch]
        captions = zip(times, footage.captions(times), strict=True)
        lines = [Line(Segment(time, time + 1), text) for time, text in captions]
        return [Passage("caption", (line,)) for line in lines]
    spoken = [Passage("speech", (line,)) for line in footage.speech(stretch)]
    shown = screens(footage.onscreen(stretch))
    return spoken + [passage for passage in shown if not is_misread(passage)]


def screens(lines: Sequence[Line]) -> list[Passage]:
    """One passage for each group of lines that are shown together.

    Lines of a screen explain each other: a name stands below "Narrator". A screen that shows the
    same as the previous one extends it.
    """
    # single letters are mostly misread shapes
    legible = [line for line in lines if len(squeeze(line.text)) >= 2]
    legible.sort(key=lambda line: line.segment.start)
    shown: list[Passage] = []
    before: frozenset[str] = frozenset()
    for _, group in groupby(legible, key=lambda line: line.segment.start):
        screen = list(group)
        known, before = before, frozenset(squeeze(line.text) for line in screen)
        new = [line for line in screen if squeeze(line.text) not in known]
        if shown and not new:
            shown[-1] = _prolonged(shown[-1], screen)
        else:
            kept = screen if len(screen) <= SHORT_SCREEN else new
            shown.append(Passage("onscreen", tuple(kept)))
    return shown


def is_misread(passage: Passage) -> bool:
    """Whether a long screen consists of words that are not English."""
    return len(passage.lines) > SHORT_SCREEN and lexical.is_misread(passage.text)


def _prolonged(passage: Passage, screen: Sequence[Line]) -> Passage:
    """A screen whose lines last until the end of the next one, if that still shows them."""
    until = {squeeze(line.text): line.segment.end for line in screen}
    lines = []
    for line in passage.lines:
        end = until.get(squeeze(line.text), line.segment.end)
        lines.append(Line(Segment(line.segment.start, max(end, line.segment.end)), line.text))
    return Passage(passage.source, tuple(lines))


def bearing(
    footage: Footage, queries: Sequence[str], passages: Sequence[Passage], most: int
) -> NDArray[np.float64]:
    """The relevance of each passage to its closest query: similarity plus shared words.

    Similarity is computed for the ``most`` passages that share the most words. Of a screen, the
    closest line counts, since the others may be about something else.
    """
    texts = [passage.text for passage in passages]
    by_words = ranking.by_words(queries, texts).max(axis=0)
    kept = np.argsort(-by_words, kind="stable")[:most]
    parts = compared([passages[number] for number in kept])
    rows = footage.meanings([*queries, *parts])
    closest = (rows[: len(queries)] @ rows[len(queries) :].T).max(axis=0)
    closeness = dict(zip(parts, closest.tolist(), strict=True))
    scores = np.full(len(passages), -1.0)
    for number in kept:
        by_line = [closeness[line.text] for line in passages[number].lines]
        meaning = max(closeness[texts[number]], *by_line)
        # shared words break ties between passages of similar meaning
        scores[number] = meaning + 0.1 * by_words[number]
    return scores


def promise(
    scores: NDArray[np.float64], passages: Sequence[Passage], kind: AnswerType | None
) -> NDArray[np.float64]:
    """The relevance of each passage, raised if it holds the type of answer asked for."""
    if kind is None:
        return scores
    held = [holds(kind, passage.text) for passage in passages]
    return scores + 0.2 * np.array(held, np.float64)


def compared(passages: Sequence[Passage]) -> list[str]:
    """The texts to embed: each passage as a whole, and each of its lines."""
    texts: dict[str, None] = {}
    for passage in passages:
        texts |= dict.fromkeys([passage.text, *(line.text for line in passage.lines)])
    return list(texts)


def prepare(footage: Footage) -> None:
    """Embed everything said and shown, and make the overview, so that nobody waits for them."""
    footage.meanings(compared(read(footage, None)))
    make_overview(footage)


def reread(
    reader: Reader, passages: Sequence[Passage], promising: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """The reader's scores of the most promising passages (of the others, −∞), and the best score.

    The best one may be that of two or three passages that answer only together.
    """
    numbers = np.argsort(-promising, kind="stable")[:READ].tolist()
    scores = np.full(len(passages), -np.inf)
    scores[numbers] = reader.relevance([passages[number].text for number in numbers])
    together = []
    for number in numbers:
        for size in range(2, WINDOW + 1):
            run = passages[number : number + size]
            if len(run) == size and all(each.source == "speech" for each in run):
                together.append(" ".join(each.text for each in run))
    best = max(float(scores.max()), float(reader.relevance(together).max(initial=-np.inf)))
    return scores, best


def choose(
    scores: NDArray[np.float64],
    passages: Sequence[Passage],
    most: int,
    neighbours: int,
    kind: AnswerType | None = None,
) -> list[int]:
    """The most promising passages with their neighbours, in time order.

    None if no passage reaches :data:`BEARS`. A name counts towards that; a colour or a number does
    not, since many lines hold one: a red curtain says nothing about the colour of a hat. Once one
    passage reaches it, weaker ones are read too, since they may hold what the first only announces.
    """
    telling = promise(scores, passages, None if kind in CERTAIN else kind)
    if telling.size == 0 or telling.max() < BEARS:
        return []
    promising = promise(scores, passages, kind)
    order = np.argsort(-promising, kind="stable")[:most]
    best = [int(number) for number in order if promising[number] >= MAY_BEAR]
    return beside(best, passages, neighbours)


def beside(best: Sequence[int], passages: Sequence[Passage], neighbours: int) -> list[int]:
    """Passages with their neighbours, in time order."""
    lines = [Line(passage.segment, passage.text) for passage in passages]
    chosen = set(best)
    for source in {passages[number].source for number in best}:
        # a neighbour comes from the same source: what is said next, what is shown next
        of_source = [number for number, passage in enumerate(passages) if passage.source == source]
        places = [of_source.index(number) for number in best if passages[number].source == source]
        runs = ranking.with_neighbours(places, [lines[number] for number in of_source], neighbours)
        chosen |= {of_source[place] for run in runs for place in run}
    return sorted(chosen, key=lambda number: passages[number].segment)


def excerpt(footage: Footage, question: str, passage: Passage) -> Passage:
    """The part of a long screen around the line that is closest to the question.

    A page of small print would fill the prompt and distract a small model.
    """
    if passage.source != "onscreen" or len(passage.lines) <= SHORT_SCREEN:
        return passage
    closest = int(np.argmax(likeness(footage, question, [line.text for line in passage.lines])))
    first = min(max(0, closest - SHORT_SCREEN // 2), len(passage.lines) - SHORT_SCREEN)
    return replace(passage, lines=passage.lines[first : first + SHORT_SCREEN])


def holding(answer: str, question: str, passages: Sequence[Passage]) -> list[tuple[Passage, float]]:
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


def supporting(
    reader: Reader, answer: str, question: Question, found: Sequence[Passage]
) -> list[tuple[Passage, float]]:
    """The passages that support an answer, or two consecutive ones together, best first."""
    if not reader or any(passage.source == "caption" for passage in found):
        return holding(answer, question.text, found)
    relevance = max(passage.bearing for passage in found)
    for candidates in (found, pairs_of(found)):
        scores = reader.support(answer, [each.text for each in candidates], relevance)
        best = max(scores.max(initial=-np.inf) - SIMILAR, 0.0)
        kept = [each for each in zip(candidates, scores.tolist(), strict=True) if each[1] >= best]
        if kept:
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


_AT = re.compile(
    r"\b(?:said|says?|shown|written|heard)\b.*\bat (?P<time>(?:\d{1,2}:)?\d{1,2}:[0-5]\d)\b", re.I
)


def asks_at(question: Question) -> float | None:
    """The time that "What is said at 0:46?" names; ``None`` if the question names none."""
    found = None if question.options else _AT.search(question.text)
    return None if found is None else parse_time(found["time"])


def at_time(passages: Sequence[Passage], time: float, footage: Footage) -> Answer:
    """What is said and written at a time."""
    around = Segment(max(0.0, time - 1.0), time + 2.0)
    there = [each for each in passages if each.segment.overlap(around) > 0]
    if not there:
        reason = f"nothing is said or written at {clock(time)} of {clock(footage.duration)}"
        return Answer(reason=reason, status="abstained")
    text = " … ".join(f"“{each.text}”" for each in there)
    return Answer(text=text, evidence=tuple(cite(each, 1.0) for each in there))


def adds_nothing(answer: str, question: str) -> bool:
    """Whether an answer only repeats the question, with or without a yes or no."""
    return not lexical.lemmas([answer]) - lexical.lemmas([question]) - _YES_OR_NO
