"""Writes docs/reference.md from the commands themselves.

python benchmarks/command_reference.py            # writes the page
python benchmarks/command_reference.py --check    # exit code 1 if the page is not current
"""

import sys
from pathlib import Path

import click

from longtake.cli import COMMANDS, _load, root

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
WIDTH = 100
HEAD = """\
# Command reference

Every command and its options, as `--help` prints them. This page is written by
`python benchmarks/command_reference.py`; a test fails if it is not current.
"""


def helped(command: click.Command, words: list[str]) -> str:
    """The help of a command."""
    # click keeps the help option, so whoever asks first decides
    settings = {**root.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    context = click.Context(command, info_name=" ".join(words), **settings)
    return command.get_help(context)


def page() -> str:
    """The whole page."""
    rows = []
    for name in COMMANDS:
        told, _, _ = (_load(name).help or "").partition("\n")
        rows.append(f"| [`{name}`](#longtake-{name}) | {told} |")
    parts = [HEAD, "\n".join(["| command | what it does |", "|---|---|", *rows, ""])]
    for name in COMMANDS:
        command = _load(name)
        parts.append(section(command, ["longtake", name], 2))
        if isinstance(command, click.Group):
            for part, subcommand in command.commands.items():
                parts.append(section(subcommand, ["longtake", name, part], 3))
    return "\n".join(parts)


def section(command: click.Command, words: list[str], level: int) -> str:
    title = " ".join(words)
    return f"{'#' * level} {title}\n\n```text\n{helped(command, words)}\n```\n"


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not current")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
