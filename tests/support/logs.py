"""Captures log lines, and kills the worker of a served library."""

import json
import logging
import os
import signal
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from select import select
from typing import Any

import pytest


class Log(StringIO):
    """The captured log as text and as JSON."""

    def split_lines(self) -> list[str]:
        return self.getvalue().splitlines()

    def parse_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.split_lines()]


def capture_log(formatter: logging.Formatter, caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    """Yields the log of the test; it has the records of level INFO and above."""
    log = Log()
    handler = logging.StreamHandler(log)
    handler.setFormatter(formatter)
    caplog.set_level("INFO", "library_site")
    logging.getLogger().addHandler(handler)
    yield log
    logging.getLogger().removeHandler(handler)


def kill_worker(server: int) -> None:
    """Kills the only worker of a server and waits until the process has ended."""
    [worker] = list_children(server)
    process = os.pidfd_open(worker)
    signal.pidfd_send_signal(process, signal.SIGKILL)
    select([process], [], [])
    os.close(process)


def list_children(process: int) -> list[int]:
    """Returns the ids of the processes that this one started; a server's are its workers."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
