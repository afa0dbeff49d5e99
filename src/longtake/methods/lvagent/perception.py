"""Perception (lines 3 to 13): what an agent looks for, and the frames it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longtake.algorithms import chunks
from longtake.events import ScoresSet, emit
from longtake.footage.clips import clip_scorer
from longtake.footage.look import Look, look_at
from longtake.footage.protocol import Footage
from longtake.methods.lvagent.discussion import Discussion
from longtake.methods.lvagent.replies import GateReply, KeyReply
from longtake.prompts import Plain
from longtake.steps.ask import ask
from longtake.steps.run import Agent
from longtake.steps.showing import length, most_spoken, shown_to, spoken_around

if TYPE_CHECKING:
    from longtake.methods.lvagent.method import LVAgent

SCALE = ("chunk_low", "chunk_high")
"""Names, on an encoder's or a head's card, of the similarities that count as 0 and as 1."""


def key_information(settings: LVAgent, discussion: Discussion, agent: Agent) -> str:
    """Stages 1 and 2: what to look for; empty if the agent must watch the whole film."""
    question = discussion.question
    default = KeyReply(key_information=question.text)
    if discussion.history:
        reply = _from_history(settings, discussion, agent, default)  # 10
    else:
        footage = discussion.footage
        chance = discussion.run.random("preview", footage.name, question.text, agent.name)
        rows = chunks.draw(range(len(footage.times)), settings.preview_frames, chance)  # 4
        told = {"question": question, **shown(settings, footage, look_at(footage, rows))}
        whole = GateReply(whole_video=True)
        if ask(agent.chat, "lvagent/gate", GateReply, default=whole, **told).whole_video:  # 5
            return ""
        most = settings.key_words
        reply = ask(agent.chat, "lvagent/key", KeyReply, default=default, words=most, **told)  # 9
    return " ".join(reply.key_information.split()[: settings.key_words]) or question.text


def _from_history(
    settings: LVAgent, discussion: Discussion, agent: Agent, default: KeyReply
) -> KeyReply:
    """Line 10: new key information from what was said in earlier rounds."""
    last = discussion.turns[agent.name].look.rows
    return ask(
        agent.chat,
        "lvagent/key_again",
        KeyReply,
        default=default,
        name=Plain(agent.name),
        question=discussion.question,
        length=length(discussion.footage),
        history=discussion.history,
        words=settings.key_words,
        subtitles=subtitles(settings, discussion.footage, last),
    )


def retrieve(
    settings: LVAgent, discussion: Discussion, key: str, drawn: Sequence[Sequence[int]]
) -> list[int]:
    """Stage 3, lines 12 and 13: the drawn frames of the chunks that fit."""
    footage, question = discussion.footage, discussion.question
    scorer = clip_scorer(footage)
    texts = footage.encode([key, question.text] if settings.question_term else [key])
    rows = footage.embeddings()
    similarity = np.stack([scorer.scores(rows[list(chunk)], texts) for chunk in drawn])
    scale = None
    # a trained head has a scale of its own, which replaces the encoder's
    known = scorer.thresholds or footage.encoder.thresholds
    if settings.calibration == "auto" and SCALE[0] in known:
        scale = (known[SCALE[0]], known[SCALE[1]])
    scores = chunks.overall(similarity, scale, calibrate=settings.calibration != "sum")  # 12
    segments = tuple(chunks.equal(footage.duration, len(drawn)))
    values = tuple(np.round(scores, 4).tolist())
    emit(ScoresSet(label=f"chunks: {key}", segments=segments, values=values))
    chosen: set[int] = set()
    for number in chunks.chosen(scores, settings.threshold):  # 13
        chosen.update(drawn[number])
    return sorted(chosen)


def shown(settings: LVAgent, footage: Footage, look: Look) -> dict[str, Any]:
    """What an agent sees and hears, as slots of its prompts."""
    return {**shown_to(footage, look), "subtitles": subtitles(settings, footage, look.rows)}


def subtitles(settings: LVAgent, footage: Footage, rows: Sequence[int]) -> Any:
    """The lines spoken around these moments."""
    return spoken_around(footage, rows, most_spoken(footage.duration, settings.subtitle_words))
