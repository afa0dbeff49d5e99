"""Answers as text, Markdown, a self-contained HTML page, or edit lists.

The command line and the server both use this module, so that they cite in the same way.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from longtake._util.timecode import clock
from longtake.agents.answer import claims
from longtake.algorithms import lexical
from longtake.index.film import Film
from longtake.index.search import covered
from longtake.llm.backends.socratic import CAPTION_LABELS
from longtake.types import LETTERS, Answer, Evidence, Segment, Usage
from longtake.video.subtitles import srt

Picture: TypeAlias = Callable[[int, float], bytes]
"""Returns the JPEG for a citation, by its index and time; empty if its film is gone."""
Link: TypeAlias = Callable[[int, float], str]
"""Returns the URL at which the film of a citation, by its index, plays from a time."""

TAGS = CAPTION_LABELS[0]
"""The label of a sentence that only guesses what a picture may show, which is no evidence."""
_TAGS = re.compile(rf"{TAGS}: .*?(?:\.(?=\s+(?:{'|'.join(CAPTION_LABELS)}): |\s*$)|$)")
LABELS_BEGIN = tuple(f"{label}: " for label in CAPTION_LABELS)
_LABEL = re.compile(rf"(?:{'|'.join(CAPTION_LABELS[1:])}): ")
KINDS = {
    "frame": "picture",
    "caption": "picture, described",
    "speech": "said",
    "subtitle": "said (subtitles)",
    "onscreen": "text on screen",
}
"""Names of the sources of evidence."""
CALIBRATED = "calibrated"
"""The note of a run whose confidence is a calibrated probability."""
STATUS = {
    "answered": "",
    "unsupported": "no moment was found that supports this answer",
    "budget_spent": "the budget ran out; this is the best answer so far",
    "cancelled": "cancelled; this is the best answer so far",
    "not_credible": "the method's own review rejects this answer",
}
"""What the status of an answer means."""
UNCHECKED = {
    "budget": "not checked against the film: the budget ended first",
    "model": "not checked against the film: the model that checks failed",
    "unreadable": "not checked against the film: the model's check could not be read",
    "reranker": "not checked against the film: run 'longtake models pull reranker' (34 MB)",
}
"""Why an answer was not checked."""
WORDS = ((0.85, "high"), (0.6, "fair"), (0.35, "low"), (0.0, "very low"))
"""Words for confidence, with the least confidence for each."""


@dataclass(frozen=True)
class RenderedAnswer:
    """An answer with its question and film."""

    question: str
    film: str
    method: str
    answer: Answer | None
    usage: Usage
    options: Sequence[str] = ()
    unseen: Sequence[str] = ()
    """What was not looked at."""
    calibrated: bool = False
    """Whether the confidence is a calibrated probability."""
    sources: Sequence[str] = ()
    """The film of each citation, if several films were asked."""

    @property
    def evidence(self) -> Sequence[Evidence]:
        """The citations."""
        return self.answer.evidence if self.answer else ()

    def film_of(self, place: int) -> str:
        """The film of a citation."""
        return self.sources[place] if place < len(self.sources) else self.film

    def where(self, place: int, cited: Evidence) -> str:
        """The time of a citation, with its film if several were asked."""
        times = times_of(cited)
        return f"{self.film_of(place)} @ {times}" if self.sources else times


def answer_text(answer: Answer | None, *, none: str = "(no answer)") -> str:
    """The chosen option with its letter, or the text of an open answer."""
    if answer is None:
        return none
    if answer.choice:
        return f"{answer.choice}. {answer.text}"
    return answer.text or none


def with_footnotes(answer: Answer) -> str:
    """The claims of an answer, each followed by the numbers of its citations; may be empty."""
    marked = []
    for claim in claims(answer):
        notes = "".join(f"[{place + 1}]" for place in claim.citations)
        marked.append(f"{claim.text} {notes}".strip())
    return " ".join(marked)


def lookalikes(answer: Answer) -> str:
    """The moments closest to the question, if there is no answer."""
    if not answer.nearest:
        return ""
    if answer.nearest[0].source != "frame":
        lines = [f"{clock(each.segment.start)} “{each.text}”" for each in answer.nearest]
        return f"not an answer, but the closest lines: {', '.join(lines)}"
    times = ", ".join(clock(each.segment.start) for each in answer.nearest)
    return f"not an answer, but a search for “{answer.nearest[0].text}” finds pictures at {times}"


def kind_of(cited: Evidence) -> str:
    """The name of a citation's source."""
    if _is_perceived(cited):
        return "read and heard" if quoted(cited) else KINDS["frame"]
    return KINDS.get(cited.source, cited.source)


def quoted(cited: Evidence) -> str:
    """The words of a citation without guesses at what a picture may show; may be empty."""
    words = cited.text
    if _is_perceived(cited):
        words = _LABEL.sub("", _TAGS.sub("", words))
    return " ".join(words.split())


QUOTED = 8
"""Words of a quotation that are shown before the first of what it is quoted for."""


def from_words(text: str, about: str) -> str:
    """The text from shortly before the part with most words of ``about``."""
    words = text.split()
    wanted = lexical.lemmas([about])
    hits = [bool(lexical.lemmas([word]) & wanted) for word in words]
    # as many words as fit into a line
    best = max(range(len(words)), key=lambda place: sum(hits[place : place + 12]), default=0)
    first = next((place for place in range(best, len(words)) if hits[place]), 0)
    begin = first - QUOTED // 2
    return text if begin <= QUOTED // 2 else f"… {' '.join(words[begin:])}"


def _is_perceived(cited: Evidence) -> bool:
    """Whether this is a caption by perception alone, whose sentences have labels."""
    return cited.source == "caption" and cited.text.startswith(LABELS_BEGIN)


def plural(count: int, noun: str) -> str:
    """``1 film``, ``2 films``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def times_of(cited: Evidence) -> str:
    """``00:12:31–00:12:34``, or only the start if it is shorter than a second."""
    start, end = cited.segment.start, cited.segment.end
    return f"{clock(start)}–{clock(end)}" if end - start >= 1 else clock(start)


def sureness(answer: Answer, *, calibrated: bool = False) -> str:
    """``confidence high (90%)``; without a confidence, the number of supporting moments."""
    if answer.confidence is None:
        moments = plural(len(answer.evidence), "moment")
        return f"supported by {moments}" if answer.evidence else ""
    word = next((word for least, word in WORDS if answer.confidence >= least), WORDS[-1][1])
    stated = "" if calibrated else ", not calibrated"
    return f"confidence {word} ({answer.confidence:.0%}{stated})"


def outcome(answer: Answer, usage: Usage) -> str:
    """What the status of an answer means, or why there is no answer; empty for a good answer."""
    if answer.status != "abstained":
        known = (STATUS[answer.status], UNCHECKED.get(answer.unchecked, ""))
        return "; ".join(filter(None, known))
    unread = "the model's replies could not be read" if usage.calls else "nothing to answer from"
    return answer.reason or f"no answer: {unread}"


def unseen(film: Film, moments: Iterable[float]) -> list[str]:
    """What was not looked at: the longest stretch without a look, speech, and on-screen text."""
    missing = []
    stretch = longest_gap(moments, film.duration) if film.has else (0.0, 0.0)
    if stretch is None:
        missing.append("the pictures")
    # every method leaves out shorter stretches
    elif stretch[1] - stretch[0] >= max(60.0, 0.1 * film.duration):
        missing.append(
            f"{clock(stretch[0])}–{clock(stretch[1])}, the longest stretch without a look"
        )
    known = covered(film)
    for source in ("speech", "onscreen"):
        there = film.video.info.audio if source == "speech" else film.has
        if known[source] < 1 and there:
            name = KINDS[source] if source == "onscreen" else source
            share = f"{known[source]:.0%} indexed" if known[source] else "not indexed"
            missing.append(f"{name} ({share})")
    if film.words.speech_note:
        missing.append(film.words.speech_note)
    return missing


def longest_gap(moments: Iterable[float], duration: float) -> tuple[float, float] | None:
    """The longest stretch without a look; ``None`` if there were no looks."""
    looks = sorted(moments)
    if not looks:
        return None
    edges = [0.0, *looks, duration]
    return max(pairwise(edges), key=lambda pair: pair[1] - pair[0])


def _facts(rendered: RenderedAnswer) -> str:
    used = rendered.usage
    answer = rendered.answer
    sure = sureness(answer, calibrated=rendered.calibrated) if answer else ""
    cost = "cost unknown" if used.cost is None else f"${used.cost:.4f}"
    looked = f"{plural(used.frames, 'frame')}, {plural(used.calls, 'call')}"
    spent = f"{looked}, {cost}, {used.seconds:.1f} s"
    parts = [rendered.film, rendered.method, sure, spent]
    return " · ".join(part for part in parts if part)


STYLE = """
body{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1.25rem;
color:#1c2024;background:#fff}h1{font-size:1.25rem;line-height:1.35;margin:0 0 1rem}
.answer{font-size:1.35rem;font-weight:600;margin:0 0 .5rem}.meta{color:#60646c;font-size:.875rem}
sup a{font-size:.8rem;font-weight:400;text-decoration:none}
figure{margin:0;border:1px solid #e0e1e6;border-radius:10px;overflow:hidden}
figure:target{outline:3px solid #0090ff}
figure img{display:block;width:100%}figcaption{padding:.6rem .8rem;font-size:.9rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:1rem;
margin:1.5rem 0}@media(prefers-color-scheme:dark){body{background:#111113;color:#edeef0}
figure{border-color:#363a3f}.meta{color:#b0b4ba}}
"""


def as_html(rendered: RenderedAnswer, picture: Picture, link: Link | None = None) -> str:
    """A page with embedded pictures and escaped texts; times are links if ``link`` is given."""
    answer = rendered.answer
    cards = "".join(
        _card(place, rendered, cited, picture, link)
        for place, cited in enumerate(rendered.evidence)
    )
    reason = f"<p>{_text(answer.reason)}</p>" if answer and answer.reason else ""
    listed = zip(LETTERS, rendered.options, strict=False)
    options = "".join(f"<li>{letter}. {_text(option)}</li>" for letter, option in listed)
    unseen = f'<p class="meta">Not looked at: {_text("; ".join(rendered.unseen))}</p>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(rendered.question)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{_text(rendered.question)}</h1>"
        + (f'<ul class="meta">{options}</ul>' if options else "")
        + f'<p class="answer">{_claimed(answer)}</p>{reason}'
        f'<p class="meta">{_text(_facts(rendered))}</p>'
        + (unseen if rendered.unseen else "")
        + f'<div class="cards">{cards}</div>{_nearest(answer, picture)}</body></html>'
    )


def _nearest(answer: Answer | None, picture: Picture) -> str:
    """The frames that a search finds if there is no answer."""
    if answer is None or not answer.nearest:
        return ""
    figures = "".join(
        f"<figure>{_still(picture(place, each.segment.middle), times_of(each))}"
        f"<figcaption>{times_of(each)}</figcaption></figure>"
        for place, each in enumerate(answer.nearest)
    )
    return f'<p class="meta">{_text(lookalikes(answer))}</p><div class="cards">{figures}</div>'


def _still(jpeg: bytes, times: str) -> str:
    if not jpeg:
        return ""
    data = base64.b64encode(jpeg).decode()
    return f'<img alt="Frame at {times}" src="data:image/jpeg;base64,{data}">'


def _claimed(answer: Answer | None) -> str:
    """The answer in HTML, with links to the citations of each claim."""
    parts = []
    for claim in claims(answer) if answer else ():
        numbers = [place + 1 for place in claim.citations]
        notes = "".join(f'<sup><a href="#c{number}">[{number}]</a></sup>' for number in numbers)
        parts.append(f"{_text(claim.text)}{notes}")
    return " ".join(parts) or _text(answer_text(answer))


def _card(
    place: int, rendered: RenderedAnswer, cited: Evidence, picture: Picture, link: Link | None
) -> str:
    number, words = place + 1, quoted(cited)
    quote = f"<br>“{_text(words)}”" if words else ""
    shown = f"<strong>{_text(rendered.where(place, cited))}</strong>"
    if link is not None:
        address = link(place, cited.segment.start)
        shown = f'<a href="{_text(address)}">{shown}</a>'
    frame = _still(picture(place, cited.segment.middle), times_of(cited))
    return (
        f'<figure id="c{number}">{frame}'
        f"<figcaption>[{number}] {shown} {_text(kind_of(cited))}{quote}"
        "</figcaption></figure>"
    )


def as_markdown(rendered: RenderedAnswer, link: Link) -> str:
    """Markdown in which times are links."""
    answer = rendered.answer
    answered = (with_footnotes(answer) if answer else "") or answer_text(answer)
    lines = [f"## {_mark(rendered.question)}", "", f"**{_mark(answered)}**", ""]
    if answer and answer.reason:
        lines += [_mark(answer.reason), ""]
    for place, cited in enumerate(rendered.evidence):
        words = quoted(cited)
        quote = f" “{_mark(words)}”" if words else ""
        time = f"[{_mark(rendered.where(place, cited))}]({link(place, cited.segment.start)})"
        lines.append(f"{place + 1}. {time} {_mark(kind_of(cited))}{quote}")
    if answer and answer.nearest:
        lines += [_mark(lookalikes(answer))]
    if rendered.unseen:
        lines += ["", f"Not looked at: {_mark('; '.join(rendered.unseen))}"]
    lines += ["", f"*{_mark(_facts(rendered))}*", ""]
    return "\n".join(lines)


SHORTEST = 2.0
"""Minimum length of a citation in an editor or a reel, in seconds."""


def shown_stretch(cited: Evidence) -> Segment:
    """The stretch of a citation for an editor or a reel."""
    start, end = cited.segment.start, cited.segment.end
    return Segment(start, max(end, start + SHORTEST))


def as_srt(rendered: RenderedAnswer) -> str:
    """The citations as subtitles of the film."""
    cues = []
    for cited in rendered.evidence:
        stretch = shown_stretch(cited)
        cues.append((stretch.start, stretch.end, quoted(cited) or kind_of(cited)))
    return srt(cues)


def _line(text: str) -> str:
    return " ".join(text.split())


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def _mark(value: str) -> str:
    """One line of Markdown, escaped."""
    return re.sub(r"([\\`*_\[\]<>#|!])", r"\\\1", _line(value))
