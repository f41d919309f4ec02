"""Log lines of a served library."""

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
    """What was logged, as text and as JSON."""

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


def logged(formatter: logging.Formatter, caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    """The log of the test, from INFO upwards."""
    log = Log()
    handler = logging.StreamHandler(log)
    handler.setFormatter(formatter)
    caplog.set_level("INFO", "library_site")
    logging.getLogger().addHandler(handler)
    yield log
    logging.getLogger().removeHandler(handler)


def end_worker(server: int) -> None:
    """Kills the one worker of a server, and waits until it is gone."""
    worker = int(Path(f"/proc/{server}/task/{server}/children").read_text().split()[0])
    gone = os.pidfd_open(worker)
    signal.pidfd_send_signal(gone, signal.SIGKILL)
    select([gone], [], [])
    os.close(gone)
