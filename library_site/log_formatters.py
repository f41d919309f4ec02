"""What a log line looks like: it names the request during which it was written, and no text in it forges another."""

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from library_site.http.request_id import current_request_id


class RequestFormatter(logging.Formatter):
    """Times are RFC 3339, in UTC."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatException(self, ei: Any) -> str:  # noqa: N802  # logging's name
        """The traceback without what PostgreSQL quotes: the row that it refuses may be a body, or hold a token."""
        text = super().formatException(ei)
        for error in iter_causes(ei[1]):
            if isinstance(error, psycopg.Error):
                text = text.replace(error.diag.message_detail or "\0", "(left out)")
        return text


class TextFormatter(RequestFormatter):
    """A line for people, with a traceback indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        message = escape_unprintable(record.getMessage())
        line = f"{self.formatTime(record)} {record.levelname} {current_request_id.get()} {record.name}: {message}"
        if not record.exc_info:
            return line
        return "\n    ".join([line, *map(escape_unprintable, self.formatException(record.exc_info).split("\n"))])


class JSONFormatter(RequestFormatter):
    """One object a line, with members of their own for what a record has in `members`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": current_request_id.get(),
            **getattr(record, "members", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def escape_unprintable(text: str) -> str:
    """The text with line ends, control characters and the like as Python escapes them."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and those that led to it."""
    while error:
        yield error
        error = error.__cause__ or error.__context__
