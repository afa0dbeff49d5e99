"""Agents who answer the same question: their votes, and how they judge one another.

An abstention is a vote for nothing. It supports no answer, and it counts when the others are
checked for unanimity or for a majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, Field, create_model

from longtake.agents.run import Agent
from longtake.agents.team import fanout
from longtake.llm.chat import Chat
from longtake.llm.structured.ask import ask
from longtake.llm.structured.letters import normalized_text
from longtake.prompts import Plain, phrase
from longtake.tracing import events
from longtake.types import Question


@dataclass(frozen=True, slots=True)
class Opinion:
    """What an agent says. With neither a choice nor a text it is an abstention."""

    agent: str
    choice: str | None = None
    text: str = ""
    reason: str = ""
    score: float | None = None
    """The sum of the scores it was given."""
    left: bool = False
    """Whether the agent was removed as unconvincing."""
    same_as: str | None = None
    """The answer it counts as, after answers in words were compared by meaning."""

    @property
    def vote(self) -> str | None:
        """What it counts for: the letter, or the normalised text, or nothing."""
        return self.choice or normalized_text(self.same_as or self.text) or None


@dataclass(frozen=True)
class Scores:
    """Peer scores as ``by_judge[judge][agent]``; judges without a readable reply are absent."""

    by_judge: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def sums(self, agents: Sequence[str]) -> dict[str, int]:
        """The sum of the scores each agent was given."""
        return {agent: sum(given[agent] for given in self.by_judge.values()) for agent in agents}


def tally(opinions: Sequence[Opinion]) -> Counter[str]:
    """Votes per answer, without abstentions."""
    return Counter(opinion.vote for opinion in opinions if opinion.vote is not None)


def majority(opinions: Sequence[Opinion]) -> str | None:
    """The vote of more than half of all agents, abstaining ones included; else ``None``."""
    for vote, count in tally(opinions).most_common(1):
        if count * 2 > len(opinions):
            return vote
    return None


def unanimous(opinions: Sequence[Opinion]) -> str | None:
    """The vote of every agent, or ``None``; one abstention prevents it."""
    votes = tally(opinions)
    agreed = len(votes) == 1 and votes.total() == len(opinions)
    return next(iter(votes)) if agreed else None


def leading(opinions: Sequence[Opinion]) -> Opinion | None:
    """The first opinion for the answer with the most votes; ``None`` if all abstained."""
    for vote, _ in tally(opinions).most_common(1):
        return next(opinion for opinion in opinions if opinion.vote == vote)
    return None


def transcript(opinions: Sequence[Opinion]) -> list[str]:
    """What was said, one line per agent, for the prompts of the next round."""
    lines = []
    for opinion in opinions:
        speaker = [opinion.agent]
        if opinion.left:
            speaker.append(f"[{phrase('shared', 'unconvincing')}]")
        if opinion.score is not None:
            speaker.append(f"({phrase('shared', 'score', score=Plain(f'{opinion.score:g}'))})")
        answer = opinion.choice or opinion.text or phrase("shared", "no_answer")
        lines.append(f"{' '.join(speaker)}: {answer}. {opinion.reason}".rstrip())
    return lines


def peer_scores(
    agents: Sequence[Agent],
    opinions: Sequence[Opinion],
    question: Question,
    *,
    prompt: str = "shared/score",
) -> Scores:
    """Let every agent score every opinion from 1 to 10, its own included, from text alone."""
    # the scores are for everybody who spoke, judges or not
    names = [opinion.agent for opinion in opinions]
    form = _score_form(names)
    lines = transcript(opinions)

    def judge(agent: Agent) -> dict[str, int] | None:
        card = ask(
            agent.chat,
            prompt,
            form,
            name=Plain(agent.name),
            question=question,
            transcript=lines,
            default=None,
        )
        if card is None:
            return None
        return {
            name: getattr(card, f"agent_{number}") for number, name in enumerate(names, start=1)
        }

    cards = zip(agents, fanout(judge, agents), strict=True)
    return Scores({agent.name: card for agent, card in cards if card is not None})


def judge_all(
    agents: Sequence[Agent], opinions: Sequence[Opinion], question: Question
) -> list[Opinion]:
    """The opinions with the sums of their peer scores."""
    sums = peer_scores(agents, opinions, question).sums([opinion.agent for opinion in opinions])
    return [replace(opinion, score=sums[opinion.agent]) for opinion in opinions]


def prune(
    agents: Sequence[Agent], opinions: Sequence[Opinion], question: Question
) -> tuple[list[Agent], list[Opinion]]:
    """Remove the agent with the lowest sum of peer scores; of a tie, the one listed later.

    Returns the agents that stay, and all opinions with their scores and the removed one marked.
    """
    judged = judge_all(agents, opinions, question)
    # min() returns the first of a tie, which in reversed order is the agent listed last
    weakest = min(reversed(judged), key=lambda opinion: opinion.score or 0).agent
    events.note(
        "pruned", agent=weakest, scores={opinion.agent: opinion.score for opinion in judged}
    )
    staying = [agent for agent in agents if agent.name != weakest]
    return staying, [replace(opinion, left=opinion.agent == weakest) for opinion in judged]


class Groups(BaseModel):
    """Answers that say the same, by number."""

    groups: list[list[int]] = Field(description="the numbers of the answers, group by group")


def group_answers(chat: Chat, question: Question, answers: Sequence[str]) -> list[list[int]]:
    """Group the answers to an open-ended question by meaning: lists of indices, in order.

    Answers that differ only in case and punctuation are grouped without asking. These groups also
    stand if the reply is unreadable or does not place every answer exactly once.
    """
    alike: dict[str, list[int]] = {}
    for index, answer in enumerate(answers):
        alike.setdefault(normalized_text(answer), []).append(index)
    sets = list(alike.values())
    if len(sets) < 2:
        return sets
    listed = [f"{number}: {answers[indices[0]]}" for number, indices in enumerate(sets, start=1)]
    reply = ask(
        chat, "shared/same_meaning", Groups, question=question, answers=listed, default=None
    )
    if reply is None:
        return sets
    # a grouping that drops or repeats an answer would count votes wrongly
    placed = sorted(number for group in reply.groups for number in group)
    if placed != list(range(1, len(sets) + 1)):
        events.note(
            "groups_unused", why="not every answer is in exactly one group", groups=reply.groups
        )
        return sets
    merged = []
    for group in reply.groups:
        if group:
            merged.append(sorted(index for number in group for index in sets[number - 1]))
    return sorted(merged)


def by_meaning(chat: Chat, question: Question, opinions: Sequence[Opinion]) -> list[Opinion]:
    """Give opinions whose answers say the same the same vote; letters need no comparison."""
    in_words = [
        number for number, opinion in enumerate(opinions) if opinion.text and opinion.choice is None
    ]
    if question.options or len(in_words) < 2:
        return list(opinions)
    compared = list(opinions)
    for group in group_answers(chat, question, [opinions[number].text for number in in_words]):
        first = opinions[in_words[group[0]]].text
        for place in group:
            number = in_words[place]
            compared[number] = replace(opinions[number], same_as=first)
    return compared


def _score_form(names: Sequence[str]) -> type[BaseModel]:
    """A reply type with one score per agent; fields are numbered because names can be anything."""
    fields: dict[str, Any] = {
        f"agent_{number}": (int, Field(ge=1, le=10, description=f"score of {name}"))
        for number, name in enumerate(names, start=1)
    }
    form: type[BaseModel] = create_model("Scores", **fields)
    return form
