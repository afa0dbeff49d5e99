"""Lists the commands behind the figures of the documentation, and the days of the figures.

    make figures

The days are those on which the table below the command was last changed, from its oldest row to
its newest, or the command's own line where there is no table. A row keeps its day when it moves to
another page. Nothing is run: most commands take minutes to hours, and some a GPU or a benchmark's
files.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
COMMAND = re.compile(r"python benchmarks/[^`#|;]*")
ROW = re.compile(r"\|.*\d")


class Figure(NamedTuple):
    """A command in a page."""

    heading: str
    command: str
    line: int
    rows: list[int]
    """Those of the tables below the same heading."""


def figures(page: Path) -> Iterator[Figure]:
    """The commands that a page names, with the heading that they are below."""
    heading, rows = "", list[int]()
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if text.startswith("#"):
            heading, rows = text.strip("# "), []
        elif ROW.match(text):
            rows.append(number)  # also those that follow the command
        for command in COMMAND.findall(text):
            yield Figure(heading, command.strip(), number, rows)


def days(page: Path, lines: list[int]) -> str:
    """The days on which the lines were last changed, the first and the last."""
    places = (f"-L{line},{line}" for line in lines)
    # with -C twice a line that moved from another page keeps its day
    told = _git("blame", "-w", "-C", "-C", "--date=short", *places, "--", str(page))
    found = sorted(re.findall(r" (\d{4}-\d\d-\d\d) +\d+\)", told))
    return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def _git(*words: str) -> str:
    line = ("git", *words)
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print every command once per page and heading."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        shown = set()
        for figure in list(figures(page)):
            if (figure.heading, figure.command) not in shown:
                shown.add((figure.heading, figure.command))
                name = page.relative_to(ROOT)
                told = days(page, figure.rows or [figure.line])
                print(f"{told:<24}  {name}, {figure.heading}: {figure.command}")


if __name__ == "__main__":
    main()
