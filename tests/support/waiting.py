"""Waits for conditions. It imports no setting, so that measurements use it too."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits until the condition is true; fails after 30 seconds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
