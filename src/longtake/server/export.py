"""An answer to take away: one HTML file that needs nothing else, or Markdown with time links."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from urllib.parse import quote

from longtake.server.journal import RunRecord
from longtake.timecode import clock
from longtake.types import Answer, Evidence

Picture = Callable[[float], bytes]
"""The JPEG of the frame at a time."""

STYLE = """
body{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1.25rem;
color:#1c2024;background:#fff}h1{font-size:1.25rem;line-height:1.35;margin:0 0 1rem}
.answer{font-size:1.35rem;font-weight:600;margin:0 0 .5rem}.meta{color:#60646c;font-size:.875rem}
figure{margin:0;border:1px solid #e0e1e6;border-radius:10px;overflow:hidden}
figure img{display:block;width:100%}figcaption{padding:.6rem .8rem;font-size:.9rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:1rem;
margin:1.5rem 0}@media(prefers-color-scheme:dark){body{background:#111113;color:#edeef0}
figure{border-color:#363a3f}.meta{color:#b0b4ba}}
"""


def said(answer: Answer | None) -> str:
    """The answer in words."""
    if answer is None:
        return "(no answer)"
    if answer.choice:
        return f"{answer.choice}. {answer.text}"
    return answer.text or "(no answer)"


def _facts(record: RunRecord) -> str:
    answer, used = record.answer, record.usage
    confidence = "unknown"
    if answer is not None and answer.confidence is not None:
        confidence = f"{answer.confidence:.0%}"
    cost = "cost unknown" if used.cost is None else f"${used.cost:.4f}"
    return (
        f"{record.film_name} · {record.ask.method} · confidence {confidence} · "
        f"{used.frames} frames, {used.calls} calls, {cost}, {used.seconds:.1f} s"
    )


def as_html(record: RunRecord, picture: Picture) -> str:
    """One page with its pictures inside; whatever the film or a model said is text."""
    answer = record.answer
    cards = "".join(_card(each, picture) for each in answer.evidence) if answer else ""
    reason = f"<p>{_text(answer.reason)}</p>" if answer and answer.reason else ""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    options = "".join(
        f"<li>{letter}. {_text(option)}</li>"
        for letter, option in zip(letters, record.ask.options, strict=False)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(record.ask.question)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{_text(record.ask.question)}</h1>"
        + (f'<ul class="meta">{options}</ul>' if options else "")
        + f'<p class="answer">{_text(said(answer))}</p>{reason}'
        f'<p class="meta">{_text(_facts(record))}</p><div class="cards">{cards}</div></body></html>'
    )


def _card(cited: Evidence, picture: Picture) -> str:
    data = base64.b64encode(picture(cited.segment.middle)).decode()
    quoted = f"<br>“{_text(cited.text)}”" if cited.text else ""
    times = f"{clock(cited.segment.start)}–{clock(cited.segment.end)}"
    return (
        f'<figure><img alt="Frame at {times}" src="data:image/jpeg;base64,{data}">'
        f"<figcaption><strong>{times}</strong> {_text(cited.source)}{quoted}</figcaption></figure>"
    )


def as_markdown(record: RunRecord, home: str) -> str:
    """Markdown whose times link to the page of this server."""
    answer = record.answer
    lines = [f"## {_mark(record.ask.question)}", "", f"**{_mark(said(answer))}**", ""]
    if answer and answer.reason:
        lines += [_mark(answer.reason), ""]
    for cited in answer.evidence if answer else ():
        start = cited.segment.start
        link = f"{home}/film/{quote(record.ask.film)}?t={start:.2f}"
        quoted = f" “{_mark(cited.text)}”" if cited.text else ""
        lines.append(f"- [{clock(start)}]({link}) {_mark(cited.source)}{quoted}")
    lines += ["", f"*{_mark(_facts(record))}*", ""]
    return "\n".join(lines)


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def _mark(value: str) -> str:
    """One line of Markdown in which nothing is markup."""
    plain = " ".join(value.split())
    for sign in "\\`*_[]<>#|!":
        plain = plain.replace(sign, f"\\{sign}")
    return plain
