"""Adds the films of a server's folders to the library, and goes on as films appear."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pydantic import BaseModel

from longtake.errors import LongtakeError, MediaError
from longtake.index.layers import Advance
from longtake.library import Adder, Library, Progress, Report
from longtake.library.adding import Surveyed
from longtake.library.watching import EVERY, watch
from longtake.server.films import FilmCatalog
from longtake.stopping import Cancelled, Stop, leave_behind

log = logging.getLogger("longtake.serve")


class Doing(BaseModel):
    """The part of a film that is being indexed."""

    film: str
    part: str
    share: float = 0.0
    """How much of this part is done, 0 to 1."""
    job: int
    jobs: int
    left: float | None
    """Seconds that the rest will take; ``None`` until that is known."""


class Watcher:
    """One thread that watches the folders, while it is told to."""

    def __init__(
        self, library: Callable[[], Library], catalog: FilmCatalog, every: float = EVERY
    ) -> None:
        self._library, self._catalog, self._every = library, catalog, every
        self._lock = threading.Lock()
        self._stop: Stop | None = None
        self.busy = False
        """Whether films are being looked for or indexed, rather than awaited."""
        self.doing: Doing | None = None
        """What is being indexed."""
        self.failed: dict[str, str] = {}
        """Names of the films that could not be added, and why."""
        self.problem = ""
        """What ended the watching, if it ended by itself."""

    @property
    def on(self) -> bool:
        """Whether the folders are being watched."""
        return self._stop is not None

    def start(self) -> None:
        """Begin, unless that was done already."""
        with self._lock:
            if self._stop is not None:
                return
            self._stop = stop = Stop()
            self.busy, self.problem = True, ""
        thread = threading.Thread(target=self._run, args=[stop], name="watcher", daemon=True)
        # it may be decoding when the process ends
        leave_behind(thread)
        thread.start()

    def stop(self) -> None:
        """End it, at once for whoever asks; what is being decoded ends at its next check."""
        with self._lock:
            stop, self._stop = self._stop, None
            self.busy, self.doing = False, None
        if stop is not None:
            stop.set()

    def _run(self, stop: Stop) -> None:
        try:
            with stop.in_force():
                watch(
                    self._library(),
                    self._catalog.folders(),
                    lambda: self._add(stop),
                    every=self._every,
                    sleep=stop.wait,
                )
        except Cancelled:
            pass  # by stop()
        except LongtakeError as error:
            self._end(stop, str(error))
        except Exception as error:  # a bug here must be shown, not end the thread unseen
            log.exception("watching failed")
            self._end(stop, f"internal error: {type(error).__name__} (the server's log says more)")

    def _end(self, stop: Stop, problem: str) -> None:
        with self._lock:
            if self._stop is stop:
                self._stop, self.problem = None, problem
                self.busy, self.doing = False, None

    def _add(self, stop: Stop) -> Report:
        def surveyed(_: Surveyed | MediaError) -> None:
            stop.check()

        self.busy = True
        adder = Adder(
            self._library(),
            allowed=self._catalog.allowed,
            on_survey=surveyed,
            on_job=lambda progress: self._advance(stop, progress),
        )
        # a drive that is not mounted now may be there in the next round
        report = adder.add([folder for folder in self._catalog.folders() if folder.exists()])
        self.failed = {path.name: why for path, why in report.failed}
        self.busy, self.doing = False, None
        self._catalog.refresh()
        return report

    def _advance(self, stop: Stop, progress: Progress) -> Advance:
        stop.check()
        doing = Doing(
            film=progress.film.name,
            part=progress.part,
            job=progress.job,
            jobs=progress.jobs,
            left=progress.left,
        )
        self.doing = doing

        def advance(share: float) -> None:
            stop.check()
            doing.share = round(share, 4)

        return advance
