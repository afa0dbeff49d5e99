"""Overviews: the chapters of a film with titles and sentences, and a summary, each with its moment.

::

    1  chapters ← where the topic of the talk changes; where little is said, where the picture does
    2  per chapter, quote two sentences that are close to everything in it and hold rare words, the
       better one as title
    3  with a model: a title and two sentences per chapter, and from these a summary of the film; a
       sentence whose words are neither said nor shown gives way to the quotations

An overview is made once and kept with the film, until other lines are said or shown in it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from longtake._util.timecode import clock
from longtake.agents.answer import sentences, supported
from longtake.agents.run import Run
from longtake.algorithms import lexical
from longtake.algorithms.evidence import held, is_instruction
from longtake.algorithms.partition import EventPartition
from longtake.algorithms.speakers import speaker
from longtake.algorithms.stretches import STEP, Talk
from longtake.footage.look import captioned
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ask
from longtake.prompts import Plain
from longtake.types import Evidence, Line, Segment

RULE = EventPartition(max_blocks=12, min_seconds=10.0, min_share=1 / 20)
"""Finer than the blocks of A4VL: chapters of at least ten seconds, at most twelve."""
LONGEST = 60
"""Letters of a title."""
CHAPTER_WORDS = 200
"""Words of a chapter that a model reads: small models read slowly."""
KEY = "contents"
"""The name under which an overview is kept."""
QUOTED = "film"
"""Who writes an overview that only quotes."""


class ChapterText(BaseModel):
    """What a model writes about a chapter."""

    title: str = Field(description="at most eight words")
    sentences: str = Field(description="two short sentences")


@dataclass(frozen=True)
class CitedSentence:
    """A sentence, and what it rests on: where in the film, and the words there."""

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
    """When the words behind the title are said or shown; ``None`` if nothing is."""
    sentences: tuple[CitedSentence, ...] = ()


@dataclass(frozen=True)
class FilmOverview:
    """A film's contents."""

    chapters: tuple[Chapter, ...]
    summary: tuple[CitedSentence, ...]
    by: str
    """The model that wrote it, or ``film`` if it quotes the film."""


def make_overview(footage: Footage, run: Run | None = None) -> FilmOverview:
    """The overview of a film: the one that is kept, or made now; ``run`` has a model to write it.

    A model's overview takes the place of one made of quotations, never the other way round.
    """
    lines = everything(footage)
    digest = hashlib.blake2b(repr(lines).encode(), digest_size=16).hexdigest()
    notes = footage.kept(KEY)
    if notes is not None and notes.get("lines") == digest:
        stored = restored(notes)
        if stored is not None and (run is None or stored.by != QUOTED):
            return stored
    blocks = chapters_of(footage, [line for source, line in lines if source == "speech"])
    ranked = telling(footage, blocks, lines)
    overview = quote(blocks, ranked)
    if run is not None:
        overview = write(run, overview, ranked)
    footage.keep(KEY, {"lines": digest, **asdict(overview)})
    return overview


def restored(notes: Mapping[str, Any]) -> FilmOverview | None:
    """The overview that notes hold; ``None`` if they are damaged."""
    try:
        return TypeAdapter(FilmOverview).validate_python(notes)
    except ValidationError:
        return None


def chapters_of(footage: Footage, spoken: Sequence[Line]) -> Sequence[Segment]:
    """Where the chapters are: by topic, or by what is visible if little is said."""
    talk = Talk(spoken, footage.duration, footage.meanings)
    if footage.has and STEP * sum(map(bool, talk.texts)) < footage.duration / 2:
        return footage.blocks(RULE).blocks
    return talk.topics(RULE.max_blocks)


def everything(footage: Footage) -> list[tuple[str, Line]]:
    """What is said, shown and described, by sentence; speech is recognised now if need be."""
    described = captioned(footage, footage.times.tolist()) if "captions" in footage.has else []
    lines = [("speech", line) for line in utterances(footage.speech())]
    lines += [("onscreen", line) for line in legible(footage.onscreen())]
    lines += [("caption", line) for line in described]
    return [each for each in lines if not is_instruction(each[1].text)]


def utterances(lines: Sequence[Line]) -> list[Line]:
    """What is said, by sentence, each with its speaker; a line may be a speech of minutes."""
    parts = []
    for line in lines:
        name, text = speaker(line.text)
        said = sentences(text)
        start, letters = line.segment.start, max(1, sum(map(len, said)))
        for sentence in said:
            # a sentence lasts as long as its letters
            end = min(line.segment.end, start + line.segment.duration * len(sentence) / letters)
            labelled = f"{name}: {sentence}" if name else sentence
            parts.append(Line(Segment(start, max(start, end)), labelled))
            start = max(start, end)
    return parts


def is_aside(line: Line) -> bool:
    """Whether a line is too short to tell anything: "Yeah, okay." """
    return len([word for word in speaker(line.text)[1].split() if word[0].isalnum()]) < 5


def quote(blocks: Sequence[Segment], ranked: Sequence[Sequence[CitedSentence]]) -> FilmOverview:
    """Titles, sentences and a summary from lines of the film itself."""
    chapters, best = [], []
    for number, (block, lines) in enumerate(zip(blocks, ranked, strict=True), start=1):
        if not lines:
            chapters.append(Chapter(block.start, block.end, f"Part {number}"))
            continue
        title = _short(speaker(lines[0].text)[1])
        in_order = tuple(sorted(lines[:2], key=lambda each: each.start))
        chapters.append(Chapter(block.start, block.end, title, lines[0].start, in_order))
        best.append((block.duration, lines[0]))
    # the longest chapters tell most of the film
    best.sort(key=lambda each: -each[0])
    summary = sorted((each for _, each in best[:4]), key=lambda each: each.start)
    return FilmOverview(tuple(chapters), tuple(summary), QUOTED)


SUGGESTED = 3
"""Questions that are suggested: one line each on a small screen."""


def suggested(overview: FilmOverview) -> tuple[str, ...]:
    """Questions on what is said and shown in the longest chapters, which the film answers."""
    questions: list[str] = []
    known: set[str] = set()
    longest = sorted(overview.chapters, key=lambda each: each.start - each.end)
    # one of each chapter before a second one of any
    for sentence in (
        each.sentences[place] for place in (0, 1) for each in longest if place < len(each.sentences)
    ):
        subject = _subject(speaker(sentence.quote)[1])
        words = lexical.lemmas([subject])
        # the same subject in other words is the same question
        if words and not words & known:
            known |= words
            questions.append(
                f"What is said about {subject}?"
                if sentence.source == "speech"
                else f'List every time that "{subject.removeprefix("the ")}" is mentioned.'
            )
    return tuple(questions[:SUGGESTED])


def _subject(text: str) -> str:
    """What a line is about: the longest name in it, or else its rarest thing; empty if unsure."""
    names = [match[0] for match in _NAME.finditer(text.removeprefix("The "))]
    # a sentence begins with a capital whatever its first word is, and headlines have nothing else
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
    # "the way" and "the lot" are nothing to ask about
    return rarest if things.get(rarest, 0.0) > 1.0 else ""


# one or two words after "the" or "your", where what follows shows that they name a thing
_THING = re.compile(
    r"\b(?:(the|an?|this)|my|your|our|his|her|its|their|these|two|three)"
    r" ([a-z-]{4,}(?: [a-z-]{4,})?)"
    r"(?=[.,;:?!]|$| (?:is|are|was|were|will|can|of|in|for|to|on|with|at|from|that|which)\b)"
)
_NAME = re.compile(r"[A-Z]\w[\w'’]+(?:\s+(?:of|the|and|de|van)?\s*[A-Z][\w'’]+)*")


def excerpts(footage: Footage, chapters: Sequence[Chapter], max_words: int) -> list[CitedSentence]:
    """The most telling lines of all chapters, which share the words, in the film's order."""
    blocks = [Segment(chapter.start, chapter.end) for chapter in chapters]
    ranked = telling(footage, blocks, everything(footage))
    share = max_words // max(1, len(blocks))
    chosen = [each for lines in ranked for each in fitting(lines, share)]
    return sorted(chosen, key=lambda each: each.start)


def telling(
    footage: Footage, blocks: Sequence[Segment], lines: Sequence[tuple[str, Line]]
) -> list[list[CitedSentence]]:
    """The lines of each block by how much they tell of it, each text once.

    Those are close to everything in the block, and hold words that are rare in the film; all but
    the first tell something else than the first.
    """
    counts = Counter(word for _, line in lines for word in lexical.lemmas([line.text]))
    ranked = []
    for block in blocks:
        inside = {line.text: each for each in lines if (line := each[1]).segment.start in block}
        # a line with fewer words says too little to stand for a chapter
        part = [each for each in inside.values() if not is_aside(each[1])] or list(inside.values())
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
    order = np.argsort(-others, kind="stable").tolist()
    return [_as_statement(part[number][1].text, *part[number]) for number in order]


def _as_statement(text: str, source: str, line: Line) -> CitedSentence:
    return CitedSentence(text, line.segment.start, line.segment.end, source, line.text)


def _weight(text: str, counts: Counter[str]) -> float:
    """Rarity of a line's words in the language, less for words that the whole film repeats."""
    words = sorted(lexical.lemmas([text]))
    weights = [lexical.idf(word) / (1 + np.log(max(1, counts[word]))) for word in words]
    # per word of a long line, so that titles are not simply the longest lines
    return float(sum(weights) / (1 + 0.1 * len(text.split())))


def write(
    run: Run, quoted: FilmOverview, ranked: Sequence[Sequence[CitedSentence]]
) -> FilmOverview:
    """What a model makes of the chapters; quotations where its reply cannot be used."""
    chapters = []
    for chapter, lines in zip(quoted.chapters, ranked, strict=True):
        chapters.append(_retold(run, chapter, lines) if lines else chapter)
    known = [each for chapter in chapters for each in chapter.sentences]
    text = ask(run["llm"], "shared/summary", default="", max_tokens=200, chapters=timed(known))
    summary = tuple(held_by(known, text).values())
    return FilmOverview(tuple(chapters), summary or quoted.summary, run.names["llm"])


def _retold(run: Run, chapter: Chapter, ranked: Sequence[CitedSentence]) -> Chapter:
    lines = sorted(fitting(ranked, CHAPTER_WORDS), key=lambda each: each.start)
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
    told = tuple(held_by(lines, reply.sentences).values())[:2]
    shown = " ".join(line.text for line in lines)
    # a title is held to what an account is held to
    is_held = held(reply.title, lexical.lemmas([reply.title]), shown) >= 0.5
    title = _short(reply.title) if is_held else chapter.title
    return replace(chapter, title=title, sentences=told or chapter.sentences)


def held_by(
    lines: Sequence[CitedSentence], account: str, question: str = ""
) -> dict[str, CitedSentence]:
    """The sentences of an account that lines hold, each citing what its line cites."""
    cited = {Line(each.evidence.segment, each.text): each for each in lines}
    kept = supported(account, question, list(cited))
    return {text: replace(cited[line], text=text) for text, line in kept.items()}


class _Text(Protocol):
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=_Text)


def fitting(lines: Sequence[T], max_words: int) -> list[T]:
    """The first lines that fit into a number of words."""
    chosen = []
    for line in lines:
        words = len(line.text.split())
        if words <= max_words:
            chosen.append(line)
            max_words -= words
    return chosen


def timed(lines: Sequence[CitedSentence]) -> list[str]:
    """Lines as a model reads them: ``[00:01:05] Marketing: It is yellow.``"""
    return [f"[{clock(line.start)}] {line.text}" for line in lines]


def legible(lines: Sequence[Line]) -> list[Line]:
    """On-screen text without misread screens and lines, which hold words of no English text."""
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
