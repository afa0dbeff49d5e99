"""Fetching a card's files from a model hub, on explicit request only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake.errors import ModelError
from longtake.perception.cards import Card
from longtake.perception.runtime import sha256

RECORD = "longtake-fetched.json"


@dataclass(frozen=True)
class Fetched:
    """One fetched file: the hash that the hub reported and our own of the file on disk."""

    file: str
    size: int
    hub: str
    """The hub's ETag: the SHA-256 of a large file, the git hash of a small one."""
    sha256: str
    commit: str


def fetch(
    card: Card,
    folder: Path,
    *,
    endpoint: str | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> list[Fetched]:
    """Download a card's files into ``folder`` and record their hashes.

    ``progress`` is called with each file's name and size; the hub's client draws its own bars on
    stderr. A large file whose SHA-256 differs from the one the hub reports is deleted and rejected.
    The files are public, so the user's token is not sent.
    """
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:  # it comes with tokenizers
        raise ModelError(card.name, "unavailable", "huggingface_hub is not installed") from error

    fetched = []
    for file in card.files:
        try:
            url = hf_hub_url(card.repo, file, revision=card.revision, endpoint=endpoint)
            metadata = get_hf_file_metadata(url, token=False, endpoint=endpoint)
            if progress:
                progress(file, metadata.size or 0)
            downloaded = hf_hub_download(
                card.repo,
                file,
                revision=card.revision,
                local_dir=folder,
                token=False,
                endpoint=endpoint,
            )
        # unreachable, missing, refused, disk full: the client raises errors of several libraries
        except Exception as error:
            detail = (
                f"{file} could not be fetched from {card.repo} ({_plain(error)}); "
                f"copy it to {folder} instead"
            )
            raise ModelError(card.name, "unavailable", detail) from error
        fetched.append(_verified(card, file, Path(downloaded), metadata))
    record = {
        "repo": card.repo,
        "revision": card.revision,
        "files": [vars(item) for item in fetched],
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return fetched


def _verified(card: Card, file: str, path: Path, metadata: Any) -> Fetched:
    digest, etag = sha256(path), str(metadata.etag or "")
    # only large files have their SHA-256 as ETag; small ones have a git hash
    if len(etag) == 64 and etag != digest:
        path.unlink()
        detail = f"{file} is not the file that the hub describes (SHA-256 differs)"
        raise ModelError(card.name, "refused", detail)
    return Fetched(file, path.stat().st_size, etag, digest, str(metadata.commit_hash or ""))


def _plain(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
