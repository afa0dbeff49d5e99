"""Teams: the file that lists the agents, and their models opened for a run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from longtake.agents.run import Agent
from longtake.errors import ConfigError
from longtake.llm.backend import FrameDescriber
from longtake.llm.catalog import ModelCatalog
from longtake.llm.middleware import Carded, ReplyStore, with_capabilities
from longtake.llm.structured.reader import explain


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
    permutations: int = 0,
    discover: bool = True,
) -> tuple[Agent, ...]:
    """Open the models of a team; what a member sets takes precedence over its model's settings."""
    agents = []
    for member in members:
        chat = catalogue.open(
            member.model, describer=describer, replies=replies, channels=member.channels
        )
        chat = with_capabilities(chat, permutations, discover=discover)
        defaults = chat.card.options
        temperature = defaults.temperature if member.temperature is None else member.temperature
        tokens = defaults.max_tokens if member.max_new_tokens is None else member.max_new_tokens
        options = replace(defaults, temperature=temperature, max_tokens=tokens)
        chat = Carded(chat, replace(chat.card, options=options))
        agents.append(
            Agent(member.name, chat, member.channels, member.temperature, member.max_new_tokens)
        )
    return tuple(agents)
