"""Teams: the team file, the models of the agents, parallel calls, votes and peer scores.

An abstention supports no answer, but it counts as a vote when unanimity or a majority is checked.
"""

from __future__ import annotations

import contextvars
import json
import threading
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from longtake._util.cancellation import Cancelled, Stop, stopping
from longtake.agents.run import Agent
from longtake.errors import ConfigError
from longtake.llm.backend import FrameDescriber
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Chat
from longtake.llm.middleware import Carded, ReplyStore, with_capabilities
from longtake.llm.structured.ask import ask
from longtake.llm.structured.letters import normalized_text
from longtake.llm.structured.reader import explain
from longtake.prompts import Plain, phrase
from longtake.tracing import events
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
"""The team without any configuration: one reads on-screen text, one listens, one looks."""


def read_team(path: Path) -> tuple[Member, ...]:
    """Read the members from a team file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
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
    """Write a team file atomically, with the notes as comments at its top."""
    blocks = []
    if notes:
        blocks.append("".join(f"# {' '.join(note.split())}\n" for note in notes))
    for member in members:
        known = member.model_dump(mode="json", exclude_defaults=True)
        # JSON strings, numbers and lists of strings are written the same way in TOML
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in known.items()]
        blocks.append("".join(["[[agent]]\n", *lines]))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text("\n".join(blocks), encoding="utf-8")
    draft.replace(path)


def open_team(
    catalogue: ModelCatalog,
    members: Sequence[Member],
    *,
    describer: FrameDescriber | None = None,
    replies: ReplyStore | None = None,
    discover: bool = True,
) -> tuple[Agent, ...]:
    """Open the models of a team; a member's settings override those of its model."""
    agents = []
    for member in members:
        chat = catalogue.open(
            member.model, describer=describer, replies=replies, channels=member.channels
        )
        chat = with_capabilities(chat, discover=discover)
        defaults = chat.card.options
        temperature = defaults.temperature if member.temperature is None else member.temperature
        tokens = defaults.max_tokens if member.max_new_tokens is None else member.max_new_tokens
        options = replace(defaults, temperature=temperature, max_tokens=tokens)
        chat = Carded(chat, replace(chat.card, options=options))
        agents.append(Agent(member.name, chat, member.temperature, member.max_new_tokens))
    return tuple(agents)


T = TypeVar("T")
R = TypeVar("R")


def fanout(act: Callable[[T], R], items: Iterable[T], *, limit: int = 32) -> list[R]:
    """Call ``act`` on every item, up to ``limit`` at a time on threads; results keep the order.

    Each call has the caller's trace, step, budget and prompts. When a call fails, calls that have
    not started are dropped, calls waiting for a retry are cancelled, and the failure is raised.
    """
    todo = list(items)
    if len(todo) <= 1 or limit <= 1:
        return [act(item) for item in todo]
    stop = Stop(stopping.get())
    # one copy per item, since only one thread at a time can enter a context
    waiting = deque((number, contextvars.copy_context()) for number in range(len(todo)))
    results: dict[int, R] = {}
    failures: list[BaseException] = []

    def one(number: int) -> None:
        stopping.set(stop)
        stop.check()
        results[number] = act(todo[number])

    def work() -> None:
        while not failures:
            try:
                number, context = waiting.popleft()
            except IndexError:
                return
            try:
                context.run(one, number)
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
                failures.append(error)
                stop.set()

    # daemon threads, so that Ctrl-C does not wait for calls that hang
    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(limit, len(todo)))]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    except BaseException:
        stop.set()
        raise
    finally:
        stop.release()
    if failures:
        # a real failure comes before a cancellation, which is only its consequence
        raise min(failures, key=lambda error: isinstance(error, Cancelled))
    return [results[number] for number in range(len(todo))]


@dataclass(frozen=True, slots=True)
class Opinion:
    """The answer of an agent; an abstention if it has neither a choice nor a text."""

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
        """The letter, or the normalised text, or ``None``."""
        return self.choice or normalized_text(self.same_as or self.text) or None


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
    """The opinions, one line per agent, for the prompts of the next round."""
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


def judge_all(
    agents: Sequence[Agent], opinions: Sequence[Opinion], question: Question
) -> list[Opinion]:
    """The opinions with the sums of their scores.

    Every agent scores every opinion from 1 to 10, its own included, from text alone. Judges without
    a readable reply are left out.
    """
    # numbered fields, since agents may have any names
    fields: dict[str, Any] = {
        f"agent_{number}": (int, Field(ge=1, le=10, description=f"score of {opinion.agent}"))
        for number, opinion in enumerate(opinions, start=1)
    }
    form: type[BaseModel] = create_model("Scores", **fields)
    lines = transcript(opinions)

    def judge(agent: Agent) -> BaseModel | None:
        return ask(
            agent.chat,
            "shared/score",
            form,
            name=Plain(agent.name),
            question=question,
            transcript=lines,
            default=None,
        )

    cards = [card for card in fanout(judge, agents) if card is not None]
    return [
        replace(opinion, score=sum(getattr(card, field) for card in cards))
        for opinion, field in zip(opinions, fields, strict=True)
    ]


def prune(
    agents: Sequence[Agent], opinions: Sequence[Opinion], question: Question
) -> tuple[list[Agent], list[Opinion]]:
    """Remove the agent with the lowest sum of peer scores; of a tie, the one listed later.

    Returns the agents that stay, and all opinions with their scores and the removed one marked.
    """
    judged = judge_all(agents, opinions, question)
    # reversed, because min() returns the first of a tie
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

    Answers that differ only in case and punctuation are grouped without a model. These groups stand
    if the reply is unreadable or does not contain every answer exactly once.
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
    """Give opinions with answers of the same meaning the same vote; letters need no comparison."""
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
