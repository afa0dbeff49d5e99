"""``longtake serve`` in a process of its own, of this checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


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
