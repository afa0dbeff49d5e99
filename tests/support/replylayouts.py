"""Ways in which a model lays out the fields of a reply: JSON good and bad, lines, tags, tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

Layout: TypeAlias = Callable[[Random, dict[str, Any]], str]


def as_json(chance: Random, fields: dict[str, Any]) -> str:
    return json.dumps(
        named(chance, fields),
        indent=chance.choice((None, None, 2)),
        ensure_ascii=chance.random() < 0.5,
    )


def as_python(chance: Random, fields: dict[str, Any]) -> str:
    return repr(named(chance, fields))


def as_unescaped_json(chance: Random, fields: dict[str, Any]) -> str:
    """Quotes and line breaks inside texts as they come."""
    quote = chance.choice('""\'')
    pairs = [f"{quote}{key}{quote}: {quote}{value}{quote}" for key, value in fields.items()]
    return "{" + ", ".join(pairs) + "}"


def as_broken_json(chance: Random, fields: dict[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False)
    faults: list[Callable[[str], str]] = [
        lambda text: text[:-1],
        lambda text: text[1:],
        lambda text: text.replace(', "', ' "', 1),
        lambda text: text.replace(', "', '\n"', 1),
        lambda text: text.replace("}", ",}"),
        lambda text: text.replace('": "', '" = "'),
        lambda text: text.replace('"choice"', "choice").replace('"reason"', "reason"),
    ]
    return chance.choice(faults)(text)


def as_wrapped_json(chance: Random, fields: dict[str, Any]) -> str:
    wrappers: list[Callable[[dict[str, Any]], Any]] = [
        lambda inner: {"properties": inner},
        lambda inner: {"type": "object", "properties": inner, "required": list(inner)},
        lambda inner: {"properties": {key: {"value": value} for key, value in inner.items()}},
        lambda inner: {"reply": inner},
        lambda inner: {"answer": inner},
        lambda inner: {"name": "reply", "arguments": inner},
        lambda inner: {"name": "reply", "arguments": json.dumps(inner)},
        lambda inner: [inner],
        lambda inner: json.dumps(inner),
    ]
    return json.dumps(chance.choice(wrappers)(fields))


def as_lines(chance: Random, fields: dict[str, Any]) -> str:
    style = chance.choice(
        ("{k}: {v}", "{K}: {v}", "**{K}:** {v}", "- {k}: {v}", "{k} = {v}", '"{k}": "{v}",')
    )
    lines = [style.format(k=key, K=key.title(), v=value) for key, value in fields.items()]
    return "\n".join(lines)


def as_tags(chance: Random, fields: dict[str, Any]) -> str:
    inner = "\n".join(f"<{key}>{value}</{key}>" for key, value in fields.items())
    return chance.choice((inner, f"<reply>{inner}</reply>"))


def as_table(chance: Random, fields: dict[str, Any]) -> str:
    cells = {key: str(value).replace("\n", " ").replace("|", "/") for key, value in fields.items()}
    if chance.random() < 0.5:
        return f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}\n| {' | '.join(cells.values())} |"
    return "\n".join(f"| {key} | {value} |" for key, value in cells.items())


def as_two_objects(chance: Random, fields: dict[str, Any]) -> str:
    if chance.random() < 0.5:
        return "\n".join(json.dumps({key: value}) for key, value in fields.items())
    return json.dumps(fields) + "\n" + json.dumps({**fields, "reason": "so it seems"})


LAYOUTS: tuple[Layout, ...] = (
    *[as_json, as_unescaped_json, as_broken_json, as_lines] * 2,
    as_python,
    as_wrapped_json,
    as_tags,
    as_table,
    as_two_objects,
)


def named(chance: Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Other names and another order, now and then."""
    names = {
        "choice": chance.choice(("choice",) * 4 + ("answer", "Choice", "letter", "final_answer")),
        "reason": chance.choice(("reason",) * 4 + ("Reason", "REASON", "explanation", "why")),
    }
    pairs = [(names.get(key, key), value) for key, value in fields.items()]
    if chance.random() < 0.3:
        pairs.reverse()
    if chance.random() < 0.2:
        pairs.append(("sure", True))
    return dict(pairs)
