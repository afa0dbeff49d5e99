"""Lets viewers go first.

The loop that answers requests shares its interpreter and its cores with the threads of all runs.
When many viewers come at once they would wait behind each of these threads, again and again.
Runs therefore pause for a moment, at their next check, when requests arrive. A lower priority would
let them starve beside other work on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

HOLD = 0.02
"""Seconds without a further request after which runs go on."""
LONGEST = 0.2
"""Longest pause in seconds; runs then work for as long, however many requests arrive."""


class Courtesy:
    """Tells runs when to pause."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._began = self._until = float("-inf")

    def arrive(self) -> None:
        """A request arrived; called by the loop."""
        now = self._clock()
        if now >= self._began + 2 * LONGEST:
            self._began = now
        self._until = min(now + HOLD, self._began + LONGEST)

    def pause(self) -> None:
        """Wait while requests arrive; called by runs wherever they could be cancelled."""
        while (left := self._until - self._clock()) > 0:
            self._sleep(left)
