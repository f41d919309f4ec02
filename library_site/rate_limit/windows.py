"""Counts requests per caller in memory, for this process.

A window begins with a caller's first request and lasts a fixed time. A request is counted and its window read in one
atomic step, so exactly as many requests pass as the limit allows.
"""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

# The most callers that a process stores, in about 30 MB. Beyond it, the oldest window is dropped.
MAX_CALLERS = 100_000


class Window(NamedTuple):
    """The number of requests in it, this one included, and the seconds until it ends."""

    requests: int
    seconds_left: float


class LocalCounter:
    """Counts windows of `seconds` in this process."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.windows: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self.lock = Lock()

    def count(self, caller: str, now: float) -> Window:
        with self.lock:
            self.drop_ended(now)
            requests, ends_at = self.windows.get(caller, (0, now + self.seconds))
            self.windows[caller] = requests + 1, ends_at
        return Window(requests + 1, ends_at - now)

    def drop_ended(self, now: float) -> None:
        """Removes ended windows. All have the same length, so the oldest end first."""
        while self.windows:
            _, ends_at = next(iter(self.windows.values()))
            if ends_at > now and len(self.windows) < MAX_CALLERS:
                break
            self.windows.popitem(last=False)
