"""Lists the commands behind the figures of the documentation, and how old the figures may be.

    make figures

The day is that on which the line with the command was last changed: no figure below it from that
command is newer, but one may be older where only words were changed. Nothing is run: most commands
take minutes to hours, and some a GPU or a benchmark's files.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
COMMAND = re.compile(r"python benchmarks/[^`#|;]*")


class Figure(NamedTuple):
    """A command in a page."""

    page: Path
    line: int
    heading: str
    command: str


def figures(page: Path) -> Iterator[Figure]:
    """The commands that a page names, with the heading that they are below."""
    heading = ""
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if text.startswith("#"):
            heading = text.strip("# ")
        for command in COMMAND.findall(text):
            yield Figure(page, number, heading, command.strip())


def changed(figure: Figure) -> str:
    """The day on which the line was last changed, and the commit."""
    where = f"{figure.line},{figure.line}"
    # with -C twice a line that moved from another page keeps its day
    commit = _git("blame", "-w", "-C", "-C", "--porcelain", "-L", where, "--", str(figure.page))[:40]
    if set(commit) == {"0"}:
        return "not committed"
    return _git("show", "-s", "--format=%as %h", commit).strip()


def _git(*words: str) -> str:
    line = ("git", *words)
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print every command once per page and heading."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        shown = set()
        for figure in figures(page):
            if (figure.heading, figure.command) not in shown:
                shown.add((figure.heading, figure.command))
                name = page.relative_to(ROOT)
                print(f"{changed(figure)}  {name}, {figure.heading}: {figure.command}")


if __name__ == "__main__":
    main()
