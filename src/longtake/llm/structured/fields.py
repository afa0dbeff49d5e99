"""The fields of a reply: values as models write them, brought into the type that a field has.

Grades such as ``3/3``, segments such as ``Segment 3``, yes and no, a list where one text was asked
for and the other way round. What cannot mean one thing only is left as it is, for the type to
refuse.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from longtake.llm.structured.letters import read_letter
from longtake.llm.structured.schema import (
    EXPLANATIONS,
    decisive_fields,
    follow,
    is_letter,
    letter_fields,
    plain_schema,
    single_field_type,
)
from longtake.llm.structured.tolerant_json import CutText, NotJson, holds_cut, parse
from longtake.types import Question

_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,9})?")
_OUT_OF = re.compile(r"(\d{1,6})\s*(?:/|out of|of)\s*(\d{1,6})")
_LABELLED = re.compile(
    r"(?:segment|score|grade|confidence|level|rating|number|#)\s*[:=#]?\s*(\d{1,9})", re.IGNORECASE
)
_RANGE = re.compile(r"(?:segments?\s*)?(\d{1,6})\s*(?:-|–|—|to|and|&|,)\s*\d{1,6}", re.IGNORECASE)
_EXPLAINED = re.compile(r"(\d{1,9})\s*[:.,;(=–—-]\s*\D{1,2000}")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_NOTHING = ("", "none", "nothing", "null", "empty", "na")
_MARKED_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+(.*)")
_NUMBERED_ITEM = re.compile(
    r"\s*(?:segment\s+(\d{1,6})\s*[:.|)–—-]|(\d{1,6})\s*\|)\s*(\S.*)", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"[<\[(]?(?:text|string|\.\.\.|…)[>\])]?(?:, at most \d+ words)?")
_VALUE_KEYS = ("value", "const", "text")
"""Keys under which models wrap a value in an object …"""
_LETTER_KEYS = (*_VALUE_KEYS, "letter", "answer", "choice", "option")
"""… and a letter."""


def fold(name: str) -> str:
    """A name for comparison: letters and digits in lower case."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).casefold())


def is_placeholder(value: Any) -> bool:
    """Whether a value repeats what was to be filled in instead of filling it in."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip().lower()) is not None


def fit_value(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """The value as a field with this schema takes it, unchanged where that is not clear.

    ``node`` is the field's part of ``schema``.
    """
    node = follow(schema, node)
    if "anyOf" in node:
        # only null and one other type can be told apart; several types are pydantic's to try
        others = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
        return value if value is None or len(others) != 1 else fit_value(value, others[0], schema)
    kind = node.get("type")
    if kind == "array":
        return _fit_list(value, follow(schema, node.get("items", {})), schema)
    # a list of one where a single value was asked for
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if "properties" in node:
        return _fit_object(value, node["properties"], schema)
    if isinstance(value, dict):
        # {"type": "string", "value": "B"}
        keys = _LETTER_KEYS if is_letter(node) else _VALUE_KEYS
        held = [value[key] for key in keys if key in value]
        value = held[0] if len(held) == 1 else value
    if "enum" in node:
        return _fit_choice(value, node["enum"])
    if kind == "string":
        return _fit_text(value)
    if kind in ("integer", "number"):
        return _fit_number(value, node.get("maximum"))
    if kind == "boolean" and isinstance(value, str):
        return _TRUTHS.get(fold(value), value)
    return value


def read_number(text: str, maximum: float | None) -> int | float | None:
    """The number that a text states; ``None`` where it states none, or a range of grades."""
    bare = unicodedata.normalize("NFKC", text).strip(" \t\r\n*_`\"'“”.!()[]")
    if _NUMBER.fullmatch(bare):
        number = float(bare)
        return int(number) if number.is_integer() else number
    if match := _OUT_OF.fullmatch(bare):
        return int(match.group(1)) if maximum in (None, int(match.group(2))) else None
    # a request for segments 3 to 4 is met by looking into 3; a grade from 3 to 4 is none
    last = _RANGE if maximum is None else _EXPLAINED
    match = _LABELLED.fullmatch(bare) or last.fullmatch(bare)
    return int(match.group(1)) if match else None


def listed_items(text: str) -> list[str]:
    """The items of a list in plain text, where every line, or every line but one, is marked."""
    lines = [line for line in text.splitlines() if line.strip()]
    items: list[str] = []
    for line in lines:
        marked = _MARKED_ITEM.fullmatch(line)
        if marked or _NUMBERED_ITEM.fullmatch(line):
            items.append((marked.group(1) if marked else line).strip())
    return items if len(items) >= len(lines) - 1 else []


def _fit_text(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _fit_number(value: Any, maximum: float | None) -> Any:
    if isinstance(value, bool):
        return str(value)  # pydantic would read true as 1
    number = read_number(value, maximum) if isinstance(value, str) else None
    return value if number is None else number


def _fit_choice(value: Any, choices: Sequence[Any]) -> Any:
    if not isinstance(value, str):
        return value
    # case and punctuation apart; two that fold alike are left for the type to refuse
    same = [choice for choice in choices if fold(str(choice)) == fold(value)]
    return same[0] if len(same) == 1 else value


def _fit_list(value: Any, item: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if value is None or (isinstance(value, str) and fold(value) in _NOTHING):
        return []
    if isinstance(value, str):
        value = _items_in(value)
    elif isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return value
    return [_fit_item(part, item, schema) for part in value if not is_placeholder(part)]


def _fit_item(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if node.get("type") == "string" and isinstance(value, dict):
        # models wrap each entry in an object: [{"caption": "a dog"}]
        texts = [part for part in value.values() if isinstance(part, str)]
        return texts[0] if len(texts) == 1 else value
    return fit_value(value, node, schema)


def _items_in(text: str) -> list[Any]:
    """The items of a list that was written as one text."""
    if text.lstrip().startswith("["):
        try:
            inner = parse(text.strip())
        except NotJson:
            inner = None
        if isinstance(inner, list):
            return inner
    return listed_items(text) or [text.strip()]


def _fit_object(value: Any, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        value = _numbered_item(value, fields, schema)
    if not isinstance(value, dict):
        return value
    # models change the case and the separators of keys
    names = {fold(name): name for name in fields}
    members: dict[str, Any] = {}
    for key, part in value.items():
        name = names.get(fold(str(key)))
        members[name or str(key)] = fit_value(part, fields[name], schema) if name else part
    return members


def _numbered_item(text: str, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """``Segment 3: a dog`` or ``3 | a dog`` as an object with one number and one text."""
    kinds = {str(follow(schema, node).get("type")): name for name, node in fields.items()}
    match = _NUMBERED_ITEM.fullmatch(text)
    if match is None or kinds.keys() != {"integer", "string"} or len(fields) != 2:
        return text
    number = int(match.group(1) or match.group(2))
    return {kinds["integer"]: number, kinds["string"]: match.group(3)}


# what models call a letter and a reason, folded
LETTER_NAMES = frozenset(
    {"answer", "letter", "option", "choice", "selection", "finalanswer", "finalchoice"}
    | {"correctanswer", "correctoption", "bestanswer", "bestoption", "selectedoption"}
    | {"answerchoice"}
)
REASON_NAMES = frozenset(
    {"reason", "reasoning", "explanation", "rationale", "justification", "analysis"}
    | {"why", "thought", "thoughts"}
)
_LABEL = re.compile(
    r"""([A-Za-z][\w -]{0,30})[*_`"']{0,3}[ \t]{0,3}[:=|>](?=[*_`"'\s]{0,6}[^\s*_`"'])"""
)
_QUOTED_KEY = re.compile(r"""["']([\w -]{1,40})\\?["'][ \t]{0,4}[:=]""")


@dataclass(frozen=True)
class Fields:
    """The fields of a reply type, as they are looked for in a text."""

    kind: type[BaseModel]
    question: Question | None
    cut: bool = False
    """Whether the text lost its end."""

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The plain schema of the type."""
        return plain_schema(self.kind)

    @cached_property
    def needed(self) -> list[str]:
        """The decisive fields."""
        return decisive_fields(self.kind, self.question)

    @cached_property
    def letters(self) -> str:
        """The letters of the question's options."""
        return self.question.letters if self.question else ""

    @cached_property
    def sole_list(self) -> str | None:
        """The decisive field, if it is the only one and a list."""
        alone = len(self.needed) == 1 and self.node(self.needed[0]).get("type") == "array"
        return self.needed[0] if alone else None

    @cached_property
    def sole_text(self) -> bool:
        """Whether the only decisive field is a text."""
        node = self.node(self.needed[0]) if len(self.needed) == 1 else {}
        return node.get("type") == "string" and not is_letter(node)

    @cached_property
    def _names(self) -> dict[str, str]:
        """Folded name to field: the fields' own names first, then what models call them."""
        names = {fold(name): name for name in self.kind.model_fields}
        for name in self.kind.model_fields:
            aliases: frozenset[str] = frozenset()
            if is_letter(self.node(name)):
                aliases = LETTER_NAMES
            elif name in EXPLANATIONS and name not in self.needed:
                aliases = REASON_NAMES
            for alias in aliases:
                names.setdefault(alias, name)
        return names

    def node(self, name: str) -> Mapping[str, Any]:
        """The schema of a field."""
        return follow(self.schema, self.schema.get("properties", {}).get(name, {}))

    def resolve(self, key: str) -> str | None:
        """The field that a key stands for."""
        return self._names.get(fold(key))

    def named_in(self, value: Any) -> set[str]:
        """The fields that an object has keys for."""
        keys = value if isinstance(value, dict) else ()
        return {name for key in keys if (name := self.resolve(str(key)))}

    def labels(self, text: str) -> set[str]:
        """The fields that a text gives by name, in whatever layout."""
        named = set()
        for words in _LABEL.findall(text):
            last = words.split()[-2:]
            named |= {self._known(last[-1]), self._known("".join(last))}
        return named - {""}

    def _known(self, key: str) -> str:
        # models also give a reason where none was asked for
        return self.resolve(key) or ("reason" if fold(key) in REASON_NAMES else "")

    def unwrapped(self, value: Any, depth: int = 0) -> list[dict[str, Any]]:
        """The objects with our fields in a value: itself, or those that it wraps."""
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = parse(value.strip())
            except NotJson:
                return []
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        # replies have at most three objects around the one that was asked for
        if not isinstance(value, dict) or depth > 3:
            return []
        # {"answer": {"choice": "B"}}: a name of ours around an object with our fields is a wrapper
        direct = {key: part for key, part in value.items() if not isinstance(part, dict)}
        if not self.named_in(direct):
            inner: list[dict[str, Any]] = []
            for part in value.values():
                inner += self.unwrapped(part, depth + 1)
            if inner:
                return inner
        return [value] if depth == 0 or self.named_in(value) else []

    def validate(self, value: dict[str, Any]) -> tuple[BaseModel, list[str]]:
        """An object as the reply type, and the list entries that had to be left out for it."""
        members = self._members(value)
        if not members and not self.named_in(value):
            # an echoed form, or somebody else's object
            raise ValueError(
                f"the object holds none of the fields {', '.join(self.kind.model_fields)}"
            )
        for name in letter_fields(self.kind):
            if name in self.needed and name not in members:
                raise ValueError(self._no_letter(name))
        for name in EXPLANATIONS - {*self.needed} & self.kind.model_fields.keys():
            # an explanation that is missing says nothing; it does not make the answer unusable
            if self.node(name).get("type") == "string":
                members.setdefault(name, "")
        return self._without_bad_entries(members)

    def valid_parts(self, value: dict[str, Any]) -> dict[str, Any]:
        """The fields of an object that merely lacks others; none if any of them is invalid."""
        try:
            members = self._members(
                {key: part for key, part in value.items() if not holds_cut(part)}
            )
            for name, part in members.items():
                self._model_validate(single_field_type(self.kind, name), {name: part})
        except ValueError:  # which a ValidationError is
            return {}
        return members

    def bare(self, text: str) -> dict[str, Any] | None:
        """A text that is nothing but the value of the only decisive field."""
        if len(self.needed) != 1 or text.startswith(("{", "[")) or self._is_fragment(text):
            return None
        name = self.needed[0]
        node = self.node(name)
        if is_letter(node) and self.question is not None:
            letter = read_letter(text, self.question, cut=self.cut)
            return {name: letter or text} if letter or not self.cut else None
        if node.get("type") == "string" and "enum" not in node:
            return {name: text}
        # a number or a list may have gone on
        if self.cut:
            return None
        if node.get("type") == "array":
            items = listed_items(text)
            return {name: items} if items else None
        return {name: text.strip(" \t\r\n*`\"'").rstrip(".")}

    def _is_fragment(self, text: str) -> bool:
        """Whether a text is a part of an object, or of lines, in which the field did not come."""
        if any(self._known(name) for name in _QUOTED_KEY.findall(text)):
            return True
        return self.cut and bool(self.labels(text) - {*self.needed})

    def _members(self, value: dict[str, Any]) -> dict[str, Any]:
        """The members of an object under our names, each brought into its field's shape."""
        members: dict[str, Any] = {}
        for key, part in value.items():
            name = self.resolve(str(key))
            if name is None or is_placeholder(part):
                continue
            node = self.node(name)
            fitted = fit_value(self._without_cut(name, part), node, self.schema)
            nullable = {"type": "null"} in node.get("anyOf", ())
            if fitted is None and not nullable:
                continue
            # two names of the letter must agree; two values of any other field are an error
            if is_letter(node) and self.letters:
                fitted = self._agreed_letter(name, fitted, members.get(name))
            elif name in members and members[name] != fitted:
                raise ValueError(f"{name}: given twice, with different values")
            members[name] = fitted
        lists = [part for part in value.values() if isinstance(part, list)]
        if self.sole_list and not members and len(lists) == 1:
            # the list that was asked for, under another name
            entries = self._without_cut(self.sole_list, lists[0])
            members[self.sole_list] = fit_value(entries, self.node(self.sole_list), self.schema)
        return members

    def _agreed_letter(self, name: str, value: Any, before: Any) -> Any:
        """A letter that agrees with what the object already gave under another name."""
        assert self.question is not None
        letter = read_letter(value, self.question) if isinstance(value, str) else None
        if before in list(self.letters):
            if letter is not None and letter != before:
                raise ValueError(self._no_letter(name))
            return before
        return letter or value

    def _without_cut(self, name: str, value: Any) -> Any:
        """A value as far as its missing end cannot change it."""
        if not holds_cut(value):
            return value
        if isinstance(value, list) and len(value) > 1:
            return [entry for entry in value if not holds_cut(entry)]
        if isinstance(value, CutText):
            node, optional = self.node(name), name not in self.needed
            # a description may ask for something exact, such as a time
            free = node.get("type") == "string" and node.keys() <= {"type", "title", "default"}
            if optional and (free or name in EXPLANATIONS):
                return value
            # fewer than three words of a decisive text say too little without their end
            if free and len(value.split()) >= 3:
                return value
        raise ValueError(f"the reply was cut off inside {name}")

    def _without_bad_entries(self, members: dict[str, Any]) -> tuple[BaseModel, list[str]]:
        """Validate; entries of lists that are invalid are left out while others remain."""
        try:
            return self._model_validate(self.kind, members), []
        except ValidationError as error:
            bad = {tuple(problem["loc"][:2]) for problem in error.errors(include_url=False)}
            if not all(len(place) == 2 and isinstance(place[1], int) for place in bad):
                raise
            kept = dict(members)
            for name in {str(place[0]) for place in bad}:
                good = [part for at, part in enumerate(members[name]) if (name, at) not in bad]
                # a list without any valid entry is a wrong reply, not a shorter one
                if not good:
                    raise
                kept[name] = good
            return self._model_validate(self.kind, kept), sorted(f"{a}.{b}" for a, b in bad)

    def _model_validate(self, kind: type[BaseModel], members: Mapping[str, Any]) -> BaseModel:
        return kind.model_validate(members, context={"question": self.question})

    def _no_letter(self, name: str) -> str:
        return f"{name}: must be exactly one letter of {', '.join(self.letters)}"
