"""Shares the result of a function between concurrent callers: one run at a time."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.db import connections

Result = TypeVar("Result")


class SharedRun(Generic[Result]):
    """Reuses a result for `lifetime` seconds. While a run hangs, no other begins: only one thread is blocked."""

    def __init__(self, function: Callable[[], Result], lifetime: float, timeout: float) -> None:
        self.function = function
        self.lifetime, self.timeout = lifetime, timeout
        self.lock = Lock()
        self.run: Future[Result] | None = None
        self.began_at = 0.0

    def begin(self) -> tuple[Future[Result], float]:
        """Returns the current run, or a new one if the result is too old, and the time when it counts as hanging."""
        now = time.monotonic()
        with self.lock:
            if self.run is None or (self.run.done() and now - self.began_at > self.lifetime):
                self.run, self.began_at = Future(), now
                Thread(target=self.fulfil, args=[self.run], name="monitoring", daemon=True).start()
            return self.run, self.began_at + self.timeout

    def get(self) -> Result | None:
        """Returns the result, or None if the run has not ended within the timeout. Raises what the function raises."""
        run, deadline = self.begin()
        try:
            return run.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            return None

    def fulfil(self, run: "Future[Result]") -> None:
        try:
            run.set_result(self.function())
        except Exception as error:
            run.set_exception(error)
        finally:
            # They belong to this thread, which ends.
            connections.close_all()
