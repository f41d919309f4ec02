"""Formats log lines: each has the id of its request, and no text in a line can look like another line."""

import json
import logging
import re
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import psycopg

from library_site.http.request_log import current_request_id
from library_site.json_lines import get_process_members


class RequestFormatter(logging.Formatter):
    """Times are RFC 3339, in UTC."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatException(self, ei: Any) -> str:  # noqa: N802  # logging's name
        """Returns the traceback without the rows that PostgreSQL quotes."""
        return redact_rows(super().formatException(ei), ei[1])

    def format_message(self, record: logging.LogRecord) -> str:
        """Returns the message without the rows that PostgreSQL quotes: its arguments may be errors."""
        errors = [argument for argument in record.args or () if isinstance(argument, BaseException)]
        return redact_rows(record.getMessage(), *errors)


class TextFormatter(RequestFormatter):
    """One line of plain text, with the traceback indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        message = escape_unprintable(self.format_message(record))
        line = f"{self.formatTime(record)} {record.levelname} {current_request_id.get()} {record.name}: {message}"
        if not record.exc_info:
            return line
        return "\n    ".join([line, *map(escape_unprintable, self.formatException(record.exc_info).split("\n"))])


class JSONFormatter(RequestFormatter):
    """One JSON object per line, with additional fields from the record's `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self.format_message(record),
            "request_id": current_request_id.get(),
            **get_process_members(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


class UnavailableFilter(logging.Filter):
    """Drops Django's line for each 502 and 503: the error and the request have lines of their own."""

    def filter(self, record: logging.LogRecord) -> bool:
        statuses = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)
        return getattr(record, "status_code", None) not in statuses


def escape_unprintable(text: str) -> str:
    """Escapes line ends, control characters and other unprintable characters as Python does."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def redact_rows(text: str, *errors: BaseException | None) -> str:
    """Removes all lines of PostgreSQL's messages but the first: details, contexts and excerpts of statements quote
    rows, and a row can contain a token.
    """
    for error in iter_causes(*errors):
        _, _, quotation = str(error).partition("\n")
        if isinstance(error, psycopg.Error) and quotation:
            # In the traceback of a group, each line has a margin.
            text = re.sub(r"\n[ |]*".join(map(re.escape, quotation.split("\n"))), "(left out)", text)
    return text


def iter_causes(*errors: BaseException | None) -> Iterator[BaseException]:
    """Yields the exceptions, their causes, and the fields of groups among them. Two can be the cause of each other."""
    rest, known = list(errors), set[int]()
    while rest:
        error = rest.pop()
        if error is None or id(error) in known:
            continue
        known.add(id(error))
        yield error
        rest.append(error.__cause__ or error.__context__)
        if isinstance(error, BaseExceptionGroup):
            rest += error.exceptions
