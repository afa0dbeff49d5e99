"""Teams: the file that lists the agents, their models opened for a run, and parallel calls."""

from __future__ import annotations

import contextvars
import json
import threading
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from longtake._util.cancellation import Cancelled, Stop, stopping
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


T = TypeVar("T")
R = TypeVar("R")


def fanout(act: Callable[[T], R], items: Iterable[T], *, limit: int = 32) -> list[R]:
    """Call ``act`` on every item, up to ``limit`` at a time on threads; results keep the order.

    Each call sees the caller's trace, step, budget and prompts. When one call fails, calls that
    have not started are dropped, calls waiting for a retry are cancelled, and the first failure is
    raised.
    """
    todo = list(items)
    if len(todo) <= 1 or limit <= 1:
        return [act(item) for item in todo]
    return _Fan(act, todo).run(min(limit, len(todo)))


class _Fan:
    """One fan-out: its items, their results and the first failure."""

    def __init__(self, act: Callable[[Any], Any], items: list[Any]) -> None:
        self._act, self._items = act, items
        self._stop = Stop(stopping.get())
        self._results: list[Any] = [None] * len(items)
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._order = iter(range(len(items)))
        # one copy per item, since only one thread at a time can enter a context
        self._contexts = [contextvars.copy_context() for _ in items]

    def run(self, threads: int) -> list[Any]:
        # daemon threads, so that Ctrl-C does not wait for calls that hang
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            self._stop.set()
            raise
        finally:
            self._stop.release()
        if self._failure is not None:
            raise self._failure
        return self._results

    def _work(self) -> None:
        while True:
            with self._lock:
                number = next(self._order, None)
                if number is None or self._failure is not None:
                    return
            try:
                self._results[number] = self._contexts[number].run(self._one, self._items[number])
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
                self._fail(error)
                return

    def _one(self, item: Any) -> Any:
        stopping.set(self._stop)
        self._stop.check()
        return self._act(item)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            # a real failure replaces a cancellation, which is only its consequence
            if self._failure is None or isinstance(self._failure, Cancelled):
                self._failure = error
        self._stop.set()
