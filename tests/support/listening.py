"""A sink that keeps every event."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from longtake.tracing.events import Event, Noted, Stream


class Heard:
    """Every event, in order."""

    drafts = False

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.pictures: dict[str, bytes] = {}

    def handle(self, event: Event) -> None:
        self.events.append(event)

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        self.pictures[digest] = jpeg()

    def close(self) -> None:
        pass

    def notes(self, label: str) -> list[Noted]:
        return [event for event in self.events if isinstance(event, Noted) and event.label == label]

    def of(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@contextmanager
def listening(*, drafts: bool = False) -> Iterator[Heard]:
    """Keep the events of the block; ``drafts``: also of answers while they are written."""
    heard = Heard()
    heard.drafts = drafts
    with Stream(heard).active():
        yield heard
