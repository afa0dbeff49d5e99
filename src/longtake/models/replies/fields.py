"""Objects in a reply, brought under the names and into the shapes of a reply type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from longtake.models.replies.forms import EXPLANATIONS, follow, is_letter, letter_fields, only
from longtake.models.replies.letters import read_letter
from longtake.models.replies.loose_json import Parsed, Path
from longtake.models.replies.naming import Naming
from longtake.models.replies.values import Fitter, fold, is_placeholder
from longtake.types import Segment

FEWEST_WORDS = 3
"""Words that must be left of a decisive text that was cut off."""
_QUOTED_KEY = re.compile(r"""["']([\w -]{1,40})\\?["'][ \t]{0,4}[:=]""")
_OPEN_TAG = re.compile(r"<(\w{1,40})>")


@dataclass(frozen=True)
class Fields(Naming):
    """A reply type as it is looked for in a text."""

    numbered: Mapping[int, Segment] = field(default_factory=dict)
    """The segments that the prompt lists by number."""
    cut: bool = False
    """Whether the text lost its end."""

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
            if name in EXPLANATIONS and name not in self.needed and self.is_kind("string", name):
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
        node = self.node(name)
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
        if any(self.known(name) for name in named):
            return True
        return self.cut and bool(self.labels(text) - {*self.needed})

    def _members(self, value: Any) -> dict[str, Any]:
        """The members of an object under our names, each brought into its field's shape."""
        fitter = Fitter(self.schema, self.numbered)
        echoed = isinstance(value, dict) and "properties" in value
        members: dict[str, Any] = {}
        for key, part in value.items() if isinstance(value, dict) else ():
            name = self.resolve(str(key))
            if name is None or is_placeholder(part) or (echoed and fold(str(key)) != fold(name)):
                continue
            fitted = fitter.fit(part, self.node(name))
            if fitted is None and not self._nullable(name):
                continue
            if is_letter(self.node(name)):
                fitted = self._letter(name, fitted, members)
            elif name in members and members[name] != fitted:
                raise ValueError(f"{name}: given twice, with different values")
            members[name] = fitted
        if self.sole_list and not members and isinstance(value, dict):
            lists = [part for part in value.values() if isinstance(part, list)]
            if len(lists) == 1 and not echoed:
                members[self.sole_list] = fitter.fit(lists[0], self.node(self.sole_list))
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
        node = self.node(name) if len(path) == 1 else {}
        # a description may ask for something exact, such as a time
        return node.get("type") == "string" and node.keys() <= {"type", "title", "default"}

    def _nullable(self, name: str) -> bool:
        branches = self.node(name).get("anyOf", ())
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
