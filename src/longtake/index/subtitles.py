"""Subtitles as a layer of text: a given file, the one beside the film, or the film's own stream."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from longtake.errors import MediaError
from longtake.events import note_once
from longtake.index.source import Source
from longtake.index.store import LayerKey
from longtake.media.container import FileVersion, check_plain_file, file_version
from longtake.media.subtitles import embedded_subtitles, read_subtitles, sidecar
from longtake.types import Line, Segment


class Subtitles:
    """The subtitles of one film, if it has any."""

    def __init__(self, source: Source, given: Path | None, begin: float) -> None:
        self._source, self.given, self._begin = source, given, begin
        self._usable_files: dict[FileVersion, bool] = {}

    @property
    def file(self) -> Path | None:
        """The subtitle file in use: the given one, else the one beside the film if usable."""
        if self.given is not None:
            return self.given
        beside = sidecar(self._source.path)
        return beside if beside is not None and self._usable(beside) else None

    def _usable(self, beside: Path) -> bool:
        """Whether a file can be read; one that nobody asked for is left out, with a note."""
        version = file_version(beside)
        if version not in self._usable_files:
            try:
                read_subtitles(beside, self._source.settings.media)
            except MediaError as error:
                note_once("subtitles_left_out", why=str(error))
                self._usable_files[version] = False
            else:
                self._usable_files[version] = True
        return self._usable_files[version]

    def key(self) -> LayerKey | None:
        """The layer that holds the lines; ``None`` if the film has no subtitles.

        Computed anew each time, because a file beside the film may appear or change at any time.
        """
        file = self.file
        if file is not None:
            check_plain_file(file)
            # by content: a file that is edited is read again
            content = hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
            params: dict[str, Any] = {"file": content, "suffix": file.suffix}
            # only if set: keys from before this option existed stay valid
            if self._begin:
                params["begin"] = self._begin
            return LayerKey("subtitles", 1, params)
        streams = self._source.video.info.subtitles
        return LayerKey("subtitles", 1, {"stream": streams[0].index}) if streams else None

    def lines(self, within: Segment | None = None) -> list[Line]:
        """The lines of the film or of a segment."""
        key = self.key()
        if key is None:
            return []
        text = self._source.text
        # all of the film is covered, also where nothing is said
        whole = Segment(0.0, self._source.video.duration)
        self._source.ensure(lambda: text.has(key), lambda: text.add(key, self._read(), [whole]))
        return text.lines(key, within)

    def _read(self) -> list[Line]:
        source, limits = self._source, self._source.settings.media
        if self.file is not None:
            return read_subtitles(self.file, limits, begin=self._begin)
        stream = source.video.info.subtitles[0].index
        return embedded_subtitles(
            source.path, origin=source.video.origin, index=stream, limits=limits
        )
