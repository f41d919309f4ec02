"""Waits for conditions. It imports no setting, so that measurements use it too."""

import time
from collections.abc import Callable
from threading import Event

# Seconds between two looks, in which the processor is free for what is waited for.
POLL_INTERVAL = 0.01
# Seconds that any process may take: fewer than a test may, whose own limit does not interrupt its threads.
PROCESS_TIMEOUT = 250


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits until the condition is true; fails after 30 seconds."""
    deadline, never = time.monotonic() + 30, Event()
    while not condition():
        assert time.monotonic() < deadline
        never.wait(POLL_INTERVAL)
