"""AMI meetings with QMSum's questions: what is said in half an hour of talk, by whom and when.

QMSum gives a meeting as turns (speaker and words, without times), questions with written answers,
and the turns that hold each answer. AMI gives the time of every word on every speaker's channel.
Both are read as their authors release them. The words of a role in QMSum are the words of one
channel in AMI, so the two sequences of each role are matched, and a turn lasts from its first
matched word to its last.

As written answers cannot be scored without a judge, a question is asked with options: its answer
among the answers to other questions about the same meeting.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from longtake.config import PerceptionSettings, Settings, cache_folder
from longtake.errors import ConfigError
from longtake.footage.plain import PlainFootage
from longtake.footage.protocol import Footage, Material
from longtake.perception.loader import PerceptionModels
from longtake.perception.minilm import MiniLM
from longtake.perception.protocols import Reranker
from longtake.types import LETTERS, Line, Question, Segment
from longtake_bench.benchmarks import Benchmark, BenchmarkInfo, BenchmarkQuestion, LabelledQuestion
from longtake_bench.benchmarks.files import Files

ARCHIVE = "ami_public_manual_1.6.2.zip"
ROLES = {
    "PM": "Project Manager",
    "ME": "Marketing",
    "UI": "User Interface",
    "ID": "Industrial Designer",
}
"""AMI's codes of the roles, and their names in QMSum."""
AGREEING = 3
"""Tokens that must agree where the transcripts meet again after a difference."""
_SKIPS = sorted(itertools.product(range(30), range(30)), key=sum)
"""Tokens to skip in both transcripts, the fewest first."""
_TOKEN = re.compile(r"[a-z0-9']+")
_MARK = re.compile(r"\{\w+\}")
"""QMSum's marks of gaps and noises, such as ``{vocalsound}``."""


class Word(NamedTuple):
    """A spoken word with its time."""

    token: str
    start: float
    end: float


class TranscriptFootage(PlainFootage):
    """A recording known by its words alone; each line names its speaker."""

    has: frozenset[Material] = frozenset()

    def __init__(self, name: str, lines: Sequence[Line], duration: float) -> None:
        self.name, self.duration = name, duration
        self._lines = list(lines)
        self.times: NDArray[np.float64] = np.arange(int(duration) + 1, dtype=np.float64)
        self._meanings: dict[str, NDArray[np.float32]] = {}

    @cached_property
    def _sentences(self) -> MiniLM:
        return MiniLM()

    @cached_property
    def reranker(self) -> Reranker | None:  # type: ignore[override]  # loaded when needed
        """The built-in one, if it is downloaded."""
        return PerceptionModels(PerceptionSettings(), cache_folder(Settings())).reranker

    def speech(self, within: Segment | None = None) -> list[Line]:
        """The lines that overlap a stretch."""
        if within is None:
            return list(self._lines)
        return [line for line in self._lines if line.segment.overlap(within) > 0]

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """All lines."""
        return list(self._lines), []

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, each computed once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._meanings]
        if new:
            self._meanings.update(zip(new, self._sentences.texts(new), strict=True))
        return np.stack([self._meanings[text] for text in texts])


@dataclass(frozen=True)
class MeetingSource:
    """Opens meetings as footage that consists of words."""

    folder: Path

    def footage(self, video: str) -> Footage:
        """The meeting with that name, such as ``ES2007a``."""
        return _footage(self.folder, video)  # type: ignore[return-value]  # no pictures


@lru_cache(maxsize=4)  # questions about a meeting share its sentence vectors
def _footage(folder: Path, video: str) -> TranscriptFootage:
    turns = _read(folder, video)["meeting_transcripts"]
    times = turn_times(folder, video, turns)
    lines = []
    for turn, time in zip(turns, times, strict=True):
        text = " ".join(_MARK.sub(" ", turn["content"]).split())
        if time is not None and text:
            lines.append(Line(time, f"{turn['speaker']}: {text}"))
    lines.sort(key=lambda line: line.segment)
    duration = max((line.segment.end for line in lines), default=0.0)
    return TranscriptFootage(video, lines, duration)


def turn_times(
    folder: Path, meeting: str, turns: Sequence[Mapping[str, str]]
) -> list[Segment | None]:
    """From the first to the last word of each turn; ``None`` for a turn without words."""
    words = _words_by_role(folder / ARCHIVE, meeting)
    times: list[Segment | None] = [None] * len(turns)
    for role, spoken in words.items():
        numbered = []
        for number, turn in enumerate(turns):
            if turn["speaker"] == role:
                numbered += [(number, token) for token in _tokens(turn["content"])]
        tokens = [token for _, token in numbered]
        for place, word_place in matches(tokens, [word.token for word in spoken]):
            number, word = numbered[place][0], spoken[word_place]
            known = times[number] or Segment(word.start, word.end)
            start, end = min(known.start, word.start), max(known.end, word.end)
            times[number] = Segment(start, end)
    return times


def matches(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of equal tokens in two sequences that are nearly the same, in order.

    Where they differ, both go on at the nearest places that begin with the same tokens. The two are
    versions of one transcript; matching them in general takes a hundred times as long.
    """
    i = j = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            yield i, j
            i, j = i + 1, j + 1
            continue
        steps = next(
            (each for each in _SKIPS if _agree(one, i + each[0], other, j + each[1])), (1, 1)
        )
        i, j = i + steps[0], j + steps[1]


def _agree(one: Sequence[str], i: int, other: Sequence[str], j: int) -> bool:
    tokens = one[i : i + AGREEING]
    return bool(tokens) and tokens == other[j : j + AGREEING]


def _words_by_role(archive: Path, meeting: str) -> dict[str, list[Word]]:
    """Who says which words when, from AMI's annotations."""
    try:
        with zipfile.ZipFile(archive) as files:
            channels = _channels(files.read("corpusResources/meetings.xml"), meeting)
            return {
                ROLES[role]: _words(files.read(f"words/{meeting}.{channel}.words.xml"))
                for role, channel in channels.items()
            }
    except (OSError, KeyError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise ConfigError(f"{archive}: {meeting} cannot be read ({error})") from error


def _timed_meetings(archive: Path) -> set[str]:
    """The meetings whose words have times."""
    try:
        with zipfile.ZipFile(archive) as files:
            words = [Path(name).name for name in files.namelist() if name.startswith("words/")]
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{archive}: cannot be read ({error})") from error
    return {name.partition(".")[0] for name in words}


def _channels(meetings: bytes, meeting: str) -> dict[str, str]:
    for entry in ElementTree.fromstring(meetings).iter("meeting"):
        if entry.get("observation") == meeting:
            speakers = entry.iter("speaker")
            return {each.attrib["role"]: each.attrib["nxt_agent"] for each in speakers}
    raise KeyError(f"{meeting} is not in meetings.xml")


def _words(channel: bytes) -> list[Word]:
    words = []
    for element in ElementTree.fromstring(channel).iter("w"):
        start, end = element.get("starttime"), element.get("endtime")
        # punctuation has no sound, and a few words have no time
        if start is None or end is None or element.get("punc"):
            continue
        for token in _tokens(element.text or ""):
            words.append(Word(token, float(start), float(end)))
    return words


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(_MARK.sub(" ", text).lower())


def _read(folder: Path, meeting: str) -> Any:
    paths = sorted((folder / "qmsum" / "ALL").glob(f"*/{meeting}.json"))
    if not paths:
        raise ConfigError(f"{folder}/qmsum/ALL: no meeting {meeting}", key=meeting)
    return json.loads(paths[0].read_text(encoding="utf-8"))


def _items(folder: Path, path: Path, *, choice: bool) -> list[LabelledQuestion]:
    data = json.loads(path.read_text(encoding="utf-8"))
    queries = data["specific_query_list"]
    times = turn_times(folder, path.stem, data["meeting_transcripts"])
    items = []
    for number, query in enumerate(queries):
        identity = f"{path.stem}_{number}"
        spans = query["relevant_text_span"]
        evidence = [_span(times, int(first), int(last)) for first, last in spans]
        question, label = Question(query["query"]), query["answer"]
        if choice:
            others = [other["answer"] for other in queries if other["answer"] != query["answer"]]
            if not others:
                continue
            options = _options(query["answer"], others, identity)
            question = Question(query["query"], options)
            label = LETTERS[options.index(query["answer"])]
        items.append(
            LabelledQuestion(
                BenchmarkQuestion(identity, path.stem, question),
                label,
                # the meetings of one team are alike, so a team is what intervals are made over
                {"team": path.stem[:-1]},
                tuple(segment for segment in evidence if segment is not None),
            )
        )
    return items


def _options(answer: str, others: Sequence[str], identity: str) -> tuple[str, ...]:
    """The right answer among others, in an order that depends on the question alone."""
    rng = random.Random(identity)
    wrong = rng.sample(list(dict.fromkeys(others)), min(4, len(set(others))))
    options = [answer, *wrong]
    rng.shuffle(options)
    return tuple(options)


def _span(times: Sequence[Segment | None], first: int, last: int) -> Segment | None:
    known = [time for time in times[first : last + 1] if time is not None]
    if not known:
        return None
    return Segment(min(time.start for time in known), max(time.end for time in known))


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """Questions about all meetings that are in both data sets."""
    form = options.get("form", "choice")
    if form not in ("choice", "open"):
        raise ConfigError(f"form={form}: choice or open", key="form")
    files = Files(folder)
    files.note(ARCHIVE)
    timed = _timed_meetings(folder / ARCHIVE)
    items = []
    for path in sorted((folder / "qmsum" / "ALL").glob("*/*.json")):
        # QMSum also holds meetings of other corpora
        if path.stem in timed:
            files.note(str(path.relative_to(folder)))
            items += _items(folder, path, choice=form == "choice")
    if not items:
        raise ConfigError(f"{folder}: no meeting is in both qmsum/ALL and {ARCHIVE}")
    return Benchmark("meetings", items, MeetingSource(folder), files.hashes, {"form": form})


ABOUT = BenchmarkInfo(
    "AMI meetings with QMSum's questions",
    "QMSum's data folder from its authors, and AMI's manual annotations 1.6.2",
    f"qmsum/ALL/<split>/<meeting>.json, {ARCHIVE}",
    "MIT (QMSum), CC BY 4.0 (AMI)",
    load=load,
    options={"form": "choice (default): the answer among answers to other questions; or open"},
)
