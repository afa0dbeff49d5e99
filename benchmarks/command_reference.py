"""Writes docs/reference.md from the commands themselves.

python benchmarks/command_reference.py            # writes the page
python benchmarks/command_reference.py --check    # exit code 1 if the page is not current
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import click

from longtake.cli import COMMANDS, _load, root

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
WIDTH = 100
HEAD = """\
# Command reference

Every command with its options, as `--help` prints them, except that options which several commands
share are listed [once](#shared-options). This page is written by
`python benchmarks/command_reference.py`; a test fails if it is not current.
"""
SHARED = 3
"""An option that this many commands have, in the same words, is listed once."""


@dataclass(frozen=True)
class Documented:
    """A command with the words that call it."""

    words: str
    command: click.Command
    level: int

    @property
    def context(self) -> click.Context:
        """The context in which its help is printed."""
        # click keeps the help option, so whoever asks first decides
        settings = {**root.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
        return click.Context(self.command, info_name=self.words, **settings)

    def options(self) -> dict[str, tuple[str, str]]:
        """The help of each option, by its longest name."""
        records = {}
        for option in self.command.get_params(self.context):
            record = option.get_help_record(self.context)
            if isinstance(option, click.Option) and "--help" not in option.opts and record:
                records[max(option.opts, key=len)] = record
        return records

    def section(self, shared: Collection[tuple[str, str]]) -> str:
        """Its help without the shared options, which are named."""
        records = self.options()
        named = [name for name, record in records.items() if record in shared]
        kept = [each for each in self.command.params if max(each.opts, key=len) not in named]
        command, context = copy(self.command), self.context
        command.params = kept
        command.add_help_option = False
        told = command.get_help(context)
        also = f"\n\nAlso {', '.join(f'`{name}`' for name in named)}." if named else ""
        return f"{'#' * self.level} {self.words}\n\n```text\n{told}\n```{also}\n"


def documented() -> Iterator[Documented]:
    """All commands in the order of the table."""
    for name in COMMANDS:
        command = _load(name)
        yield Documented(f"longtake {name}", command, 2)
        if isinstance(command, click.Group):
            for part, subcommand in command.commands.items():
                yield Documented(f"longtake {name} {part}", subcommand, 3)


def page() -> str:
    """The whole page."""
    rows = []
    for name in COMMANDS:
        told, _, _ = (_load(name).help or "").partition("\n")
        rows.append(f"| [`{name}`](#longtake-{name}) | {told} |")
    commands = list(documented())
    counts = Counter(record for each in commands for record in each.options().values())
    shared = [record for record, count in counts.items() if count >= SHARED]
    listed = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    listed.write_dl(sorted(shared, key=lambda record: record[0].lstrip("-")))
    parts = [HEAD, "\n".join(["| command | what it does |", "|---|---|", *rows, ""])]
    parts += [each.section(shared) for each in commands]
    parts.append(f"## Shared options\n\n```text\n{listed.getvalue()}```\n")
    return "\n".join(parts)


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not current")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
