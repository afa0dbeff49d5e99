"""``longtake extract``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from longtake import registry
from longtake._util import visible
from longtake._util.timecode import clock
from longtake.cli.indexing import files_at, show_notes
from longtake.cli.options import (
    FILE,
    FILM,
    answering_options,
    check_models,
    common,
    question_method_option,
)
from longtake.cli.output import Kind, Output, check_place, progress, read_text, say, write_text
from longtake.errors import ConfigError
from longtake.footage.protocol import Footage
from longtake.library import Library
from longtake.runner.extraction import FilmTable, check_large
from longtake.runner.extraction import extract as extract_table
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.runner.table_schema import read_schema

TABLE = Kind("a table that extract wrote", (b"film,", b'{\n  "schema"'))


@click.command()
@click.argument("paths", nargs=-1, type=FILM, metavar="FILM...")
@click.option("--schema", "place", required=True, type=FILE, help="A JSON Schema.")
@click.option("--library", "everywhere", is_flag=True, help="Every film of the library.")
@click.option("--out", type=FILE, help="Write a .csv or .json file instead.")
@question_method_option
@common
@answering_options
def extract(
    paths: tuple[Path, ...],
    place: Path,
    everywhere: bool,
    out: Path | None,
    method: str | None,
    session: Session,
) -> Output | None:
    """Extract a table from films: every cell is a value with its citation, or null.

    The schema describes an object (one row per film) or a list of objects. Its properties are
    texts, numbers, booleans or choices (enum); their descriptions say what to look for, and may be
    questions. Small models such as the built-in one cannot fill tables: name a larger one. A value
    that no moment of the film supports is null. A budget covers all cells of a film.

    \b
    Example:
      longtake extract meeting.mp4 --schema decisions.json --out decisions.csv
      longtake extract talks/ --schema talk.json --json
    """
    try:
        described = json.loads(read_text(place))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: malformed JSON ({error})") from error
    schema = read_schema(described)
    if out is not None:
        if out.suffix.lower() not in (".csv", ".json"):
            raise ConfigError(f"{out}: --out needs a .csv or .json file")
        check_place(out, TABLE, inputs=(place,))
    if bool(paths) == everywhere:
        raise ConfigError("name films, or pass --library")
    chosen = method or session.assignment.default_method
    check_large(session, schema, chosen)
    check_models(session, ("llm",) if schema.many else registry.methods.get(chosen).roles)
    if schema.forbids_null:
        say(f"may be null although the schema forbids it: {', '.join(schema.forbids_null)}")
    tables = []
    for name, footage in _films(paths, session):
        with show_notes(), session.under_way(), progress(f"reading {name}"):
            tables.append(replace(extract_table(footage, schema, session, chosen), film=name))
    extracted = {"schema": schema.output, "films": [table.plain for table in tables]}
    cells, nulls = sum(table.cells for table in tables), sum(table.nulls for table in tables)
    say(f"{cells} cells, {nulls} of them null because no moment supports a value")
    if out is None:
        return Output(extracted, _lines(tables))
    if out.suffix.lower() == ".json":
        write_text(out, json.dumps(extracted, ensure_ascii=False, indent=2) + "\n")
    else:
        write_text(out, as_csv(tables))
    return None


def _lines(tables: Sequence[FilmTable]) -> Iterator[str]:
    for table in tables:
        yield visible(table.film)
        for row in table.rows:
            for name, cell in row.items():
                cited, value = cell.evidence, json.dumps(cell.value, ensure_ascii=False)
                where = "" if cited is None else f"  [{clock(cited.segment.start)}]"
                yield visible(f"  {name}: {value}{where}")
            if table.schema.many:
                yield ""


def _films(paths: Sequence[Path], session: Session) -> Iterator[tuple[str, Footage]]:
    if not paths:
        library = Library(settings=session.settings)
        entries = library.entries()
        if not entries:
            raise ConfigError("the library is empty; add films: longtake library add FOLDER")
        for entry in entries:
            yield entry.name, library.footage(entry)
    for film in (film for path in paths for film in files_at(path)):
        yield str(film), open_film(film, session.settings)


def as_csv(tables: Sequence[FilmTable]) -> str:
    """A line per row: the film, and for each column the value, its time and its quotation."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [column.name for column in tables[0].schema.columns]
    head = [f"{name}{part}" for name in columns for part in ("", " at", " quote")]
    writer.writerow(["film", *head])
    for table in tables:
        for row in table.rows:
            cells = []
            for name in columns:
                cited = row[name].evidence
                time = "" if cited is None else clock(cited.segment.start)
                cells += [row[name].value, time, "" if cited is None else cited.text]
            writer.writerow([table.film, *cells])
    return text.getvalue()
