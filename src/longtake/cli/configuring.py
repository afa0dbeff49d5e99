"""Writes one setting into the user's configuration, and leaves everything else as it is."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from longtake.errors import ConfigError
from longtake.replacing import replacing

_HEADER = re.compile(r"^\s*\[")


def write_setting(path: Path, section: str, key: str, value: str) -> None:
    """Set ``key`` in ``[section]`` to a text; comments and other settings stay.

    Raises, and changes nothing, if the file is written in a way that cannot be edited line by line.
    """
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    after = with_setting(before, section, key, value)
    expected = _parsed(before, path)
    expected.setdefault(section, {})[key] = value
    if _parsed(after, path) != expected:
        line = f"[{section}] {key} = {json.dumps(value)}"
        raise ConfigError(f"{path}: cannot be edited safely; write there yourself: {line}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(after, encoding="utf-8")


def with_setting(text: str, section: str, key: str, value: str) -> str:
    """A TOML text with one more setting, or with another value for it."""
    # a JSON string is a valid TOML string as long as it holds no surrogates
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    header = re.compile(rf"^\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?$")
    start = next((place for place, each in enumerate(lines) if header.match(each)), None)
    if start is None:
        gap = [""] if lines and lines[-1].strip() else []
        return "\n".join([*lines, *gap, f"[{section}]", line, ""])
    setting = re.compile(rf"^\s*{re.escape(key)}\s*=")
    for place in range(start + 1, len(lines)):
        if _HEADER.match(lines[place]):
            break
        if setting.match(lines[place]):
            lines[place] = line
            return "\n".join([*lines, ""])
    lines.insert(start + 1, line)
    return "\n".join([*lines, ""])


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: invalid TOML ({error})") from error
