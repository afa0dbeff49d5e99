"""The names and places under which models give the fields of a reply type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from longtake.models.replies.forms import EXPLANATIONS, decisive, follow, is_letter, plain_schema
from longtake.models.replies.loose_json import NotJson, Path, parse
from longtake.models.replies.values import fold
from longtake.types import Question

# what models call a field of each kind, folded
LETTER_NAMES = frozenset(
    {"answer", "letter", "option", "choice", "selection", "finalanswer", "finalchoice"}
    | {"correctanswer", "correctoption", "bestanswer", "bestoption", "selectedoption"}
    | {"answerchoice"}
)
TEXT_NAMES = frozenset({"text", "content", "description", "response", "finalanswer", "answertext"})
REASON_NAMES = frozenset(
    {"reason", "reasoning", "explanation", "rationale", "justification", "analysis"}
    | {"why", "thought", "thoughts"}
)
NUMBER_NAMES = frozenset({"score", "grade", "confidence", "level", "rating", "confidencelevel"})
_LABEL = re.compile(
    r"""([A-Za-z][\w -]{0,30})[*_`"']{0,3}[ \t]{0,3}[:=|>](?=[*_`"'\s]{0,6}[^\s*_`"'])"""
)
_WRAPPED = 3
"""Objects around the one that was asked for."""


@dataclass(frozen=True)
class Naming:
    """The fields of a type by every name that they go by."""

    kind: type[BaseModel]
    question: Question | None

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The plain schema of the type."""
        return plain_schema(self.kind)

    @cached_property
    def needed(self) -> list[str]:
        """The decisive fields."""
        return decisive(self.kind, self.question)

    @cached_property
    def sole_list(self) -> str | None:
        """The decisive field, if it is the only one and a list."""
        return self.needed[0] if len(self.needed) == 1 and self.is_kind("array") else None

    @cached_property
    def sole_text(self) -> bool:
        """Whether the only decisive field is a text."""
        sole = len(self.needed) == 1 and self.is_kind("string")
        return sole and not is_letter(self.node(self.needed[0]))

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """Folded name to field: the fields' own names first, then what models call them."""
        own = {fold(name): name for name in self.kind.model_fields}
        others: dict[str, str] = {}
        for name in self.kind.model_fields:
            for alias in self._other_names(name):
                others.setdefault(alias, name)
        return others | own

    def _other_names(self, name: str) -> frozenset[str]:
        node = self.node(name)
        if is_letter(node):
            return LETTER_NAMES
        if name in EXPLANATIONS and name not in self.needed:
            return REASON_NAMES
        if self.needed != [name]:
            return frozenset()
        if node.get("type") == "integer":
            return NUMBER_NAMES
        return TEXT_NAMES if node.get("type") == "string" else frozenset()

    def resolve(self, key: str) -> str | None:
        """The field that a key stands for."""
        return self._aliases.get(fold(key))

    def resolve_line(self, key: str) -> str | None:
        """The field that the start of a line stands for; prose has lines such as "Text: STOP"."""
        name = self.resolve(key)
        return None if name is None or fold(key) in TEXT_NAMES - {fold(name)} else name

    def names(self, value: Any) -> bool:
        """Whether an object has a key that stands for a field."""
        return isinstance(value, dict) and any(self.resolve(str(key)) for key in value)

    def holds_list(self, value: Any) -> bool:
        """Whether an object holds the field that is a list, under whatever name."""
        parts = [part for inner, _ in self.unwrapped(value) for part in inner.values()]
        named = any(self.names(inner) for inner, _ in self.unwrapped(value))
        return named or sum(isinstance(part, list) for part in parts) == 1

    def sufficient(self, value: Mapping[str, Any]) -> bool:
        """Whether an object names every decisive field."""
        return set(self.needed) <= {self.resolve(key) for key in value}

    def unwrapped(
        self, value: Any, path: Path = (), depth: int = 0
    ) -> Iterator[tuple[dict[str, Any], Path]]:
        """The objects with our fields in a value, with their paths."""
        if isinstance(value, str) and depth and value.lstrip().startswith("{"):
            value = _parsed(value)
        if isinstance(value, list) and len(value) == 1 and (depth or self.names(value[0])):
            value, path = value[0], (*path, 0)
        if not isinstance(value, dict) or depth > _WRAPPED:
            return
        inner = [
            found
            for key, part in value.items()
            if isinstance(part, dict | str | list)
            for found in self.unwrapped(part, (*path, key), depth + 1)
        ]
        # {"answer": {"choice": "B"}}: a name of ours around an object with our fields is a wrapper
        direct = [key for key in value if self.resolve(key) and not isinstance(value[key], dict)]
        if direct or not inner:
            if self.names(value) or depth == 0:
                yield value, path
            return
        yield from inner

    def labels(self, text: str) -> set[str]:
        """The fields that a text gives by name, in whatever layout."""
        fields = set()
        for words in _LABEL.findall(text):
            last = words.split()[-2:]
            fields |= {self.known(last[-1]), self.known("".join(last))}
        return fields - {""}

    def known(self, key: str) -> str:
        """The field that a key stands for; models also give a reason where none was asked for."""
        return self.resolve(key) or ("reason" if fold(key) in REASON_NAMES else "")

    def node(self, name: str) -> Mapping[str, Any]:
        """The schema of a field."""
        return follow(self.schema, self.schema.get("properties", {}).get(name, {}))

    def is_kind(self, kind: str, name: str | None = None) -> bool:
        """Whether a field, by default the first decisive one, has a type of this name."""
        return self.node(name or self.needed[0]).get("type") == kind


def _parsed(text: str) -> Any:
    try:
        return parse(text.strip()).value
    except NotJson:
        return None
