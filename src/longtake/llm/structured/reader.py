"""Reads a reply as its type: JSON, or ``key: value`` lines, YAML, XML tags and Markdown tables.

Every reading that the text allows is a candidate; if they disagree, the reply is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from longtake.llm.structured.fields import Fields
from longtake.llm.structured.letters import normalized_text, stated_letters
from longtake.llm.structured.schema import letter_fields
from longtake.llm.structured.tolerant_json import Found, NotJson, lists, objects, parse
from longtake.tracing import events
from longtake.types import Question

Resolve = Callable[[str], str | None]
"""The field that a key as written stands for."""

_KEY_LINE = re.compile(
    r"""[ \t]*(?:[-*+>#•]{1,4}[ \t]+|\d{1,2}[.)][ \t]+)?  # a bullet or a heading
        [*_`"']{0,3}([A-Za-z][A-Za-z_ -]{0,30}?)[*_`"']{0,3}
        [ \t]*[:=][ \t]*[*_`]{0,3}(.*)""",
    re.VERBOSE,
)
_BULLET = re.compile(r"[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(.*)")
_TAG = re.compile(r"<([A-Za-z][\w-]{0,40})>([^<]*)</\1>")
_RULE_CELL = re.compile(r":?-{2,}:?")
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)


class Contradiction(ValueError):
    """One field with two values."""


def labelled_values(text: str, resolve: Resolve) -> dict[str, Any]:
    """The fields that a text gives by name, as text or lists of texts."""
    # models fence YAML and tables too
    text = _FENCE.sub("", text)
    members: dict[str, Any] = {}
    for field, value in [*_tags(text, resolve), *_table(text, resolve), *_key_lines(text, resolve)]:
        if value == "":
            continue  # a key with nothing after it says nothing
        # one field may stand in a table and in a line below it, with one value
        if members.setdefault(field, value) != value:
            raise Contradiction(f"two values for {field}")
    return members


def _tags(text: str, resolve: Resolve) -> list[tuple[str, Any]]:
    """``<choice>B</choice>``"""
    tags = [(resolve(name), value.strip()) for name, value in _TAG.findall(text)]
    return [(name, value) for name, value in tags if name]


def _table(text: str, resolve: Resolve) -> list[tuple[str, Any]]:
    """A Markdown table: field names in its first row, or in its first column."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.count("|") >= 2 and not all(map(_RULE_CELL.fullmatch, cells)):
            rows.append(cells)
    if not rows:
        return []
    header = [resolve(cell.strip("*_` ")) for cell in rows[0]]
    # a header with a name that is not ours belongs to a table about something else
    if len(header) > 1 and all(header):
        cells_below = [zip(header, row, strict=False) for row in rows[1:]]
        return [(str(name), cell) for row in cells_below for name, cell in row]
    pairs = [(resolve(row[0].strip("*_` ")), row[1]) for row in rows if len(row) == 2]
    return [(name, cell) for name, cell in pairs if name]


def _key_lines(text: str, resolve: Resolve) -> list[tuple[str, Any]]:
    """``reason: it barks`` and ``choice: B``, each from the start of a line, or YAML."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        match = _KEY_LINE.fullmatch(line)
        field = resolve(match.group(1)) if match else None
        if match and field:
            blocks.append((field, [match.group(2)]))
        elif blocks:
            blocks[-1][1].append(line)
    return [(field, _block(first, rest)) for field, (first, *rest) in blocks]


def _block(first: str, rest: list[str]) -> Any:
    """The value of a key: the rest of its line, the lines below it, or the list below it."""
    first = _without_quotes(first).removeprefix("|").removeprefix(">")
    written = [line for line in rest if line.strip()]
    if not first and written and _BULLET.fullmatch(written[0]):
        return _yaml_list(written)
    kept = [first] if first else []
    for line in rest:
        # a value ends at a blank line: what follows is said about it
        if not line.strip() and kept:
            break
        kept.append(line.strip())
    return " ".join(part for part in kept if part)


def _yaml_list(lines: list[str]) -> list[Any]:
    items: list[list[str]] = []
    for line in lines:
        match = _BULLET.fullmatch(line)
        if match:
            items.append([match.group(1)])
        elif items:
            items[-1].append(line)
    return [_yaml_item(item) for item in items]


def _yaml_item(lines: list[str]) -> Any:
    pairs = [_KEY_LINE.fullmatch(line) for line in lines]
    if all(pairs):
        return {match.group(1): _without_quotes(match.group(2)) for match in pairs if match}
    return " ".join(line.strip() for line in lines)


def _without_quotes(value: str) -> str:
    """A value without the comma, quotes and emphasis around it."""
    bare = value.strip().rstrip(",").strip().strip("*_`").strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        return bare[1:-1]
    return bare


M = TypeVar("M", bound=BaseModel)
Object = dict[str, Any]

_FENCED = re.compile(r"```[\w-]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_LABELLED = re.compile(
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
    fields = Fields(kind, question, cut=cut)
    try:
        candidates, prose = _candidates(text.strip(), fields)
    except NotJson as error:
        raise UnreadableReply(
            f"the reply holds a JSON object that cannot be read: {error}"
        ) from error
    except Contradiction as error:
        raise UnreadableReply(f"the reply contradicts itself: {error}") from error
    value: M = _agreed(candidates, fields)
    _check_prose(prose, value, fields)
    return value


def read_known_fields(text: str, kind: type[BaseModel], question: Question | None = None) -> Object:
    """The fields of a reply that lacks others; none where what it holds is invalid."""
    fields = Fields(kind, question, cut=True)
    try:
        candidates, _ = _candidates(text.strip(), fields)
    except (NotJson, Contradiction):
        return {}
    # with two objects, it is unclear which one is meant
    return fields.valid_parts(candidates[0]) if len(candidates) == 1 else {}


def from_fields(members: Mapping[str, Any], kind: type[M], question: Question | None = None) -> M:
    """A reply from fields that were read one by one, or :class:`UnreadableReply`."""
    value: M = _agreed([dict(members)], Fields(kind, question))
    return value


def explain(error: ValidationError) -> str:
    """What is wrong with a reply, one line per field."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step) for step in problem["loc"]) or "reply"
        lines.append(f"{where}: {problem['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)


def _candidates(text: str, fields: Fields) -> tuple[list[Object], str]:
    """The objects that may be the reply, and the prose around them."""
    text = _unquoted(text, fields)
    # JSON first: labelled lines inside it are part of it
    values = _json_in(text, fields)
    if values:
        # a fence does not mark the answer: a reply may fence what a film shows
        outside = _outside(text, values)
        if any(map(fields.labels, outside)):
            raise Contradiction("an object stands among fields that are given otherwise")
        return _unwrapped(values, fields), "\n".join(outside)
    members = _labelled(text, fields)
    # a refusal that is read as text would pass for an answer
    if members is None and _DECLINES.match(text) is None:
        members = fields.bare(text)
    return [members] if members is not None else [], text


def _unquoted(text: str, fields: Fields) -> str:
    """A text without the code fence, the quotes or the brackets that are around all of it."""
    fence = _FENCED.fullmatch(text)
    # two blocks are not one reply in a fence
    if fence and "```" not in fence.group(1):
        text = fence.group(1).strip()
    if not text.startswith(('"', "[")):
        return text
    try:
        value = parse(text)
    except NotJson:
        return text
    if isinstance(value, list) and len(value) == 1 and not fields.sole_list:
        value = value[0]
    return value.strip() if isinstance(value, str) else text


def _json_in(text: str, fields: Fields) -> list[Found]:
    """The JSON in a text: objects, or lists where the only decisive field is one."""
    values = objects(text)
    if not fields.sole_list or any(_holds_list(one.value, fields) for one in values):
        return values
    return [one for one in lists(text) if one.value]


def _holds_list(value: Object, fields: Fields) -> bool:
    """Whether an object holds the field that is a list, under whatever name."""
    inside = fields.unwrapped(value)
    parts = [part for one in inside for part in one.values() if isinstance(part, list)]
    return len(parts) == 1 or any(map(fields.named_in, inside))


def _unwrapped(values: Sequence[Found], fields: Fields) -> list[Object]:
    candidates: list[Object] = []
    for one in values:
        if isinstance(one.value, list) and fields.sole_list:
            candidates.append({fields.sole_list: one.value})
        else:
            candidates += fields.unwrapped(one.value)
    return candidates


def _outside(text: str, values: Sequence[Found]) -> list[str]:
    """The prose before, between and after the JSON in a text."""
    pieces, at = [], 0
    for one in values:
        # "Answer:" right before an object announces it
        pieces.append(re.sub(r"\s*(?:```\w*\s*)?$", "", text[at : one.start]))
        at = one.end
    return [*pieces, text[at:]]


def _labelled(text: str, fields: Fields) -> Object | None:
    """What labelled lines, tags and tables say, where they name every decisive field."""
    if fields.cut and not fields.sole_text:
        # later lines may be part of a text whose end is lost
        first, line_break, _ = text.partition("\n")
        text = first if line_break else ""
    members = labelled_values(text, fields.resolve)
    return members if members.keys() >= {*fields.needed} else None


def _agreed(candidates: Sequence[Object], fields: Fields) -> Any:
    """The one reply that all readable candidates give."""
    fits: dict[tuple[Any, ...], Any] = {}
    problem = "the reply holds no JSON object"
    for candidate in candidates:
        try:
            value, dropped = fields.validate(candidate)
        except ValidationError as error:
            problem = explain(error)
            continue
        except ValueError as error:
            problem = str(error)
            continue
        if dropped:
            events.note("entries_dropped", entries=dropped)
        # readings that agree on what is decisive are one answer, whatever the wording of texts
        decisive = [getattr(value, name) for name in fields.needed]
        key = [normalized_text(one) if isinstance(one, str) else repr(one) for one in decisive]
        fits.setdefault(tuple(key), value)
    if len(fits) > 1:
        raise UnreadableReply(f"the reply holds {len(fits)} different answers; give exactly one")
    if not fits:
        raise UnreadableReply(problem)
    return next(iter(fits.values()))


def _check_prose(prose: str, value: BaseModel, fields: Fields) -> None:
    """Refuse a reply whose prose announces another letter than its fields do."""
    if fields.question is None or not fields.letters:
        return
    letters = {getattr(value, name) for name in letter_fields(fields.kind)}
    stated = stated_letters(prose, fields.question) | set(_LABELLED.findall(prose))
    if letters and stated - letters:
        raise UnreadableReply("the reply announces more than one answer; give exactly one")


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
