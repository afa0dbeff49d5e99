"""Clues (Algorithm 1, lines 4 to 9 and 34): what each agent looks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longtake.algorithms import sampling
from longtake.algorithms.asking import COUNTING
from longtake.footage.look import look_at
from longtake.footage.protocol import Footage
from longtake.methods.a4vl.replies import ClueReply, GateReply
from longtake.prompts import Plain
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Agent, Run
from longtake.steps.showing import length, shown_to
from longtake.steps.votes import Opinion, transcript
from longtake.types import Question

if TYPE_CHECKING:
    from longtake.methods.a4vl.method import A4VL


def explore(
    settings: A4VL, footage: Footage, question: Question, agents: Sequence[Agent], run: Run
) -> tuple[dict[str, str], set[str]]:
    """Lines 4 to 9: each agent's clue from its preview, and who must see the whole film."""
    frames = settings.n1(footage.duration)

    def first(agent: Agent) -> tuple[str, bool]:
        chance = run.random("preview", footage.name, question.text, agent.name)
        rows = sampling.one_per_bin(len(footage.times), frames, chance)  # 6
        told = {"question": question, **shown_to(footage, look_at(footage, rows.tolist()))}
        needs_all = settings.gate and needs_whole_film(question, agent, told)
        default = ClueReply(clue=question.text)
        most = settings.clue_words
        reply = ask(agent.chat, "a4vl/clue", ClueReply, default=default, words=most, **told)  # 7
        return shortened(reply.clue, most, question), needs_all

    clues, whole = {}, set()
    for agent, (clue, needs_all) in zip(agents, fanout(first, agents), strict=True):
        clues[agent.name] = clue
        if needs_all:
            whole.add(agent.name)
    return clues, whole


def needs_whole_film(question: Question, agent: Agent, told: Mapping[str, Any]) -> bool:
    """The gate of the released code; counting questions always need the whole film."""
    if COUNTING.search(question.text):
        return True
    default = GateReply(whole_video=True)
    return ask(agent.chat, "a4vl/gate", GateReply, default=default, **told).whole_video


def refine(
    settings: A4VL,
    footage: Footage,
    question: Question,
    agents: Sequence[Agent],
    judged: Sequence[Opinion],
    clues: Mapping[str, str],
) -> dict[str, str]:
    """Line 34: new clues from the opinions, their scores, and who left."""

    def again(agent: Agent) -> str:
        reply = ask(
            agent.chat,
            "a4vl/refine",
            ClueReply,
            default=ClueReply(clue=question.text),
            name=Plain(agent.name),
            question=question,
            length=length(footage),
            transcript=transcript(judged),
            clue=clues[agent.name],
            words=settings.clue_words,
        )
        return shortened(reply.clue, settings.clue_words, question)

    return dict(zip((agent.name for agent in agents), fanout(again, agents), strict=True))


def shortened(clue: str, most: int, question: Question) -> str:
    """The first ``most`` words of a clue; the question if the clue is empty."""
    return " ".join(clue.split()[:most]) or question.text
