"""Makes each line of a process's output a JSON object, also those of its start, of its errors and of checks.

Log lines already are JSON objects, and are not changed. This module runs first, so it imports nothing of Django.
"""

import atexit
import json
import os
import socket
import sys
from datetime import UTC, datetime
from io import TextIOBase
from typing import Any, TextIO

LOGGER = "manage.py"


def get_process_members() -> dict[str, Any]:
    """The fields that identify the process: its id and the name of its machine."""
    return {"pid": os.getpid(), "instance": socket.gethostname()}


class JSONLines:
    """Wraps a text stream. An incomplete line is buffered until it ends."""

    def __init__(self, stream: TextIO, level: str) -> None:
        self.stream, self.level = stream, level
        self.rest = ""

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.strip():
                self.write_line(line, self.level)
        return len(text)

    def write_line(self, line: str, level: str) -> None:
        self.stream.write(f"{self.format(line, level)}\n")

    def format(self, line: str, level: str) -> str:
        if line.startswith("{"):
            return line
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {"time": now, "level": level, "logger": LOGGER, "message": line.strip()}
        return json.dumps(fields | get_process_members())

    def close_line(self) -> None:
        """Writes an incomplete line."""
        if self.rest:
            self.write("\n")
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def write_note(stream: TextIO | TextIOBase, text: str, level: str = "INFO") -> None:
    """Writes a line that is no error to standard error, for commands whose standard output is their result."""
    # A command's own stream passes this name on.
    if write_line := getattr(stream, "write_line", None):
        write_line(text, level)
    else:
        stream.write(f"{text}\n")


def wrap_streams(with_output: bool) -> None:
    """Wraps standard error and, `with_output`, standard output. Other commands write their result to that."""
    sys.stderr = errors = JSONLines(sys.stderr, "ERROR")
    # The last message of a command may end without a newline.
    atexit.register(errors.close_line)
    if with_output:
        sys.stdout = JSONLines(sys.stdout, "INFO")
