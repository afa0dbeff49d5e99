"""Where everything is put together: settings become stores, films, models and methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longtake import prompts, registry
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.events import Sink, Stream
from longtake.footage.protocol import Footage
from longtake.methods.base import Method, configure, solve
from longtake.models.cache import ReplyStore
from longtake.models.catalogue import Catalogue, assign_roles
from longtake.models.chat import Chat
from longtake.sinks.recorder import Recorder
from longtake.steps.run import Agent, Run
from longtake.steps.team import DEFAULT_TEAM, Member, open_team, read_team
from longtake.types import Question, Result

DEFAULT_MODELS = {
    "llm": "local/qwen2.5-1.5b",
    "vlm": "socratic/qwen2.5-1.5b",
    "captioner": "senses",
}
"""Who takes a role when nobody is named: models that run on this machine."""
DEFAULT_METHOD = "videoagent"


def open_method(name: str, settings: Settings) -> Method:
    """The method of that name with its settings."""
    method: Method = configure(
        registry.methods.get(name), settings.methods.get(name, {}), source="settings"
    )
    return method


def roles_of(methods: Sequence[str]) -> tuple[str, ...]:
    """The roles of all these methods, each once."""
    return tuple(
        dict.fromkeys(role for name in methods for role in registry.methods.get(name).roles)
    )


@dataclass(frozen=True)
class Casting:
    """Who answers: models by role, and a team."""

    models: Sequence[str] = ()
    """``X`` for all roles or ``ROLE=X`` for one, as ``--model`` takes them."""
    team: Path | None = None
    """A team file."""
    offline: bool = False
    """Refuse models that are not on this machine."""
    replies: bool = True
    """Keep replies in the film's folder and use them again."""
    roster: tuple[Member, ...] = ()
    """A team given outright, before any file."""
    beside: tuple[str, ...] = ()
    """Roles of the methods that take part beside one: a model may be named for them, though that one has no use
    for it."""

    @property
    def everyone(self) -> str:
        """The model named for all roles; empty: none is."""
        everyone = [
            model for model in self.models if "=" not in model.partition("#")[0].partition("/")[0]
        ]
        return everyone[-1] if everyone else ""

    def among(self, methods: Sequence[str]) -> Casting:
        """The same for methods that are run with one set of models: a role of any of them may be named."""
        return replace(self, beside=roles_of(methods))

    def names(self, roles: Sequence[str], *, pictures: bool = True) -> dict[str, str]:
        """Role to model name, the team apart. Without pictures, seeing is reading: the text model does."""
        wanted = [role for role in roles if role != "team"]
        known = dict.fromkeys(role for role in (*wanted, *self.beside) if role != "team")
        named = assign_roles(list(known), [m for m in self.models if not m.startswith("team=")], "")
        default = (
            DEFAULT_MODELS if pictures else dict.fromkeys(DEFAULT_MODELS, DEFAULT_MODELS["llm"])
        )
        if nobody := [role for role in wanted if not named[role] and role not in default]:
            raise ConfigError(
                f"no model takes the role {nobody[0]} by itself; name one: --model {nobody[0]}=NAME"
            )
        return {role: named[role] or default[role] for role in wanted}

    def members(self) -> Sequence[Member]:
        """The team as given, else as the file says; else three of the model named for it, else the built-in one."""
        if self.roster:
            return self.roster
        if self.team is not None:
            return read_team(self.team)
        named = [model.removeprefix("team=") for model in self.models if model.startswith("team=")]
        if each := (named or [self.everyone])[-1]:
            return [Member(name=f"agent {number}", model=each) for number in (1, 2, 3)]
        return DEFAULT_TEAM

    def hosts(self, roles: Sequence[str], settings: Settings) -> list[str]:
        """The hosts beyond this machine that pictures and words would go to."""
        named = [*self.names(roles).values(), *(m.model for m in self.members() if "team" in roles)]
        return Catalogue(settings, offline=self.offline).hosts(named)


def open_run(
    method: Method, footage: Footage, settings: Settings, casting: Casting, *, seed: int = 0
) -> Run:
    """The models that a method needs, under the budget of one question."""
    catalogue = Catalogue(settings, offline=casting.offline)
    witness, kept = footage.witness(), footage.replies_folder
    replies = ReplyStore(kept) if kept and casting.replies else None
    named = casting.names(method.roles, pictures="pictures" in footage.has)
    models: dict[str, Chat] = {
        role: catalogue.open(name, witness=witness, replies=replies) for role, name in named.items()
    }
    team: Sequence[Agent] = ()
    if "team" in method.roles:
        team = open_team(catalogue, casting.members(), witness=witness, replies=replies)
    return Run(models, team=team, budget=settings.budget, seed=seed)


@dataclass(frozen=True)
class Asking:
    """How one question is asked."""

    method: str = DEFAULT_METHOD
    casting: Casting = field(default_factory=Casting)
    seed: int = 0
    sinks: Sequence[Sink] = ()
    prompts: Path | None = None
    """A folder whose prompts stand in for ours."""
    pictures: bool = False
    """Keep the frames that were looked at in the result's trace."""


def ask(footage: Footage, question: Question, settings: Settings, asking: Asking) -> Result:
    """Put one question to one method."""
    method = open_method(asking.method, settings)
    recorder = Recorder(pictures=asking.pictures)
    stream = Stream(recorder, *asking.sinks)
    with ExitStack() as stack:
        stack.enter_context(prompts.override(asking.prompts))
        stack.enter_context(stream.active())
        stack.callback(stream.close)
        run = open_run(method, footage, settings, asking.casting, seed=asking.seed)
        result = solve(method, footage, question, run)
    return replace(result, trace=recorder.trace)


def with_fields(settings: Settings, method: str, fields: Mapping[str, Any]) -> Settings:
    """Settings with a method's fields laid over them."""
    merged = {**settings.methods.get(method, {}), **fields}
    return replace(settings, methods={**settings.methods, method: merged})
