"""A card's files from a model hub, once, on explicit request."""

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
    """One file as it came: the hash the hub reported, and ours of what lies on disk."""

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
    """Bring a card's files into ``folder`` and record what came; ``progress`` hears each file and its size.

    The hub's client draws its own bars on standard error. A large file whose SHA-256 is not the one the hub
    reports is deleted and refused. The files are public: no token of the user's is sent.
    """
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:  # it comes with tokenizers
        raise ModelError(card.name, "unavailable", "huggingface_hub is not installed") from error

    fetched = []
    for file in card.files:
        try:
            url = hf_hub_url(card.repo, file, revision=card.revision, endpoint=endpoint)
            told = get_hf_file_metadata(url, token=False, endpoint=endpoint)
            if progress:
                progress(file, told.size or 0)
            path = Path(
                hf_hub_download(
                    card.repo,
                    file,
                    revision=card.revision,
                    local_dir=folder,
                    token=False,
                    endpoint=endpoint,
                )
            )
        # unreachable, missing, refused, disk full: the client raises errors of several libraries
        except Exception as error:
            detail = f"{file} could not be fetched from {card.repo} ({_plain(error)}); copy it to {folder} instead"
            raise ModelError(card.name, "unavailable", detail) from error
        fetched.append(_verified(card, file, path, told))
    record = {
        "repo": card.repo,
        "revision": card.revision,
        "files": [vars(item) for item in fetched],
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return fetched


def _verified(card: Card, file: str, path: Path, told: Any) -> Fetched:
    digest, etag = sha256(path), str(told.etag or "")
    if len(etag) == 64 and etag != digest:
        path.unlink()
        raise ModelError(
            card.name, "refused", f"{file} is not what the hub says it is (SHA-256 differs)"
        )
    return Fetched(file, path.stat().st_size, etag, digest, str(told.commit_hash or ""))


def _plain(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
