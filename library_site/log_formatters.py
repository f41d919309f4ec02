"""Formats log lines: each has the id of its request, and no text in it can forge another line."""

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from library_site.http.request_log import current_request_id


class RequestFormatter(logging.Formatter):
    """Times are RFC 3339, in UTC."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatException(self, ei: Any) -> str:  # noqa: N802  # logging's name
        """Returns the traceback without PostgreSQL's detail: it quotes the refused row, which can hold a token."""
        text = super().formatException(ei)
        for error in iter_causes(ei[1]):
            if isinstance(error, psycopg.Error):
                text = text.replace(error.diag.message_detail or "\0", "(left out)")
        return text


class TextFormatter(RequestFormatter):
    """One line of plain text, with the traceback indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        message = escape_unprintable(record.getMessage())
        line = f"{self.formatTime(record)} {record.levelname} {current_request_id.get()} {record.name}: {message}"
        if not record.exc_info:
            return line
        return "\n    ".join([line, *map(escape_unprintable, self.formatException(record.exc_info).split("\n"))])


class JSONFormatter(RequestFormatter):
    """One JSON object per line, with additional members from the record's `members`."""

    def format(self, record: logging.LogRecord) -> str:
        members = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": current_request_id.get(),
            **getattr(record, "members", {}),
        }
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        return json.dumps(members)


def escape_unprintable(text: str) -> str:
    """Escapes line ends, control characters and other unprintable characters as Python does."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields the exception and its causes."""
    while error:
        yield error
        error = error.__cause__ or error.__context__
