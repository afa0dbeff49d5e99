"""Which model fills which role, and the team.

``--model X`` chooses a model for all roles, ``--model ROLE=X`` for one; ``team`` is a role as well.
:func:`read_role_assignment` parses this notation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from longtake import registry
from longtake.agents.run import AGENT_ROLES
from longtake.agents.team import DEFAULT_TEAM, Member, read_team
from longtake.config import Settings
from longtake.errors import ConfigError, unknown
from longtake.llm.catalog import WEIGHTS, ModelCatalog, downloaded_vision

TEAM = "team"
CAPTIONER = "captioner"
WORDS_CAPTIONER = "senses/words"
"""Describes pictures by text and speech alone, for small models."""
DEFAULT_METHOD = "videoagent"
BUILT_IN_METHOD = "lookup"
"""The method for built-in models, which read better than they see."""
ONE_MODEL_METHOD = "auto"
"""The method if one other model fills every role: as good as the best single method, at a fraction
of its tokens (``docs/auto.md``)."""
_BUILT_IN = ("local/", "socratic/", "senses")
DEFAULT_MODELS = {
    "llm": "local/qwen2.5-coder-1.5b",
    "vlm": "socratic/qwen2.5-coder-1.5b",
    "captioner": "senses",
}
"""The models for roles without another one; all of them run on this machine."""
VISION = tuple(name for name, known in WEIGHTS.items() if known.mmproj)
TEAM_SIZE = 3
"""Agents in a team that is made of one model."""
_ROLE = re.compile(r"[a-z][a-z_]*")


class RoleAssignment(NamedTuple):
    """One ``--model`` option."""

    role: str
    """Empty: every role."""
    model: str

    def __str__(self) -> str:
        return f"{self.role}={self.model}" if self.role else self.model


def read_role_assignment(text: str) -> RoleAssignment:
    """``vlm=lab/acuity=0.8`` is a model for one role, ``lab/acuity=0.8`` one for all."""
    # model names may contain "=", so what precedes the first one must look like a role
    role, equals, model = text.partition("=")
    if equals and _ROLE.fullmatch(role):
        return RoleAssignment(role, model)
    return RoleAssignment("", text)


def _is_built_in(model: str) -> bool:
    return model.startswith(_BUILT_IN)


def roles_of(methods: Sequence[str]) -> tuple[str, ...]:
    """The roles of all these methods, without duplicates."""
    roles = [role for name in methods for role in registry.methods.get(name).roles]
    return tuple(dict.fromkeys(roles))


@dataclass(frozen=True)
class ModelAssignment:
    """Models by role, and a team."""

    models: Sequence[str] = ()
    """Assignments, as ``--model`` takes them."""
    team: Path | None = None
    """A team file."""
    offline: bool = False
    """Refuse models that are not on this machine."""
    replies: bool = True
    """Cache replies in the film's folder."""
    roster: tuple[Member, ...] = ()
    """A team that is already loaded; it takes precedence over the file."""
    beside: tuple[str, ...] = ()
    """Further roles for which a model may be given, such as those of a method that is compared."""

    @property
    def assignments(self) -> list[RoleAssignment]:
        """The parsed ``--model`` options, in order."""
        return [read_role_assignment(text) for text in self.models]

    @property
    def everyone(self) -> str:
        """The model for all roles, if there is one."""
        return self._last("")

    @property
    def names_captioner(self) -> bool:
        """Whether a model is chosen that describes pictures."""
        return bool(self._last(CAPTIONER) or self.everyone)

    @property
    def names_team(self) -> bool:
        """Whether a team is chosen, by a file, its members or a model for that role."""
        return bool(self.team or self.roster or self._last(TEAM))

    @property
    def default_method(self) -> str:
        """The method if none is chosen; it depends on the models."""
        if (self._last("vlm") or self.everyone) in VISION:
            return ONE_MODEL_METHOD
        models = [assignment.model for assignment in self.assignments]
        if not (self.team or self.roster) and all(map(_is_built_in, models)):
            return BUILT_IN_METHOD
        if self.everyone and not _is_built_in(self.everyone):
            return ONE_MODEL_METHOD
        return DEFAULT_METHOD

    def or_else(self, model: str) -> ModelAssignment:
        """The same assignment, with this model for roles without another one."""
        if not model or self.everyone or self.roster:
            return self
        return replace(self, models=(model, *self.models))

    def by_default(self, settings: Settings) -> ModelAssignment:
        """The same assignment, with the default model for roles without another one.

        That is the configured model, or else a downloaded model that sees. If the built-in text
        model is downloaded as well, it continues to read.
        """
        is_open = not (settings.answers.model or self.models or self.team or self.roster)
        seeing = downloaded_vision(settings) if is_open else ""
        if not seeing:
            return self.or_else(settings.answers.model)
        if not ModelCatalog(settings).file(DEFAULT_MODELS["llm"]).is_file():
            return self.or_else(seeing)
        roles = ("vlm", CAPTIONER)
        models = tuple(f"{role}={seeing}" for role in roles)
        return replace(self, models=models, beside=(*self.beside, *roles))

    def among(self, methods: Sequence[str]) -> ModelAssignment:
        """The same assignment, for several methods that share one set of models."""
        return replace(self, beside=(*self.beside, *roles_of(methods)))

    def names(self, roles: Sequence[str], *, pictures: bool = True) -> dict[str, str]:
        """The model of each role except the team.

        Without pictures, the text model is the default for every role.
        """
        self._check_roles(roles)
        defaults = DEFAULT_MODELS
        if not pictures:
            defaults = dict.fromkeys(DEFAULT_MODELS, DEFAULT_MODELS["llm"])
        names = {}
        for role in roles:
            if role == TEAM or (role in AGENT_ROLES and not self._last(role)):
                continue
            name = self._last(role) or self.everyone or defaults.get(role, "")
            if not name:
                raise ConfigError(f"the role {role} has no model; choose one: --model {role}=NAME")
            names[role] = name
        return names

    def members(self) -> Sequence[Member]:
        """The members of the team; by default, three agents of one model or the built-in team."""
        if self.roster:
            return self.roster
        if self.team is not None:
            return read_team(self.team)
        if model := self._last(TEAM) or self.everyone:
            numbers = range(1, TEAM_SIZE + 1)
            return [Member(name=f"agent {number}", model=model) for number in numbers]
        return DEFAULT_TEAM

    def _last(self, role: str) -> str:
        """The model for a role; the last option takes precedence."""
        models = {assignment.role: assignment.model for assignment in self.assignments}
        return models.get(role, "")

    def _check_roles(self, roles: Sequence[str]) -> None:
        known = list(dict.fromkeys((*roles, *self.beside)))
        # otherwise a mistyped role would be ignored
        for assignment in self.assignments:
            if assignment.role not in ("", TEAM, *known):
                raise unknown("role", assignment.role, known, where=f"--model {assignment}")
