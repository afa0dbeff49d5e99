"""Occurrences and speakers in AMI meetings, and occurrences in laboratory films, without a model.

    python benchmarks/meeting_words.py FOLDER [SEED]    # as `longtake eval meetings --data FOLDER`
    python benchmarks/meeting_words.py --moments MODEL  # with a model, laboratory films only

Occurrences: 100 phrases of one to three words that a meeting holds twice or more, half of them
asked for in another form of their last word, in lines of at most six words, as subtitles have them.
The truth comes from the uncut turns of each speaker, by the endings of English words and a list.

Laboratory films: ``List every time that … is mentioned.`` for the twelve most frequent words of
each of three films of 20 minutes; the truth is every such word, in any form, that is said or
written there.

With a model: ``List every moment when a price is told.`` and the like on the same films, where no
word is named; the model reads everything, small or not.

Speakers: the questions of ``meetings_who.tsv`` and ``meetings_who_again.tsv``, written by hand
about lines that were drawn at random and say something; the speaker of the line is the truth. The
rule was chosen on those about the teams ES. The second file is in words further from the lines.
"""

from __future__ import annotations

import csv
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from longtake.agents.run import Run
from longtake.algorithms.lexical import STOP, content_words
from longtake.algorithms.passages import NEAR, occurrences
from longtake.algorithms.speakers import by_speaker, speaker
from longtake.config import Settings
from longtake.footage.protocol import Footage
from longtake.methods.lookup.method import Lookup
from longtake.retrieval.passages import read
from longtake.retrieval.who_said import OVERLAP_SHARE, who
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import Line, Question, Segment
from longtake_bench.benchmarks import lab
from longtake_bench.benchmarks.meetings import MeetingSource

WORD = re.compile(r"(?<!')[a-z]+(?:'[a-z]+)?")
IRREGULAR = {
    "make": {"made"},
    "find": {"found"},
    "feel": {"felt"},
    "think": {"thought"},
    "take": {"took", "taken"},
    "give": {"gave", "given"},
    "keep": {"kept"},
    "come": {"came"},
    "write": {"wrote", "written"},
}
"""Of the words that are drawn."""


def forms(word: str) -> set[str]:
    """Forms of a word that is a base form."""
    stem = word.removesuffix("e")
    doubled = word + word[-1]
    made = {word, f"{word}s", f"{word}es", f"{word}ed", f"{word}ing", f"{stem}ed", f"{stem}ing"}
    made |= {f"{doubled}ed", f"{doubled}ing"}
    if word.endswith("y"):
        made |= {f"{word[:-1]}ies", f"{word[:-1]}ied"}
    return (made | IRREGULAR.get(word, set())) - {"united"}


def truth(phrase: Sequence[str], lines: list[Line]) -> Counter[str]:
    """How often each speaker says the phrase, in any form."""
    parts = ["|".join(sorted(forms(w) if w not in STOP else {w}, key=len)[::-1]) for w in phrase]
    words = r"[^a-z']+".join(f"(?:{part})(?:'s)?" for part in parts)
    pattern = re.compile(rf"(?<![a-z']){words}(?![a-z'])")
    counts: Counter[str] = Counter()
    for name, own in by_speaker(lines).items():
        text, end = "", 0.0
        for line in own:
            text += (" " if line.segment.start - end <= NEAR else " 0 ") + line.text
            end = line.segment.end
        counts[name] = len(pattern.findall(text.lower().replace("_", " ")))
    return +counts


def cut(line: Line) -> list[Line]:
    """A line as subtitles of at most six words."""
    name, text = speaker(line.text)
    words = text.split()
    step = line.segment.duration / max(1, len(words))
    parts = []
    for first in range(0, len(words), 6):
        some = words[first : first + 6]
        start = line.segment.start + first * step
        parts.append(Line(Segment(start, start + len(some) * step), f"{name}: {' '.join(some)}"))
    return parts


def words_of(line: Line) -> list[str]:
    """The words of a line."""
    return WORD.findall(speaker(line.text)[1].lower().replace("_", " "))


def is_plain(word: str) -> bool:
    """Whether a word may be a base form that somebody asks for."""
    filler = word in STOP or word in ("yeah", "okay", "gonna", "wanna", "mean", "just", "really")
    filler = filler or "'" in word or any(word in past for past in IRREGULAR.values())
    return len(word) > 3 and not filler and not word.endswith(("s", "ed", "ing", "er", "est", "ly"))


def repeated(lines: list[Line], size: int, others: set[str] | None) -> list[tuple[str, ...]]:
    """Phrases that are said twice or more; with ``others``, whose last word has a form in it."""
    grams: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        grams.update(zip(*(words_of(line)[first:] for first in range(size)), strict=False))
    usual = []
    for gram, times in grams.items():
        in_other_form = others is None or forms(gram[-1]) & others - {gram[-1]}
        if times > 1 and is_plain(gram[0]) and is_plain(gram[-1]) and in_other_form:
            usual.append(gram)
    return usual


def count_phrases(source: MeetingSource, meetings: list[str]) -> None:
    """Print for how many phrases all occurrences are found, and no others."""
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 41)
    spoken = {meeting: source.footage(meeting).speech() for meeting in meetings}
    vocabulary = {word for lines in spoken.values() for line in lines for word in words_of(line)}
    right = occurred = crossing = 0
    for number in range(100):
        lines = spoken[meetings[number % len(meetings)]]
        # every second phrase is asked for in a form that somebody uses in some meeting
        others = vocabulary if number % 2 else None
        usual: list[tuple[str, ...]] = []
        for size in range(1 + number % 3, 0, -1):
            # not every meeting repeats three words in a row
            usual = usual or repeated(lines, size, others)
        phrase = rng.choice(sorted(usual))
        asked = list(phrase)
        if others is not None:
            asked[-1] = rng.choice(sorted(forms(phrase[-1]) & vocabulary - {phrase[-1]}))
        short = sorted((part for line in lines for part in cut(line)), key=lambda one: one.segment)
        found = occurrences(" ".join(asked), short)
        by_name, wanted = Counter(speaker(hit.text)[0] for hit in found), truth(phrase, lines)
        right += by_name == wanted
        occurred += wanted.total()
        crossing += sum(len(speaker(hit.text)[1].split()) > 6 for hit in found)
        if by_name != wanted:
            print(f"  {' '.join(asked)}: {dict(by_name)} found, {dict(wanted)} by the truth")
    print(f"phrases: {right} of 100 right, {occurred} occurrences, {crossing} across lines")


def lab_films() -> list[Footage]:
    """Three films of 20 minutes."""
    source = lab.LabSource()
    return [source.footage(f"{seed}:20") for seed in (10, 11, 12)]


def list_in_lab() -> None:
    """Print how many of the listed moments are right, and how many are missing."""
    counts: Counter[str] = Counter()
    for footage in lab_films():
        lines = [("speech", line) for line in footage.speech()]
        lines += [("onscreen", line) for line in footage.onscreen()]
        found = [word for _, line in lines for word in content_words(line.text)]
        usual = Counter(word for word in found if len(word) > 3 and word.isalpha())
        for word, _ in usual.most_common(12):
            question = Question(f"List every time that {word} is mentioned.")
            answer = Lookup().answer(footage, question, Run({}))
            pattern = re.compile(rf"\b{word}(?:s|es|ed|d|ing)?\b", re.IGNORECASE)
            left = [(source, one) for source, one in lines for _ in pattern.findall(one.text)]
            for cited in answer.evidence:
                fitting = [
                    each
                    for each in left
                    if each[0] == cited.source and each[1].segment.overlap(cited.segment) > 0
                ]
                counts["right" if fitting else "wrong"] += 1
                if fitting:
                    left.remove(fitting[0])
            counts["missing"] += len(left)
            counts["says what was not looked at"] += "pictures not looked at" in answer.text
    print(f"laboratory films: {dict(counts)}")


MOMENTS = {
    "somebody tells a price": "costs",
    "somebody tells who owns something": "belongs",
    "somebody tells a weight": "weighs",
    "somebody tells when something leaves": "leaves",
}
"""Moments that narrators of laboratory films have, and the word that each of them holds."""


def moments_in_lab(model: str) -> None:
    """Print how many of the moments that a model names are such, and how many are missing."""
    counts: Counter[str] = Counter()
    session = Session(Settings(), ModelAssignment((model,)))
    for footage in lab_films():
        for moment, word in MOMENTS.items():
            question = Question(f"List every moment when {moment}.")
            # small models are not asked by `answer`
            passages = read(footage, None)
            answer = Lookup().moments(footage, question, passages, None, session.reader())
            right = sum(word in cited.text for cited in answer.evidence)
            counts["right"] += right
            counts["wrong"] += len(answer.evidence) - right
            counts["missing"] += sum(word in line.text for line in footage.speech()) - right
            counts["says what was not looked at"] += "pictures not looked at" in answer.text
    print(f"moments in laboratory films: {dict(counts)}")


def ask_who(source: MeetingSource) -> None:
    """Print how many speakers are right, wrong or unknown, by whether another's line overlaps."""
    outcomes: Counter[tuple[str, ...]] = Counter()
    rows = []
    for name in ("meetings_who", "meetings_who_again"):
        with (Path(__file__).parent / f"{name}.tsv").open(encoding="utf-8") as file:
            rows += [(name, *row) for row in csv.reader(file, delimiter="\t")]
    for questions, meeting, start, question in sorted(rows, key=lambda row: row[1]):
        lines = source.footage(meeting).speech()
        at = [each for each in lines if abs(each.segment.start - float(start)) < 0.02]
        line = max(at, key=lambda each: len(each.text))
        name = speaker(line.text)[0]
        others = [each.segment for each in lines if speaker(each.text)[0] != name]
        share = max(map(line.segment.overlap, others)) / line.segment.duration
        answer = who(source.footage(meeting), Question(question), lines)
        named = speaker(answer.evidence[0].text)[0] if answer.evidence else "unknown"
        outcome = "right" if named == name else "unknown" if named == "unknown" else "wrong"
        teams = "ES" if meeting.startswith("ES") else "others"
        crowd = "overlapped" if share > OVERLAP_SHARE else "alone"
        outcomes[questions, teams, crowd, outcome] += 1
        if answer.evidence:
            cited = answer.evidence[0].segment
            elses = [one.segment for one in lines if speaker(one.text)[0] != named]
            if max(map(cited.overlap, elses)) > OVERLAP_SHARE * cited.duration:
                outcomes["both", "all", "cited line overlapped", outcome] += 1
        if outcome != "right":
            print(f"  {meeting} {question} {named}, not {name}")
    for group, count in sorted(outcomes.items()):
        print(f"speakers: {', '.join(group)}: {count}")


def main() -> None:
    """Print all."""
    if sys.argv[1] == "--moments":
        moments_in_lab(sys.argv[2])
        return
    folder = Path(sys.argv[1])
    source = MeetingSource(folder)
    count_phrases(source, sorted(path.stem for path in (folder / "qmsum").rglob("*.json")))
    list_in_lab()
    ask_who(source)


if __name__ == "__main__":
    main()
