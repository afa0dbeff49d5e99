"""The fields of a reply type, found under the names and in the shapes that models give them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from longtake.models.replies.forms import (
    EXPLANATIONS,
    decisive,
    follow,
    is_letter,
    letter_fields,
    only,
    plain_schema,
)
from longtake.models.replies.letters import read_letter
from longtake.models.replies.loose_json import NotJson, Parsed, Path, parse
from longtake.models.replies.values import Fitter, fold, is_placeholder
from longtake.types import Question, Segment

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
FEWEST_WORDS = 3
"""Words that must be left of a decisive text that was cut off."""
_QUOTED_KEY = re.compile(r"""["']([\w -]{1,40})\\?["'][ \t]{0,4}[:=]""")
_OPEN_TAG = re.compile(r"<(\w{1,40})>")
_LABEL = re.compile(
    r"""([A-Za-z][\w -]{0,30})[*_`"']{0,3}[ \t]{0,3}[:=|>](?=[*_`"'\s]{0,6}[^\s*_`"'])"""
)
_WRAPPED = 3
"""Objects around the one that was asked for."""


@dataclass(frozen=True)
class Fields:
    """A reply type as it is looked for in a text."""

    kind: type[BaseModel]
    question: Question | None
    numbered: Mapping[int, Segment]
    cut: bool = False

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
        return self.needed[0] if len(self.needed) == 1 and self._is("array") else None

    @cached_property
    def sole_text(self) -> bool:
        """Whether the only decisive field is a text."""
        sole = len(self.needed) == 1 and self._is("string")
        return sole and not is_letter(self._node(self.needed[0]))

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
        node = self._node(name)
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

    def validate(self, parsed: Parsed) -> tuple[BaseModel, list[str]]:
        """An object as the reply type, and the list entries that had to be left out for it."""
        self._check_cut(parsed)
        members = self._members(_whole_entries(parsed))
        if not members and not self.names(parsed.value):
            # an echoed form, or somebody else's object
            raise ValueError(
                f"the object holds none of the fields {', '.join(self.kind.model_fields)}"
            )
        if path := _truth_for_number(self.schema, self.schema, members):
            raise ValueError(f"{path}: must be a number")
        for name in letter_fields(self.kind):
            if name in self.needed and members.get(name) is None:
                raise ValueError(self._no_letter(name))
        for name in self.kind.model_fields:
            # an explanation that is missing says nothing; it does not make the answer unusable
            if name in EXPLANATIONS and name not in self.needed and self._is("string", name):
                members.setdefault(name, "")
        return self._lenient(members)

    def valid_parts(self, parsed: Parsed) -> dict[str, Any]:
        """The fields of an object that merely lacks others; none if any of them is invalid."""
        try:
            members = self._members(_whole_entries(parsed))
            if parsed.cut is not None:
                members.pop(self._cut_field(parsed.cut) or "", None)
            for name, value in members.items():
                self._model_validate(only(self.kind, name), {name: value})
        except ValueError:  # which a ValidationError is
            return {}
        return members

    def bare(self, text: str) -> dict[str, Any] | None:
        """A text that is nothing but the value of the only decisive field."""
        if len(self.needed) != 1 or text.startswith(("{", "[")) or self._is_fragment(text):
            return None
        name = self.needed[0]
        node = self._node(name)
        kind = "letter" if is_letter(node) else node.get("type")
        if kind == "letter" and self.question is not None:
            letter = read_letter(text, self.question, cut=self.cut)
            return {name: letter or text} if letter or not self.cut else None
        if self.cut and kind != "string":
            return None
        if kind == "array":
            items = _listed(text)
            return {name: items} if items else None
        return {name: text.strip(" \t\r\n*`\"'").rstrip(".") if kind != "string" else text}

    def _is_fragment(self, text: str) -> bool:
        """Whether a text is a part of an object, or of lines, in which the field did not come."""
        named = [*_QUOTED_KEY.findall(text), *_OPEN_TAG.findall(text)]
        if any(self._known(name) for name in named):
            return True
        return self.cut and bool(self.labels(text) - {*self.needed})

    def labels(self, text: str) -> set[str]:
        """The fields that a text gives by name, in whatever layout."""
        fields = set()
        for words in _LABEL.findall(text):
            last = words.split()[-2:]
            fields |= {self._known(last[-1]), self._known("".join(last))}
        return fields - {""}

    def _known(self, key: str) -> str:
        """The field that a key stands for; models also give a reason where none was asked for."""
        return self.resolve(key) or ("reason" if fold(key) in REASON_NAMES else "")

    def _members(self, value: Any) -> dict[str, Any]:
        """The members of an object under our names, each brought into its field's shape."""
        fitter = Fitter(self.schema, self.numbered)
        echoed = isinstance(value, dict) and "properties" in value
        members: dict[str, Any] = {}
        for key, part in value.items() if isinstance(value, dict) else ():
            name = self.resolve(str(key))
            if name is None or is_placeholder(part) or (echoed and fold(str(key)) != fold(name)):
                continue
            fitted = fitter.fit(part, self._node(name))
            if fitted is None and not self._nullable(name):
                continue
            if is_letter(self._node(name)):
                fitted = self._letter(name, fitted, members)
            elif name in members and members[name] != fitted:
                raise ValueError(f"{name}: given twice, with different values")
            members[name] = fitted
        if self.sole_list and not members and isinstance(value, dict):
            lists = [part for part in value.values() if isinstance(part, list)]
            if len(lists) == 1 and not echoed:
                members[self.sole_list] = fitter.fit(lists[0], self._node(self.sole_list))
        return members

    def _letter(self, name: str, value: Any, members: Mapping[str, Any]) -> Any:
        """A letter that agrees with what the object already gave under another name."""
        if self.question is None or not self.question.options:
            return None
        letter = read_letter(value, self.question) if isinstance(value, str) else None
        before = members.get(name)
        if before is None:
            return value if letter is None else letter
        if letter is not None and before in self.question.letters and letter != before:
            raise ValueError(self._no_letter(name))
        return before if before in self.question.letters else letter or before

    def _lenient(self, members: dict[str, Any]) -> tuple[BaseModel, list[str]]:
        """Validate; entries of lists that are invalid are left out while others remain."""
        try:
            return self._model_validate(self.kind, members), []
        except ValidationError as error:
            bad = {tuple(problem["loc"][:2]) for problem in error.errors(include_url=False)}
            if not all(len(place) == 2 and isinstance(place[1], int) for place in bad):
                raise
            kept = dict(members)
            for name in {str(place[0]) for place in bad}:
                entries: Sequence[Any] = members[name]
                good = [part for at, part in enumerate(entries) if (name, at) not in bad]
                if not good:
                    raise
                kept[name] = good
            return self._model_validate(self.kind, kept), sorted(f"{a}.{b}" for a, b in bad)

    def _model_validate(self, kind: type[BaseModel], members: Mapping[str, Any]) -> BaseModel:
        return kind.model_validate(members, context={"question": self.question})

    def _check_cut(self, parsed: Parsed) -> None:
        if parsed.cut is None:
            return
        left = parsed.value.get(parsed.cut[0]) if len(parsed.cut) == 1 else None
        stub = self._cut_field(parsed.cut) in self.needed and len(str(left).split()) < FEWEST_WORDS
        if not self._free_text(parsed.cut) or (left is not None and stub):
            where = ".".join(str(self.resolve(str(step)) or step) for step in parsed.cut)
            raise ValueError(f"the reply was cut off inside {where}")

    def _cut_field(self, path: Path) -> str | None:
        return self.resolve(str(path[0])) if path else None

    def _free_text(self, path: Path) -> bool:
        """Whether a text without its end is true as far as it goes."""
        name = self._cut_field(path)
        if name is None or (name in EXPLANATIONS and name not in self.needed):
            return True
        if len(path) > 1 and isinstance(path[1], int):
            return True  # the entry is left out
        node = self._node(name) if len(path) == 1 else {}
        # a description may ask for something exact, such as a time
        return node.get("type") == "string" and node.keys() <= {"type", "title", "default"}

    def _node(self, name: str) -> Mapping[str, Any]:
        return follow(self.schema, self.schema.get("properties", {}).get(name, {}))

    def _is(self, kind: str, name: str | None = None) -> bool:
        return self._node(name or self.needed[0]).get("type") == kind

    def _nullable(self, name: str) -> bool:
        branches = self._node(name).get("anyOf", ())
        return any(branch.get("type") == "null" for branch in branches)

    def _no_letter(self, name: str) -> str:
        letters = self.question.letters if self.question else ""
        return f"{name}: must be exactly one letter of {', '.join(letters)}"


def _whole_entries(parsed: Parsed) -> Any:
    """The value without the entry of a list in which it was cut off."""
    value, cut = parsed.value, parsed.cut
    if cut is None or len(cut) < 2 or not isinstance(cut[1], int) or not isinstance(value, dict):
        return value
    entries = value.get(cut[0])
    if not isinstance(entries, list):
        return value
    if len(entries) == 1:
        raise ValueError(f"the reply was cut off inside {cut[0]}")
    return {**value, cut[0]: entries[:-1]}


def _parsed(text: str) -> Any:
    try:
        return parse(text.strip()).value
    except NotJson:
        return None


def _listed(text: str) -> list[str]:
    """The items of a list in plain text, where every line is one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    bulleted = [line for line in lines if line[:2] in ("- ", "* ", "• ") or "|" in line]
    numbered = [line for line in lines if line.split(".")[0].isdigit()]
    segments = [line for line in lines if line.lower().startswith("segment ")]
    for marked in (bulleted, numbered, segments):
        if marked and len(marked) >= len(lines) - 1:
            return [_unmarked(line) for line in marked]
    return []


def _unmarked(line: str) -> str:
    if line[:2] in ("- ", "* ", "• "):
        return line[2:].strip()
    number, dot, rest = line.partition(".")
    return rest.strip() if dot and number.isdigit() else line


def _truth_for_number(schema: Mapping[str, Any], node: Any, value: Any, path: str = "") -> str:
    """Where a reply says true or false and a number is wanted; pydantic would read 1 or 0."""
    node = follow(schema, node) if isinstance(node, Mapping) else {}
    if isinstance(value, bool):
        return path if node.get("type") in ("integer", "number") else ""
    inner: list[tuple[Any, Any, Any]] = []
    if isinstance(value, dict):
        inner = [(name, node.get("properties", {}).get(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        inner = [(number, node.get("items"), item) for number, item in enumerate(value)]
    for name, kind, item in inner:
        wrong = _truth_for_number(schema, kind, item, f"{path}.{name}".strip("."))
        if wrong:
            return wrong
    return ""
