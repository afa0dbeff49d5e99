"""Reads a reply as its type: JSON, or the bare value of the one field that decides.

Every object that may be the reply is a candidate; if they disagree, the reply is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from longtake.llm.structured.json_text import Found, NotJson, is_cut, parse, values, without_mark
from longtake.llm.structured.letters import normalized_text, read_letter, stated_letters
from longtake.llm.structured.schema import (
    EXPLANATIONS,
    decisive_fields,
    follow,
    is_letter,
    letter_fields,
    plain_schema,
)
from longtake.llm.structured.values import fit_value, fold, is_placeholder, listed_items
from longtake.tracing import events
from longtake.types import Question

M = TypeVar("M", bound=BaseModel)
Object = dict[str, Any]

# what models call a letter and a reason, folded
LETTER_NAMES: tuple[str, ...] = ("answer", "letter", "option", "choice", "selection")
LETTER_NAMES += ("finalanswer", "finalchoice", "correctanswer", "correctoption")
LETTER_NAMES += ("bestanswer", "bestoption", "selectedoption")
REASON_NAMES = ("reason", "reasoning", "explanation", "rationale", "justification", "why")
_FENCED = re.compile(r"```[\w-]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_LABEL = re.compile(r"""^[\s*_>#-]{0,8}([A-Za-z][\w ]{0,30})[*_`"']{0,3}[ \t]{0,3}[:=]""", re.M)
_NAME_BEFORE = re.compile(
    r"""([A-Za-z][\w -]{0,30})[*_`"']{0,3}[ \t]{0,3}([:=|>])(?=[*_`"'\s]{0,6}[^\s*_`"'])"""
)
"""What may give a field by name, in whatever layout."""
_QUOTED_KEY = re.compile(r"""["']([\w -]{1,40})\\?["'][ \t]{0,4}[:=]""")
_CHOSEN = re.compile(
    r"""\b(?:[Cc]hoice|[Aa]nswer|[Ll]etter)["'*_`]{0,3}[ \t]?[:=][\s"'*_`(]{0,4}([A-Z])\b"""
)
_DECLINES = re.compile(
    r"""\W{0,3}(?:(?:I['’]?m|I\ am)\s+(?:sorry|unable|not\ able)|sorry\b|unfortunately
        |as\ an?\ (?:AI|language\ model)
        |I\s+(?:can\s?not|can['’]?t|could\ not|do\ not|don['’]?t)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a model begins that does not answer."""


class UnreadableReply(ValueError):
    """A reply that does not hold what was asked for; its text says why, for the model to read."""


def parse_reply(
    text: str, kind: type[M], question: Question | None = None, *, cut: bool = False
) -> M:
    """The reply in a text, or :class:`UnreadableReply` with the reason.

    ``cut`` says that the text has lost its end.
    """
    if not text.strip():
        raise UnreadableReply("the reply was empty")
    reader = _Reader(kind, question, cut)
    try:
        candidates, prose = reader.candidates(_unwrapped_text(text.strip()))
        value: M = reader.agreed(candidates)
    except (NotJson, RecursionError) as error:
        detail = f"the reply holds a JSON object that cannot be read: {error}"
        raise UnreadableReply(detail) from error
    reader.check_prose(prose, value)
    return value


def explain(error: ValidationError) -> str:
    """What is wrong with a reply, one line per field."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step) for step in problem["loc"]) or "reply"
        lines.append(f"{where}: {problem['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)


def _unwrapped_text(text: str) -> str:
    """A text without the code fence or the quotes that are around all of it."""
    fence = _FENCED.fullmatch(text)
    # two blocks are not one reply in a fence
    if fence and "```" not in fence.group(1):
        text = fence.group(1).strip()
    if not text.startswith('"'):
        return text
    try:
        value = parse(text)
    except NotJson:
        return text
    return value.strip() if isinstance(value, str) else text


@dataclass(frozen=True)
class _Reader:
    """Looks for the fields of a reply type in a text."""

    kind: type[BaseModel]
    question: Question | None
    cut: bool = False

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return plain_schema(self.kind)

    @cached_property
    def needed(self) -> list[str]:
        """The decisive fields."""
        return decisive_fields(self.kind, self.question)

    @cached_property
    def sole(self) -> Mapping[str, Any]:
        """The schema of the only decisive field; empty if there are several."""
        return self.node(self.needed[0]) if len(self.needed) == 1 else {}

    @cached_property
    def names(self) -> dict[str, str]:
        """Folded name to field: the fields' own names first, then what models call them."""
        names = {fold(name): name for name in self.kind.model_fields}
        for name in self.kind.model_fields:
            explains = name in EXPLANATIONS and name not in self.needed
            aliases = REASON_NAMES if explains else ()
            for alias in LETTER_NAMES if is_letter(self.node(name)) else aliases:
                names.setdefault(alias, name)
        return names

    def node(self, name: str) -> Mapping[str, Any]:
        """The schema of a field."""
        return follow(self.schema, self.schema["properties"][name])

    def candidates(self, text: str) -> tuple[list[Object], str]:
        """The objects that may be the reply, and the prose around them."""
        found = values(text)
        listed = self.sole.get("type") == "array"
        if listed and not any(self._holds_list(one.value) for one in found):
            found = [one for one in values(text, "[") if one.value]
        if not found:
            # a refusal that is read as text would pass for an answer
            bare = None if _DECLINES.match(text) else self._bare(text)
            return [] if bare is None else [bare], text
        objects: list[Object] = []
        for one in found:
            if isinstance(one.value, list):
                objects.append({self.needed[0]: one.value})
            else:
                objects += self._unwrapped(one.value)
        prose = _outside(text, found)
        if self._given_in(prose, ":=|>"):
            raise NotJson("it stands among fields that are given otherwise")
        return objects, prose

    def agreed(self, candidates: Sequence[Object]) -> Any:
        """The one reply that all readable candidates give."""
        fits: dict[tuple[Any, ...], Any] = {}
        problem = "the reply holds no JSON object"
        for candidate in candidates:
            try:
                value = self._validated(candidate)
            except ValueError as error:  # which a ValidationError is
                problem = explain(error) if isinstance(error, ValidationError) else str(error)
                continue
            # readings that agree on what is decisive are one answer, whatever the wording of texts
            decisive = [getattr(value, name) for name in self.needed]
            key = [normalized_text(one) if isinstance(one, str) else repr(one) for one in decisive]
            fits.setdefault(tuple(key), value)
        if len(fits) > 1:
            problem = f"the reply holds {len(fits)} different answers; give exactly one"
        if len(fits) != 1:
            raise UnreadableReply(problem)
        return next(iter(fits.values()))

    def check_prose(self, prose: str, value: BaseModel) -> None:
        """Refuse a reply whose prose announces another letter than its fields do."""
        letters = {getattr(value, name) for name in letter_fields(self.kind)}
        if self.question is None or not self.question.options or not letters:
            return
        if (stated_letters(prose, self.question) | set(_CHOSEN.findall(prose))) - letters:
            raise UnreadableReply("the reply announces more than one answer; give exactly one")

    def _given_in(self, text: str, marks: str) -> bool:
        """Whether a text gives a field of ours by name, followed by one of these marks."""
        for words, mark in _NAME_BEFORE.findall(text):
            last = words.split()[-2:]
            if mark in marks and (self._field(last[-1]) or self._field("".join(last))):
                return True
        return False

    def _field(self, key: str) -> str | None:
        """The field that a key stands for; models give a reason also where none was asked for."""
        folded = fold(key)
        return self.names.get(folded) or ("reason" if folded in REASON_NAMES else None)

    def _named_in(self, value: Mapping[str, Any]) -> bool:
        return any(fold(str(key)) in self.names for key in value)

    def _holds_list(self, value: Object) -> bool:
        """Whether an object holds the field that is a list, under whatever name."""
        inside = self._unwrapped(value)
        lists = [part for one in inside for part in one.values() if isinstance(part, list)]
        return len(lists) == 1 or any(map(self._named_in, inside))

    def _unwrapped(self, value: Any, depth: int = 0) -> list[Object]:
        """The objects with our fields in a value: itself, or those that it wraps."""
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = parse(value)
            except NotJson:
                return []
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        # replies have at most three objects around the one that was asked for
        if not isinstance(value, dict) or depth > 3:
            return []
        # {"answer": {"choice": "B"}}: a name of ours around an object with our fields is a wrapper
        if not self._named_in({k: part for k, part in value.items() if not isinstance(part, dict)}):
            inner = [one for part in value.values() for one in self._unwrapped(part, depth + 1)]
            if inner:
                return inner
        return [value] if depth == 0 or self._named_in(value) else []

    def _bare(self, text: str) -> Object | None:
        """A text that is nothing but the value of the only decisive field."""
        keys = map(fold, _QUOTED_KEY.findall(text))
        if not self.sole or self.names.keys() & keys or self._given_in(text, "|>"):
            return None
        name = self.needed[0]
        if text.startswith("{") or (text.startswith("[") and not is_letter(self.sole)):
            return None
        labels = [(self._field(one[1]), one) for one in _LABEL.finditer(text)]
        own = [label for field, label in labels if field == name]
        is_several = bool({field for field, _ in labels} - {None, name})
        if is_letter(self.sole) and self.question is not None:
            if self.cut and is_several:
                return None
            read = read_letter(text, self.question, cut=self.cut)
            if own and read_letter(text[own[-1].start() :], self.question, cut=self.cut) != read:
                return None
            return {name: read or text} if read or not self.cut else None
        # lines for several fields were not asked for
        if is_several:
            return None
        if own and not own[0].start():
            text = text[own[0].end() :].strip(" \t\r\n*_`")
        if self.sole.get("type") == "string" and "enum" not in self.sole:
            return {name: text}
        # a number or a list may have gone on
        if self.cut:
            return None
        if self.sole.get("type") == "array":
            items = listed_items(text)
            return {name: items} if items else None
        return {name: text.strip(" \t\r\n*`\"'").rstrip(".")}

    def _validated(self, value: Object) -> BaseModel:
        """An object as the reply type."""
        members = self._members(value)
        if not members and not self._named_in(value):
            # an echoed form, or somebody else's object
            fields = ", ".join(self.kind.model_fields)
            raise ValueError(f"the object holds none of the fields {fields}")
        for name in letter_fields(self.kind):
            if name in self.needed and name not in members:
                raise ValueError(self._no_letter(name))
        for name in EXPLANATIONS - {*self.needed} & self.kind.model_fields.keys():
            # an explanation that is missing says nothing; it does not make the answer unusable
            if self.node(name).get("type") == "string":
                members.setdefault(name, "")
        return self._without_bad_entries(members)

    def _members(self, value: Object) -> Object:
        """The members of an object under our names, each brought into its field's shape."""
        members: Object = {}
        lists = [part for part in value.values() if isinstance(part, list)]
        if self.sole.get("type") == "array" and not self._named_in(value) and len(lists) == 1:
            value = {self.needed[0]: lists[0]}  # under another name
        for key, part in value.items():
            name = self.names.get(fold(str(key)))
            if name is None or is_placeholder(part) or not (part == "" or _came(part)):
                continue
            node = self.node(name)
            fitted = fit_value(self._without_cut(name, part), node, self.schema)
            if fitted is None and {"type": "null"} not in node.get("anyOf", ()):
                continue
            if is_letter(node) and self.question is not None and isinstance(fitted, str):
                fitted = read_letter(fitted, self.question) or fitted
            if members.setdefault(name, fitted) != fitted:
                # the text of an option beside its letter says the same
                raise ValueError(f"{name}: given twice, with different values")
        return members

    def _without_cut(self, name: str, value: Any) -> Any:
        """A value as far as its missing end cannot change it."""
        if not is_cut(value):
            return value
        if isinstance(value, list) and len(value) > 1:
            return [entry for entry in value if not is_cut(entry)]
        node, text = self.node(name), without_mark(value) if isinstance(value, str) else ""
        # a description may ask for something exact, such as a time
        free = node.get("type") == "string" and node.keys() <= {"type", "title", "default"}
        if text and name not in self.needed and (free or name in EXPLANATIONS):
            return text
        # fewer than three words of a decisive text say too little without their end
        if free and len(text.split()) >= 3:
            return text
        raise ValueError(f"the reply was cut off inside {name}")

    def _without_bad_entries(self, members: Object) -> BaseModel:
        """Validate; entries of lists that are invalid are left out while others remain."""
        context = {"question": self.question}
        try:
            return self.kind.model_validate(members, context=context)
        except ValidationError as error:
            bad = {tuple(problem["loc"][:2]) for problem in error.errors(include_url=False)}
            if not all(len(place) == 2 and isinstance(place[1], int) for place in bad):
                raise
            kept = dict(members)
            for name in {str(place[0]) for place in bad}:
                kept[name] = [part for at, part in enumerate(kept[name]) if (name, at) not in bad]
                # a list without any valid entry is a wrong reply, not a shorter one
                if not kept[name]:
                    raise
            value = self.kind.model_validate(kept, context=context)
            events.note("entries_dropped", entries=sorted(f"{a}.{b}" for a, b in bad))
            return value

    def _no_letter(self, name: str) -> str:
        letters = self.question.letters if self.question else ""
        return f"{name}: must be exactly one letter of {', '.join(letters)}"


def _came(value: Any) -> bool:
    """Whether anything of a value came before the text ended."""
    return not isinstance(value, str) or bool(without_mark(value))


def _outside(text: str, found: Sequence[Found]) -> str:
    """The prose before, between and after the JSON in a text."""
    ends = [0, *(one.end for one in found)]
    starts = [*(one.start for one in found), len(text)]
    return "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))


_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD.

    JSON can spell half of a surrogate pair (``"\\ud83d"``), which no encoding can write: a single
    one in a reply would keep an answer from being printed, traced or stored.
    """
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


_TAGS = "(?:think|thinking|thought|reasoning)>"
_OPEN = re.compile(f"<{_TAGS}", re.IGNORECASE)
_CLOSE = re.compile(f"</{_TAGS}", re.IGNORECASE)
_THOUGHT = re.compile(rf"<{_TAGS}(.*?)(?:</{_TAGS}|\Z)", re.IGNORECASE | re.DOTALL)


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking and the answer in a reply.

    A block that was never closed is all thinking: the answer never came. A closing tag without an
    opening one ends thinking that the chat template began.
    """
    opening, closing = _OPEN.search(text), _CLOSE.search(text)
    if closing and (opening is None or closing.start() < opening.start()):
        text = f"<think>{text}"
    thoughts = [thought.strip() for thought in _THOUGHT.findall(text)]
    return "\n".join(thoughts), _THOUGHT.sub("", text).strip()


MIN_REPEATS = 4
"""Times that the same characters must end a text to be a loop …"""
MIN_LOOP = 80
"""… and how many characters that must be in all."""


def cut_loop(text: str) -> str | None:
    """The text up to the end of the first round of the loop that it ends in, if it ends in one."""
    # loops are found at the end of a text; searching more of it takes longer
    backwards = text.rstrip()[-8_000:][::-1]
    longest, period = 0, 0
    for shift in range(1, len(backwards) // MIN_REPEATS + 1):
        covered = max(longest + 1, MIN_LOOP, MIN_REPEATS * shift)
        # as far as the text agrees with itself shifted, it repeats every ``shift`` characters
        if covered > len(backwards) or backwards[shift:covered] != backwards[: covered - shift]:
            continue
        while backwards[covered : covered + 1] == backwards[covered - shift]:
            covered += 1
        longest, period = covered, shift
    if not period or not any(char.isalnum() for char in backwards[:period]):
        return None  # rows of dashes or dots are ornaments
    start = len(text.rstrip()) - longest
    return text[: start + period]
