"""Colours and line widths of what people read; programs and files get plain text."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap

import click

from longtake.display import on_one_line, visible

WIDEST = 100
"""Columns beyond which lines get hard to read."""
NARROWEST = 30


def has_colours() -> bool:
    """Whether standard output shows colours: a terminal, unless NO_COLOR or TERM=dumb is set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def bold(text: str) -> str:
    """Text that stands out."""
    return click.style(text, bold=True) if has_colours() else text


def faint(text: str) -> str:
    """Text that steps back."""
    return click.style(text, dim=True) if has_colours() else text


def columns() -> int:
    """Columns of a line; without a terminal nothing is wrapped, so that lines can be searched."""
    if not sys.stdout.isatty():
        return 0
    width = shutil.get_terminal_size().columns
    return max(NARROWEST, min(width, WIDEST))


def wrapped(text: str, *, indent: str = "") -> str:
    """Text in lines of the terminal's width, safe to print."""
    width = columns()
    lines = []
    for line in visible(text).splitlines() or [""]:
        if not width:
            lines.append(f"{indent}{line}")
            continue
        lines += textwrap.wrap(line, width, initial_indent=indent, subsequent_indent=indent) or [
            indent
        ]
    return "\n".join(lines)


def in_one_line(text: str, *, taken: int = 0, most: int = WIDEST) -> str:
    """Text shortened to what is left of one line, of which ``taken`` columns are in use."""
    room = max(20, (columns() or most) - taken)
    line = on_one_line(text)
    return line if len(line) <= room else f"{line[: room - 1].rstrip()}…"
