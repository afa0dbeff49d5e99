"""``longtake methods``."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import click

from longtake.cli.options import common
from longtake.cli.output import Output
from longtake.config import Settings
from longtake.methods.base import FULL, fields_of
from longtake.registry import methods as registered
from longtake.runner.session import Session


@click.command()
@click.argument("name", required=False)
@common
def methods(name: str | None, settings: Settings) -> Output:
    """List the methods, or show one with its fields, paper and roles.

    \b
    Example:
      longtake methods
      longtake methods videoagent
    """
    facts = [_facts(each, settings) for each in ([name] if name else registered.names())]
    lines = (f"{method.name:<16}{method.summary}" for method in facts)
    return Output({"methods": facts}, _details(facts[0]) if name else lines)


@dataclass(frozen=True)
class MethodField:
    """A field of a method."""

    name: str
    value: Any
    type: str
    note: str


@dataclass(frozen=True)
class MethodFacts:
    """What a method is, needs and can be set to."""

    name: str
    summary: str
    paper: str
    roles: Sequence[str]
    presets: Sequence[str]
    fields: Sequence[MethodField]


def _details(method: MethodFacts) -> Iterator[str]:
    yield f"{method.name}: {method.summary}"
    yield f"paper   {method.paper}"
    yield f"roles   {', '.join(method.roles)}"
    yield f"presets {', '.join(method.presets) or 'none'}"
    how = f"--set {method.name}.FIELD=VALUE"
    # --set accepts registered methods only, not addresses
    if method.name not in registered:
        asked = f'ask(QUESTION, method="{method.name}", FIELD=VALUE)'
        how = f"from Python: longtake.open(FILM).{asked}"
    yield f"fields  ({how})"
    for field in method.fields:
        yield f"  {field.name} = {field.value!r}"
        yield textwrap.indent(textwrap.fill(field.note, 100), "      ")


def _facts(name: str, settings: Settings) -> MethodFacts:
    kind = registered.get(name)
    # shows the defaults rather than what suits the built-in model
    fields = {"preset": FULL, **settings.methods.get(name, {})}
    method = Session(settings).with_fields(name, fields).method(name)
    notes = field_notes(kind)
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    return MethodFacts(
        name=name,
        summary=(inspect.getdoc(kind) or "").split("\n")[0],
        paper=kind.paper,
        roles=list(kind.roles),
        presets=sorted(kind.presets),
        fields=[
            MethodField(key, value, types[key], notes.get(key, ""))
            for key, value in fields_of(method).items()
        ],
    )


def field_notes(kind: type[Any]) -> dict[str, str]:
    """The docstrings under the fields of a dataclass.

    They are read from the source, since Python does not keep them.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    notes = {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            docstring = after.value if isinstance(after, ast.Expr) else None
            if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
                notes[field.target.id] = " ".join(docstring.value.split())
    return notes
