"""``longtake methods``."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from itertools import pairwise
from typing import Any

import click

from longtake.cli.options import common
from longtake.cli.output import emit_json
from longtake.config import Settings
from longtake.methods.base import FULL, fields_of
from longtake.registry import methods as registered
from longtake.runner.session import Session


@click.command()
@click.argument("name", required=False)
@common
def methods(name: str | None, settings: Settings, as_json: bool) -> None:
    """List the methods, or show one with its fields, paper and roles.

    \b
    Example:
      longtake methods
      longtake methods videoagent
    """
    chosen = [name] if name else registered.names()
    facts = [_facts(each, settings) for each in chosen]
    if as_json:
        emit_json({"methods": facts})
    elif name:
        _show(facts[0])
    else:
        for fact in facts:
            click.echo(f"{fact['name']:<16}{fact['summary']}")


def _facts(name: str, settings: Settings) -> dict[str, Any]:
    kind = registered.get(name)
    # shows the defaults rather than what suits the built-in model
    fields = {"preset": FULL, **settings.methods.get(name, {})}
    method = Session(settings).with_fields(name, fields).method(name)
    notes = field_notes(kind)
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    described = []
    for key, value in fields_of(method).items():
        note = notes.get(key, "")
        described.append({"name": key, "value": value, "type": types[key], "note": note})
    return {
        "name": name,
        "summary": (inspect.getdoc(kind) or "").split("\n")[0],
        "paper": kind.paper,
        "roles": list(kind.roles),
        "presets": sorted(kind.presets),
        "fields": described,
    }


def _show(fact: dict[str, Any]) -> None:
    click.echo(f"{fact['name']}: {fact['summary']}")
    click.echo(f"paper   {fact['paper']}")
    click.echo(f"roles   {', '.join(fact['roles'])}")
    click.echo(f"presets {', '.join(fact['presets']) or 'none'}")
    # --set accepts registered methods only, not addresses
    name = fact["name"]
    how = f"--set {name}.FIELD=VALUE"
    if name not in registered:
        how = f'from Python: longtake.open(FILM).ask(QUESTION, method="{name}", FIELD=VALUE)'
    click.echo(f"fields  ({how})")
    for field in fact["fields"]:
        click.echo(f"  {field['name']} = {field['value']!r}")
        click.echo(textwrap.indent(textwrap.fill(field["note"], 100), "      "))


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
