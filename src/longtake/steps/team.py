"""Agents who answer the same question, judge one another, and are counted.

An abstention is a vote for nothing: it stands for no answer, and it keeps the others from being unanimous or
from being more than half.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from longtake import events
from longtake.errors import ConfigError
from longtake.models.cache import ReplyStore
from longtake.models.catalogue import Catalogue
from longtake.models.chat import Chat
from longtake.models.layers import Carded
from longtake.models.replies.letters import plain
from longtake.models.replies.reading import explain
from longtake.models.witness import Witness
from longtake.prompts import Plain
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Agent
from longtake.types import Question


class Member(BaseModel):
    """``[[agent]]`` in a team file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    model: str
    temperature: float | None = None
    max_new_tokens: int | None = None
    channels: tuple[str, ...] = ()


DEFAULT_TEAM = (
    Member(name="reader", model="socratic/reader"),
    Member(name="listener", model="socratic/listener"),
    Member(name="looker", model="socratic/looker"),
)
"""The team with nothing configured: one reads what is on screen, one listens, one looks."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What an agent says. Neither a choice nor a text is an abstention."""

    agent: str
    choice: str | None = None
    text: str = ""
    reason: str = ""
    score: float | None = None
    """The sum of what its peers gave it."""
    left: bool = False
    """The agent was sent away as unconvincing."""
    same_as: str | None = None
    """An answer in words that says the same, where answers were compared by meaning."""

    @property
    def vote(self) -> str | None:
        """What it counts for: the letter, else the text as compared, else nothing."""
        return self.choice or plain(self.same_as or self.text) or None


@dataclass(frozen=True)
class Scores:
    """What judges gave: ``by_judge[judge][agent]``. A judge whose reply could not be read is not in it."""

    by_judge: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def sums(self, agents: Sequence[str]) -> dict[str, int]:
        """The sum each agent got from the judges that could be read."""
        return {agent: sum(given[agent] for given in self.by_judge.values()) for agent in agents}


def read_team(path: Path) -> tuple[Member, ...]:
    """The members in a team file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML ({error})") from error
    if data.keys() != {"agent"} or not isinstance(data["agent"], list) or not data["agent"]:
        raise ConfigError(f"{path}: a team file holds [[agent]] tables and nothing else")
    try:
        members = TypeAdapter(tuple[Member, ...]).validate_python(data["agent"])
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error)}") from error
    if len({member.name for member in members}) < len(members):
        raise ConfigError(f"{path}: two agents have the same name")
    return members


def write_team(path: Path, members: Sequence[Member], notes: Sequence[str] = ()) -> None:
    """A team file, its notes as comments; whole, or not at all."""
    blocks = ["".join(f"# {' '.join(note.split())}\n" for note in notes)] if notes else []
    for member in members:
        known = member.model_dump(mode="json", exclude_defaults=True)
        # a JSON string, number or list of strings is the same in TOML
        blocks.append(
            "[[agent]]\n"
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in known.items())
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text("\n".join(blocks), encoding="utf-8")
    draft.replace(path)


def open_team(
    catalogue: Catalogue,
    members: Sequence[Member],
    *,
    witness: Witness | None = None,
    replies: ReplyStore | None = None,
) -> tuple[Agent, ...]:
    """The agents of a team, their models opened."""
    agents = []
    for member in members:
        chat = catalogue.open(
            member.model, witness=witness, replies=replies, channels=member.channels
        )
        own = chat.card.options
        options = replace(
            own,
            temperature=own.temperature if member.temperature is None else member.temperature,
            max_tokens=own.max_tokens if member.max_new_tokens is None else member.max_new_tokens,
        )
        chat = Carded(chat, replace(chat.card, options=options))
        agents.append(
            Agent(member.name, chat, member.channels, member.temperature, member.max_new_tokens)
        )
    return tuple(agents)


def tally(opinions: Sequence[Opinion]) -> Counter[str]:
    """Votes for each answer, abstentions apart."""
    return Counter(opinion.vote for opinion in opinions if opinion.vote is not None)


def majority(opinions: Sequence[Opinion]) -> str | None:
    """The vote of strictly more than half of all agents, those who abstain included; else ``None``."""
    top = tally(opinions).most_common(1)
    return top[0][0] if top and top[0][1] * 2 > len(opinions) else None


def unanimous(opinions: Sequence[Opinion]) -> str | None:
    """The vote of every agent, or ``None``; one who abstains prevents it."""
    votes = tally(opinions)
    return next(iter(votes)) if len(votes) == 1 and votes.total() == len(opinions) else None


def leading(opinions: Sequence[Opinion]) -> Opinion | None:
    """The first opinion for the answer with most votes: the best so far, while they disagree."""
    votes = tally(opinions)
    return (
        next((o for o in opinions if o.vote == votes.most_common(1)[0][0]), None) if votes else None
    )


def minutes(opinions: Sequence[Opinion]) -> list[str]:
    """What was said, one line an agent, for the prompts of the next round."""
    lines = []
    for opinion in opinions:
        said = opinion.choice or opinion.text or "no answer"
        score = "" if opinion.score is None else f" (score {opinion.score:g})"
        left = " [left: the others found it unconvincing]" if opinion.left else ""
        lines.append(f"{opinion.agent}{left}{score}: {said}. {opinion.reason}".rstrip())
    return lines


def peer_scores(
    agents: Sequence[Agent],
    opinions: Sequence[Opinion],
    question: Question,
    *,
    prompt: str = "shared/score",
) -> Scores:
    """What every agent gives every agent, 1 to 10, from words alone, itself included."""
    names = [opinion.agent for opinion in opinions]
    kind = _score_type(names)
    said = minutes(opinions)

    def judge(agent: Agent) -> dict[str, int] | None:
        card = ask(
            agent.chat,
            prompt,
            kind,
            name=Plain(agent.name),
            question=question,
            minutes=said,
            default=None,
        )
        if card is None:
            return None
        return {
            name: getattr(card, f"agent_{number}") for number, name in enumerate(names, start=1)
        }

    given = fanout(judge, agents)
    return Scores(
        {agent.name: card for agent, card in zip(agents, given, strict=True) if card is not None}
    )


def judge_all(
    agents: Sequence[Agent], opinions: Sequence[Opinion], question: Question
) -> list[Opinion]:
    """The opinions with the sums that all agents gave them."""
    sums = peer_scores(agents, opinions, question).sums([opinion.agent for opinion in opinions])
    return [replace(opinion, score=sums[opinion.agent]) for opinion in opinions]


def prune(
    agents: Sequence[Agent], opinions: Sequence[Opinion], question: Question
) -> tuple[list[Agent], list[Opinion]]:
    """Peer scores, and the agent with the lowest sum leaves; of equals the later one.

    Gives those who stay, and all opinions with their scores, the one that was sent away marked.
    """
    judged = judge_all(agents, opinions, question)
    weakest = min(reversed(judged), key=lambda opinion: opinion.score or 0).agent
    events.note(
        "pruned", agent=weakest, scores={opinion.agent: opinion.score for opinion in judged}
    )
    stay = [agent for agent in agents if agent.name != weakest]
    return stay, [replace(opinion, left=opinion.agent == weakest) for opinion in judged]


class Groups(BaseModel):
    """Answers that say the same, by number."""

    groups: list[list[int]] = Field(description="the numbers of the answers, group by group")


def group_answers(chat: Chat, question: Question, answers: Sequence[str]) -> list[list[int]]:
    """Which answers to an open-ended question say the same: lists of indices, in order.

    Answers equal but for case and punctuation are the same without asking. Where the reply cannot be read,
    or does not place every answer exactly once, that is all that is the same.
    """
    alike: dict[str, list[int]] = {}
    for index, answer in enumerate(answers):
        alike.setdefault(plain(answer), []).append(index)
    sets = list(alike.values())
    if len(sets) < 2:
        return sets
    listed = [f"{number}: {answers[indices[0]]}" for number, indices in enumerate(sets, start=1)]
    found = ask(
        chat, "shared/same_meaning", Groups, question=question, answers=listed, default=None
    )
    if found is None:
        return sets
    placed = sorted(number for group in found.groups for number in group)
    if placed != list(range(1, len(sets) + 1)):
        events.note(
            "groups_unused", why="not every answer is in exactly one group", groups=found.groups
        )
        return sets
    joined = [
        sorted(i for number in group for i in sets[number - 1]) for group in found.groups if group
    ]
    return sorted(joined)


def by_meaning(chat: Chat, question: Question, opinions: Sequence[Opinion]) -> list[Opinion]:
    """Opinions whose votes are equal where their answers say the same; only answers in words need asking."""
    spoken = [
        number for number, opinion in enumerate(opinions) if opinion.text and opinion.choice is None
    ]
    if question.options or len(spoken) < 2:
        return list(opinions)
    compared = list(opinions)
    for group in group_answers(chat, question, [opinions[number].text for number in spoken]):
        first = opinions[spoken[group[0]]].text
        for place in group:
            compared[spoken[place]] = replace(opinions[spoken[place]], same_as=first)
    return compared


def _score_type(names: Sequence[str]) -> type[BaseModel]:
    """A reply with one score per agent; fields are numbered, since names can be anything."""
    fields: dict[str, Any] = {
        f"agent_{number}": (int, Field(ge=1, le=10, description=f"score of {name}"))
        for number, name in enumerate(names, start=1)
    }
    made: type[BaseModel] = create_model("Scores", **fields)
    return made
