"""Overviews: the chapters of a film with titles and cited sentences, and a summary.

::

    1  chapters ← divide the film at its title cards; without any, where the topic of the talk
       changes, or where the picture changes if little is said
    2  per chapter, quote its card and the two sentences that represent it best: close to its other
       lines, with rare words; the first of these without a doubtful word is the title
    3  with a model: a title and two sentences per chapter, and from these a summary of the film;
       quotations replace sentences that no line supports
    4  the summary has a sentence for every chapter in which something is said or written

A word is doubtful, perhaps misheard, if it is in no word list and only once in the film.

An overview is stored with the film, and made again when the lines of the film change.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from longtake._util.timecode import clock
from longtake.agents.answer import supported
from longtake.agents.run import Run
from longtake.algorithms import lexical
from longtake.algorithms.partition import EventPartition
from longtake.algorithms.speakers import speaker
from longtake.footage.look import captioned
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ask
from longtake.prompts import Plain
from longtake.retrieval.evidence import held, is_instruction
from longtake.retrieval.passages import fitting, is_aside, read, utterances
from longtake.retrieval.ranking import compared
from longtake.retrieval.stretches import STEP, Talk
from longtake.retrieval.title_cards import title_cards
from longtake.types import Evidence, Line, Segment

RULE = EventPartition(max_blocks=12, min_seconds=10.0, min_share=1 / 20)
"""Finer than the blocks of A4VL: at most twelve chapters of at least ten seconds."""
LONGEST = 60
"""Maximum letters of a title."""
CHAPTER_WORDS = 200
"""Words of a chapter in a prompt; few, because small models read slowly."""
KEY = "contents"
"""The name under which an overview is stored."""
VERSION = 2
"""How overviews are made; one that was made otherwise is made again."""
QUOTED = "film"
"""The author of an overview that only quotes."""


class ChapterText(BaseModel):
    """What a model writes about a chapter."""

    title: str = Field(description="at most eight words")
    sentences: str = Field(description="two short sentences")


@dataclass(frozen=True)
class CitedSentence:
    """A sentence with its evidence: the moment of the film, and the words there."""

    text: str
    start: float
    end: float
    source: str
    quote: str

    @property
    def evidence(self) -> Evidence:
        """The moment as evidence."""
        return Evidence(Segment(self.start, self.end), self.source, self.quote)


@dataclass(frozen=True)
class Chapter:
    """A part of a film with its title, and sentences on what is said and shown there."""

    start: float
    end: float
    title: str
    cited: float | None = None
    """When the words of the title are said or shown; ``None`` if the chapter has no lines."""
    sentences: tuple[CitedSentence, ...] = ()
    on_card: bool = False
    """Whether it begins with a title card, which is the first of the sentences."""


@dataclass(frozen=True)
class FilmOverview:
    """A film's contents."""

    chapters: tuple[Chapter, ...]
    summary: tuple[CitedSentence, ...]
    by: str
    """The model that wrote it, or ``film`` if it quotes the film."""


def make_overview(footage: Footage, run: Run | None = None) -> FilmOverview:
    """The overview of a film, stored or made now; with ``run``, written by its model.

    A model's overview replaces one of quotations, but not the reverse.
    """
    lines = everything(footage)
    digest = hashlib.blake2b(repr((VERSION, lines)).encode(), digest_size=16).hexdigest()
    notes = footage.kept(KEY)
    if notes is not None and notes.get("lines") == digest:
        stored = restored(notes)
        if stored is not None and (run is None or stored.by != QUOTED):
            return stored
    spoken = [line for source, line in lines if source == "speech"]
    shown = [line for source, line in lines if source == "onscreen"]
    cards = title_cards(shown, spoken, footage.duration)
    blocks = divided(footage.duration, cards) if cards else chapters_of(footage, spoken)
    ranked = representative(footage, blocks, lines)
    doubtful = doubtful_words([line.text for _, line in lines])
    overview = quote(blocks, ranked, cards, doubtful)
    if run is not None:
        overview = write(run, overview, ranked, doubtful)
    footage.keep(KEY, {"lines": digest, **asdict(overview)})
    return overview


def restored(notes: Mapping[str, Any]) -> FilmOverview | None:
    """The overview from stored notes; ``None`` if they are damaged."""
    try:
        return TypeAdapter(FilmOverview).validate_python(notes)
    except ValidationError:
        return None


def chapters_of(footage: Footage, spoken: Sequence[Line]) -> Sequence[Segment]:
    """The chapters: by topic, or by picture if little is said."""
    talk = Talk(spoken, footage.duration, footage.meanings)
    if footage.has and STEP * sum(map(bool, talk.texts)) < footage.duration / 2:
        return footage.blocks(RULE).blocks
    return talk.topics(RULE.max_blocks)


def divided(duration: float, cards: Sequence[Line]) -> list[Segment]:
    """The chapters that title cards begin, as many and as long as :data:`RULE` allows."""
    shortest = min(RULE.min_seconds, RULE.min_share * duration)
    starts = [0.0]
    # a film may begin with a card that appears a moment later
    for start in [card.segment.start for card in cards if card.segment.start >= shortest]:
        if start - starts[-1] >= shortest and duration - start >= shortest:
            starts.append(start)
    while len(starts) > RULE.max_blocks:
        lengths = np.diff([*starts, duration])
        del starts[1 + int(lengths[1:].argmin())]
    return [Segment(start, end) for start, end in pairwise([*starts, duration])]


def doubtful_words(texts: Sequence[str]) -> frozenset[str]:
    """Words that may be misheard or misread: in no word list, and in one text only."""
    if lexical.language_of(" ".join(texts)) not in ("English", ""):
        return frozenset()  # the word list is English
    counts = Counter(word for text in texts for word in lexical.content_words(text))
    return frozenset(
        word for word, count in counts.items() if count == 1 and not lexical.is_known(word)
    )


def everything(footage: Footage) -> list[tuple[str, Line]]:
    """Speech by sentence, on-screen text and captions, with sources; recognised now if needed."""
    described = captioned(footage, footage.times.tolist()) if "captions" in footage.has else []
    lines = [("speech", line) for line in utterances(footage.speech())]
    lines += [("onscreen", line) for line in legible(footage.onscreen())]
    lines += [("caption", line) for line in described]
    return [(source, line) for source, line in lines if not is_instruction(line.text)]


def quote(
    blocks: Sequence[Segment],
    ranked: Sequence[Sequence[CitedSentence]],
    cards: Sequence[Line] = (),
    doubtful: frozenset[str] = frozenset(),
) -> FilmOverview:
    """Titles, sentences and a summary from lines of the film itself."""
    chapters, summary = [], []
    for number, (block, lines) in enumerate(zip(blocks, ranked, strict=True), start=1):
        begun = [_cited("onscreen", card) for card in cards if card.segment.start in block][:1]
        others = [line for line in lines if not begun or line.end > begun[0].end]
        chapter = Chapter(block.start, block.end, f"Part {number}", on_card=bool(begun))
        for line in (*begun, *others):
            title = speaker(line.text)[1]
            if not doubtful.intersection(lexical.content_words(title)):
                chapter = replace(chapter, title=_short(title), cited=line.start)
                break
        chapters.append(replace(chapter, sentences=(*begun, *in_time(others[:2]))))
        summary += [*begun, *others][:1]
    return FilmOverview(tuple(chapters), tuple(summary), QUOTED)


def complete(
    summary: Iterable[CitedSentence], chapters: Sequence[Chapter]
) -> tuple[CitedSentence, ...]:
    """The summary in time order, with a sentence of each chapter that it leaves out."""
    sentences = list(summary)
    for chapter in chapters:
        span = Segment(chapter.start, chapter.end)
        if not any(sentence.start in span for sentence in sentences):
            sentences += chapter.sentences[:1]
    return in_time(sentences)


def in_time(lines: Iterable[CitedSentence]) -> tuple[CitedSentence, ...]:
    """The lines in time order."""
    return tuple(sorted(lines, key=lambda line: line.start))


SUGGESTED = 3
"""Number of suggested questions; each takes a line on a small screen."""


def suggested(overview: FilmOverview, texts: Sequence[str]) -> tuple[str, ...]:
    """Questions about the longest chapters that the film can answer.

    They name what at least two of the texts do, since one may be misheard or misread.
    """
    questions: list[str] = []
    counts = Counter(word for text in texts for word in lexical.lemmas([text]))
    known: set[str] = set()
    longest = sorted(overview.chapters, key=lambda chapter: chapter.start - chapter.end)
    # the first sentence of every chapter, then the second ones
    first = [sentence for chapter in longest for sentence in chapter.sentences[:1]]
    second = [sentence for chapter in longest for sentence in chapter.sentences[1:2]]
    for sentence in first + second:
        subject = _subject(speaker(sentence.quote)[1])
        words = lexical.lemmas([subject])
        # the same subject in other words is the same question
        if words and not words & known and all(counts[word] > 1 for word in words):
            known |= words
            questions.append(
                f"What is said about {subject}?"
                if sentence.source == "speech"
                else f'List every time that "{subject.removeprefix("the ")}" is mentioned.'
            )
    return tuple(questions[:SUGGESTED])


def _subject(text: str) -> str:
    """The subject of a line: its longest name, or else its rarest noun phrase; empty if unsure."""
    names = [match[0] for match in _NAME.finditer(text.removeprefix("The "))]
    # the first word of a sentence has a capital in any case, as have all words of a headline
    names = [
        name for name in names if (not name.isupper() if " " in name else not text.startswith(name))
    ]
    if names:
        return max(names, key=len)
    things = {}
    for article, thing in _THING.findall(text.lower()):
        words = lexical.content_words(thing)
        if " ".join(words) == thing and all(lexical.is_known(word) for word in words):
            things[f"the {thing}" if article else thing] = max(map(lexical.idf, words))
    rarest = max(things, key=things.__getitem__, default="")
    # common phrases such as "the way" make no question
    return rarest if things.get(rarest, 0.0) > 1.0 else ""


# one or two words after "the" or "your", where what follows shows that they name a thing
_THING = re.compile(
    r"\b(?:(the|an?|this)|my|your|our|his|her|its|their|these|two|three)"
    r" ([a-z-]{4,}(?: [a-z-]{4,})?)"
    r"(?=[.,;:?!]|$| (?:is|are|was|were|will|can|of|in|for|to|on|with|at|from|that|which)\b)"
)
_NAME = re.compile(r"[A-Z]\w[\w'’]+(?:\s+(?:of|the|and|de|van)?\s*[A-Z][\w'’]+)*")


def excerpts(footage: Footage, chapters: Sequence[Chapter], max_words: int) -> list[CitedSentence]:
    """The most representative lines in time order, an equal number of words per chapter."""
    blocks = [Segment(chapter.start, chapter.end) for chapter in chapters]
    ranked = representative(footage, blocks, everything(footage))
    share = max_words // max(1, len(blocks))
    return list(in_time(line for lines in ranked for line in fitting(lines, share)))


def representative(
    footage: Footage, blocks: Sequence[Segment], lines: Sequence[tuple[str, Line]]
) -> list[list[CitedSentence]]:
    """The distinct lines of each block, the most representative first.

    These are close to the other lines of the block, contain words that are rare in the film, and
    differ from the first one.
    """
    counts = Counter(word for _, line in lines for word in lexical.lemmas([line.text]))
    ranked = []
    for block in blocks:
        inside = {
            line.text: (source, line) for source, line in lines if line.segment.start in block
        }
        # short lines only where there are no others
        part = [sourced for sourced in inside.values() if not is_aside(sourced[1])]
        part = part or list(inside.values())
        ranked.append(_ranked(footage, part, counts) if part else [])
    return ranked


def _ranked(
    footage: Footage, part: Sequence[tuple[str, Line]], counts: Counter[str]
) -> list[CitedSentence]:
    texts = [speaker(line.text)[1] for _, line in part]
    rows = footage.meanings(texts).astype(np.float64)
    centre = rows.mean(axis=0)
    closeness = rows @ centre / max(float(np.linalg.norm(centre)), 1e-9)
    rarity = np.array([_weight(text, counts) for text in texts])
    scores = closeness + 0.2 * rarity / max(rarity.max(), 1e-9)
    first = int(scores.argmax())
    others = scores - 0.3 * (rows @ rows[first])
    others[first] = np.inf
    sentences_by_rank = []
    for number in np.argsort(-others, kind="stable").tolist():
        sentences_by_rank.append(_cited(*part[number]))
    return sentences_by_rank


def _cited(source: str, line: Line) -> CitedSentence:
    return CitedSentence(line.text, line.segment.start, line.segment.end, source, line.text)


def _weight(text: str, counts: Counter[str]) -> float:
    """Rarity of a line's words in the language, reduced for words that the film repeats."""
    words = sorted(lexical.lemmas([text]))
    weights = [lexical.idf(word) / (1 + np.log(max(1, counts[word]))) for word in words]
    # long lines would otherwise win by the number of their words
    return float(sum(weights) / (1 + 0.1 * len(text.split())))


def write(
    run: Run,
    quoted: FilmOverview,
    ranked: Sequence[Sequence[CitedSentence]],
    doubtful: frozenset[str],
) -> FilmOverview:
    """A model's overview; quotations where its reply cannot be used."""
    chapters = []
    for chapter, lines in zip(quoted.chapters, ranked, strict=True):
        chapters.append(_rewritten(run, chapter, lines, doubtful) if lines else chapter)
    known = [sentence for chapter in chapters for sentence in chapter.sentences]
    text = ask(run["llm"], "shared/summary", default="", max_tokens=200, chapters=timed(known))
    summary = complete(held_by(known, text).values() or quoted.summary, chapters)
    return FilmOverview(tuple(chapters), summary, run.names["llm"])


def _rewritten(
    run: Run, chapter: Chapter, ranked: Sequence[CitedSentence], doubtful: frozenset[str]
) -> Chapter:
    lines = in_time(fitting(ranked, CHAPTER_WORDS))
    reply = ask(
        run["llm"],
        "shared/chapter",
        ChapterText,
        default=None,
        max_tokens=160,
        start=Plain(clock(chapter.start)),
        end=Plain(clock(chapter.end)),
        lines=timed(lines),
    )
    if reply is None:
        return chapter
    sentences = tuple(held_by(lines, reply.sentences).values())[:2] or chapter.sentences
    if chapter.on_card:
        card = chapter.sentences[0]
        return replace(chapter, sentences=(card, *(each for each in sentences if each != card)))
    shown = " ".join(line.text for line in lines)
    # as for the sentences of an account
    is_held = held(reply.title, lexical.lemmas([reply.title]), shown) >= 0.5
    is_held = is_held and not doubtful.intersection(lexical.content_words(reply.title))
    title = _short(reply.title) if is_held else chapter.title
    return replace(chapter, title=title, sentences=sentences)


def held_by(
    lines: Sequence[CitedSentence], account: str, question: str = ""
) -> dict[str, CitedSentence]:
    """The sentences of an account that lines support, each with the citation of its line."""
    cited = {Line(sentence.evidence.segment, sentence.text): sentence for sentence in lines}
    kept = supported(account, question, list(cited))
    return {text: replace(cited[line], text=text) for text, line in kept.items()}


def timed(lines: Sequence[CitedSentence]) -> list[str]:
    """Lines as a model reads them: ``[00:01:05] Marketing: It is yellow.``"""
    return [f"[{clock(line.start)}] {line.text}" for line in lines]


def legible(lines: Sequence[Line]) -> list[Line]:
    """On-screen text without misread screens and lines, as far as it is English."""
    # words of other languages are unknown too
    if lexical.language_of(" ".join(line.text for line in lines)) not in ("English", ""):
        return list(lines)
    screens: dict[float, str] = {}
    for line in lines:
        screens[line.segment.start] = f"{screens.get(line.segment.start, '')} {line.text}"
    misread = {start for start, text in screens.items() if lexical.is_misread(text)}
    # single letters are misread shapes
    whole = [line for line in lines if len(line.text.strip()) > 1]
    return [
        line
        for line in whole
        if line.segment.start not in misread and not lexical.is_misread(line.text)
    ]


def _short(text: str) -> str:
    plain = " ".join(text.split())
    if len(plain) <= LONGEST:
        return plain
    return plain[:LONGEST].rsplit(" ", 1)[0] + "…"


def prepare(footage: Footage) -> None:
    """Embed everything said and shown, and make the overview, so that nobody waits for them."""
    footage.meanings(compared(read(footage, None)))
    make_overview(footage)
