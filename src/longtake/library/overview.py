"""Overviews: the chapters of a film with titles, and a summary, made once and kept.

Chapters are the blocks of the event partition. Titles and summary come from a model if one is
given, else from what is said and shown alone: each is then a quotation. Nothing else is made up.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from pydantic import BaseModel, Field

from longtake._util.timecode import clock
from longtake.agents.answer import length
from longtake.algorithms import lexical
from longtake.algorithms.partition import EventPartition
from longtake.errors import LongtakeError
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.index.store import LayerKey
from longtake.library.catalog import Entry
from longtake.library.collection import Library
from longtake.llm.structured.ask import ask
from longtake.runner.films import open_store
from longtake.runner.session import Session
from longtake.types import Line, Segment
from longtake.video.subtitles import escaped

RULE = EventPartition(max_blocks=12, min_seconds=10.0, min_share=1 / 20)
"""Finer than the blocks of A4VL: chapters of at least ten seconds, at most twelve."""
LONGEST = 60
"""Letters of a title."""
_KEY = "overview"


class Contents(BaseModel):
    """What a model writes about a film."""

    titles: list[str] = Field(description="one title per chapter, in order")
    summary: str = Field("", description="at most three sentences")


@dataclass(frozen=True)
class Chapter:
    """A part of a film with its title and the moment that the title refers to."""

    start: float
    end: float
    title: str
    cited: float | None = None
    """When the words behind the title are said or shown; ``None`` if nothing is."""


@dataclass(frozen=True)
class FilmOverview:
    """A film's contents."""

    chapters: tuple[Chapter, ...]
    summary: str
    by: str
    """The model that wrote it, or ``film`` if it quotes the film."""


def make_overview(footage: Footage, session: Session | None = None) -> FilmOverview:
    """The overview of a film: the stored one, or made now; ``session`` brings a model to write it.

    A model's overview takes the place of one made of quotations, never the other way round.
    """
    stored = stored_overview(footage)
    if stored is not None and (session is None or stored.by != "film"):
        return stored
    blocks = _chapters_of(footage)
    lines = [_lines(footage, block) for block in blocks]
    quoted = quote(blocks, lines)
    overview = quoted if session is None else _written(footage, session, blocks, lines, quoted)
    _keep(footage, overview)
    return overview


def _chapters_of(footage: Footage) -> Sequence[Segment]:
    """The blocks of a film; of one without pictures, parts of equal length and about a minute."""
    if footage.has:
        return footage.blocks(RULE).blocks
    count = max(1, min(RULE.max_blocks, round(footage.duration / 60)))
    edges = np.linspace(0.0, footage.duration, count + 1).tolist()
    return [Segment(begin, end) for begin, end in pairwise(edges)]


def quote(blocks: Sequence[Segment], lines: Sequence[Sequence[tuple[str, Line]]]) -> FilmOverview:
    """Titles and a summary from lines of the film itself."""
    counts = Counter(word for part in lines for word in _lemmas(part))
    chapters, best = [], []
    for number, (block, part) in enumerate(zip(blocks, lines, strict=True), start=1):
        line = _telling(part, counts)
        title = f"Part {number}" if line is None else _short(line.text)
        cited = None if line is None else line.segment.start
        chapters.append(Chapter(block.start, block.end, title, cited))
        if line is not None:
            best.append(line)
    # the most telling of the chapters' lines, in time order
    best.sort(key=lambda line: -_weight(line, counts))
    quoted = sorted(best[:3], key=lambda line: line.segment)
    summary = " … ".join(f"[{clock(line.segment.start)}] {line.text}" for line in quoted)
    return FilmOverview(tuple(chapters), summary, "film")


def known_overview(library: Library, entry: Entry) -> FilmOverview | None:
    """A film's overview if one was made before; the film itself is not opened."""
    folder = open_store(library.settings).film(entry.fingerprint)
    stored = folder.read(LayerKey(_KEY, 1))
    return None if stored is None else _restored(stored[1])


def stored_overview(footage: Footage) -> FilmOverview | None:
    """The overview that is kept with a film."""
    if not isinstance(footage, Film):
        return None
    stored = footage.folder.read(LayerKey(_KEY, 1))
    return None if stored is None else _restored(stored[1])


def _keep(footage: Footage, overview: FilmOverview) -> None:
    if isinstance(footage, Film):
        data = json.loads(json.dumps(asdict(overview)))
        with footage.folder.building():
            footage.folder.write(LayerKey(_KEY, 1), {}, data)


def _restored(notes: dict[str, object]) -> FilmOverview:
    chapters = notes["chapters"]
    assert isinstance(chapters, list)
    return FilmOverview(
        tuple(Chapter(**chapter) for chapter in chapters), str(notes["summary"]), str(notes["by"])
    )


def _lines(footage: Footage, block: Segment) -> list[tuple[str, Line]]:
    """What is said, shown and described in a block; speech is recognised now if need be."""
    spoken = [("speech", line) for line in footage.speech(block)]
    shown = [("onscreen", line) for line in legible(footage.onscreen(block))]
    times = [time for time in footage.times.tolist() if time in block]
    captions = footage.captions(times)
    described = [
        ("caption", Line(Segment(time, time), text))
        for time, text in zip(times, captions, strict=False)
    ]
    lines = [*spoken, *shown, *described]
    # a line that goes on from the chapter before belongs there
    return [pair for pair in lines if pair[1].segment.start in block]


def legible(lines: Sequence[Line]) -> list[Line]:
    """On-screen text without misread screens and lines, which hold words of no English text."""
    # words of other languages are unknown too
    if lexical.language_of(" ".join(line.text for line in lines)) not in ("English", ""):
        return list(lines)
    screens: dict[float, str] = {}
    for line in lines:
        screens[line.segment.start] = f"{screens.get(line.segment.start, '')} {line.text}"
    read = {start for start, text in screens.items() if _is_legible(text)}
    return [line for line in lines if line.segment.start in read and _is_legible(line.text)]


def _is_legible(text: str) -> bool:
    # shorter words are often abbreviations
    words = [word for word in lexical.content_words(text) if len(word) >= 4]
    unknown = [word for word in words if word.isascii() and not lexical.is_known(word)]
    # as in lookup: blurred print gives more unknown words, names give fewer
    return len(text.strip()) > 1 and len(unknown) <= 1 / 3 * len(words)


def _written(
    footage: Footage,
    session: Session,
    blocks: Sequence[Segment],
    lines: Sequence[Sequence[tuple[str, Line]]],
    quoted: FilmOverview,
) -> FilmOverview:
    """What a model makes of the chapters; quotations where its reply cannot be used."""
    run = session.reader(folder=footage.replies_folder)
    described = [
        f"{number}. {clock(block.start)} to {clock(block.end)}: {_spread(part)}"
        for number, (block, part) in enumerate(zip(blocks, lines, strict=True), start=1)
    ]
    contents = ask(
        run["llm"],
        "library/overview",
        Contents,
        default=None,
        name=footage.name,
        length=length(footage),
        chapters=described,
        count=len(blocks),
    )
    if contents is None or len(contents.titles) != len(blocks):
        return quoted
    chapters = [
        Chapter(old.start, old.end, _short(title) or old.title, old.cited)
        for old, title in zip(quoted.chapters, contents.titles, strict=True)
    ]
    summary = contents.summary.strip() or quoted.summary
    return FilmOverview(tuple(chapters), summary, run.names["llm"])


def _spread(part: Sequence[tuple[str, Line]]) -> str:
    """Some lines of a chapter, evenly spaced."""
    if not part:
        return "nothing is said or shown"
    distinct = list(dict.fromkeys((source, line.text) for source, line in part))
    chosen = np.unique(np.linspace(0, len(distinct) - 1, 12).astype(int))
    return " | ".join(f"{distinct[n][0]}: {distinct[n][1]}" for n in chosen)


def _telling(part: Sequence[tuple[str, Line]], counts: Counter[str]) -> Line | None:
    """The line with the rarest content, among those long enough to mean something."""
    # a line of speech with fewer words says too little to stand for a chapter
    spoken = [line for source, line in part if len(line.text.split()) >= 4]
    lines = spoken or [line for _, line in part]
    return max(lines, key=lambda line: _weight(line, counts), default=None)


def _weight(line: Line, counts: Counter[str]) -> float:
    """Rarity of a line's words in the language, less for words that the whole film repeats."""
    words = lexical.lemmas([line.text])
    weights = [lexical.idf(word) / (1 + np.log(max(1, counts[word]))) for word in words]
    # per word of a long line, so that titles are not simply the longest lines
    return float(sum(weights) / (1 + 0.1 * len(line.text.split())))


def _lemmas(part: Sequence[tuple[str, Line]]) -> list[str]:
    return [word for _, line in part for word in lexical.lemmas([line.text])]


def _short(text: str) -> str:
    plain = " ".join(text.split())
    if len(plain) <= LONGEST:
        return plain
    return plain[:LONGEST].rsplit(" ", 1)[0] + "…"


def overview_of(
    library: Library, entry: Entry, session: Session | None = None
) -> FilmOverview | None:
    """The overview of a film of a library; ``None`` if the film cannot be read."""
    try:
        return make_overview(library.footage(entry), session)
    except LongtakeError:
        return None


SHORTEST = 10.0
"""YouTube ignores a list with a chapter shorter than this."""


def markdown(name: str, overview: FilmOverview) -> str:
    """A heading, the summary, and a list of chapters."""
    lines = [f"# {_line(name)}", ""]
    if overview.summary:
        lines += [_line(overview.summary), ""]
    for chapter in overview.chapters:
        cited = "" if chapter.cited is None else f" ({clock(chapter.cited)})"
        lines.append(f"- **{clock(chapter.start)}** {_line(chapter.title)}{cited}")
    return "\n".join(lines) + "\n"


def as_json(name: str, overview: FilmOverview) -> str:
    """The overview as an object."""
    return json.dumps({"film": name, **asdict(overview)}, ensure_ascii=False, indent=2) + "\n"


def youtube(name: str, overview: FilmOverview) -> str:  # noqa: ARG001
    """Lines for the description of a video: the first at 0:00, none shorter than ten seconds."""
    kept = _long_enough(overview.chapters)
    width = (kept[-1].end if kept else 0) >= 3600
    lines = [
        f"{_short_clock(chapter.start, hours=width)} {_line(chapter.title)}" for chapter in kept
    ]
    return "\n".join(lines) + "\n"


def ffmetadata(name: str, overview: FilmOverview) -> str:
    """A metadata file for ``ffmpeg -i film.mp4 -i chapters.txt -map_metadata 1``."""
    parts = [";FFMETADATA1", f"title={_escaped(name)}"]
    for chapter in overview.chapters:
        start, end = round(chapter.start * 1000), round(chapter.end * 1000)
        parts += ["[CHAPTER]", "TIMEBASE=1/1000", f"START={start}", f"END={end}"]
        parts.append(f"title={_escaped(chapter.title)}")
    return "\n".join(parts) + "\n"


def webvtt(name: str, overview: FilmOverview) -> str:  # noqa: ARG001
    """A chapters track for ``<track kind="chapters">``."""
    cues = ["WEBVTT"]
    for number, chapter in enumerate(overview.chapters, start=1):
        start, end = clock(chapter.start, millis=True), clock(chapter.end, millis=True)
        # "-->" inside a title would begin another cue
        title = escaped(_line(chapter.title))
        cues.append(f"{number}\n{start} --> {end}\n{title}")
    return "\n\n".join(cues) + "\n"


FORMATS: Mapping[str, Callable[[str, FilmOverview], str]] = {
    "markdown": markdown,
    "json": as_json,
    "youtube": youtube,
    "ffmetadata": ffmetadata,
    "webvtt": webvtt,
}
"""Formats by name."""


def _long_enough(chapters: tuple[Chapter, ...]) -> list[Chapter]:
    """Chapters with short ones joined to the one before; the first begins at zero."""
    kept: list[Chapter] = []
    for chapter in chapters:
        if kept and (
            chapter.end - chapter.start < SHORTEST or kept[-1].end - kept[-1].start < SHORTEST
        ):
            kept[-1] = Chapter(kept[-1].start, chapter.end, kept[-1].title)
        else:
            start = chapter.start if kept else 0.0
            kept.append(Chapter(start, chapter.end, chapter.title))
    return kept


def _short_clock(seconds: float, *, hours: bool) -> str:
    whole = int(seconds)
    if hours:
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return re.sub(r"([=;#\\\n])", r"\\\1", _line(text))
