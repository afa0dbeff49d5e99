"""Versions of installed packages, found without ``importlib.metadata``.

That module parses every package's metadata as e-mail, and importing it takes longer than many a
search. The name of a package's ``.dist-info`` folder holds its version too.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path


def version_of(package: str) -> str:
    """The version of an installed package; raises ``PackageNotFoundError`` like the original."""
    wanted = package.replace("-", "_").replace(".", "_").lower()
    for place in sys.path:
        for name, version in _installed(place):
            if name == wanted:
                return version
    from importlib.metadata import version as parsed  # late: slow to import

    return parsed(package)


@cache
def _installed(place: str) -> tuple[tuple[str, str], ...]:
    """Names and versions of the packages in one folder of the path."""
    try:
        entries = [entry.name for entry in Path(place).iterdir()]
    except OSError:
        return ()  # a file, or a folder that is not there
    packages = []
    for entry in entries:
        name, dash, version = entry.removesuffix(".dist-info").partition("-")
        if dash and entry.endswith(".dist-info"):
            packages.append((name.replace(".", "_").lower(), version))
    return tuple(packages)
