"""``longtake serve`` in a process of its own, of this checkout."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"


@contextmanager
def interrupts(handled_by: Any = signal.default_int_handler) -> Iterator[None]:
    """Processes started in the block handle interrupts as in a terminal, or ignore them.

    Otherwise they do what whoever started the tests does: shells have background jobs ignore them.
    """
    before = signal.signal(signal.SIGINT, handled_by)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def start_server(
    films: Path, cache: Path, *options: str, quiet: bool = False, **environment: str
) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """The process, and what it says of itself once it serves; ``quiet`` drops its log."""
    cache.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "longtake", "serve", "--films", str(films)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--json", *options],
        env={**os.environ, "LONGTAKE_CACHE": str(cache), "PYTHONPATH": str(SOURCE), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        cwd=cache,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while not said.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, "the server did not start"
        said += line
    return process, json.loads(said)
